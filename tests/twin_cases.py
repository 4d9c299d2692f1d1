"""Cases of the twin's APIs against NumPy, for the test files that list them.

A case is a few lines of Ascend C on tensors x0, x1, ... (inputs), y (output, holding what `y` holds before) and tmp (32 KB
of scratch), and the expected contents of y. All cases of a product are kernels in one source.
"""

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from test_twin import build, entry

CTYPES = {np.dtype(t): name for t, name in [
    (np.float32, "float"), (np.float16, "half"), (ml_dtypes.bfloat16, "bfloat16_t"), (np.int8, "int8_t"),
    (np.uint8, "uint8_t"), (np.int16, "int16_t"), (np.uint16, "uint16_t"), (np.int32, "int32_t"),
    (np.uint32, "uint32_t"), (np.int64, "int64_t"), (np.uint64, "uint64_t"), (np.bool_, "bool"),
    (ml_dtypes.float8_e4m3fn, "fp8_e4m3fn_t"), (ml_dtypes.float8_e5m2, "fp8_e5m2_t")]}


@dataclass
class Case:
    name: str
    body: str
    inputs: list
    expected: np.ndarray
    before: np.ndarray | None = None  # y's contents, zeros if None
    findings: list = field(default_factory=list)
    target: str = "ascend910b"


class Cases(list):
    """The cases of one test file, and their compiled kernels."""

    def case(self, name, body, inputs, expected, before=None, **kw):
        expected = np.ascontiguousarray(expected)
        self.append(Case(name, body, [np.ascontiguousarray(x) for x in inputs], expected, before, **kw))

    def libraries(self, directory, more=""):
        """`library(target)`: the cases of a product and `more` kernels, built when first asked for."""
        made = {}

        def library(target):
            if target not in made:
                text = "".join(kernel(c) for c in self if c.target == target)
                made[target] = build(directory, text + more, target, name=target)
            return made[target]

        return library

    def ids(self):
        return [f"{c.name}-{c.target[6:]}" for c in self]


def check(library, c: Case):
    """The case gives what NumPy says, and the findings it lists."""
    y = np.zeros_like(c.expected) if c.before is None else c.before.astype(c.expected.dtype, copy=True)
    run = library.launch(c.name, [*c.inputs, y], blocks=1)
    assert [f.kind for f in run.findings] == c.findings, run.describe()
    np.testing.assert_array_equal(y, c.expected)


def kernel(c: Case) -> str:
    lines = ["  InitSocState();"]
    for i, x in enumerate([*c.inputs, c.expected]):
        name, t = (f"x{i}", CTYPES[x.dtype]) if i < len(c.inputs) else ("y", CTYPES[x.dtype])
        lines.append(f"""  LocalTensor<{t}> {name}(TPosition::VECCALC, {i * 24576}, {24576 // x.itemsize});
  GlobalTensor<{t}> g{name}; g{name}.SetGlobalBuffer((__gm__ {t}*)a{i}, {x.size});
  DataCopyPad({name}, g{name}, DataCopyExtParams{{1, {x.nbytes}, 0, 0, 0}}, DataCopyPadExtParams<{t}>{{false, 0, 0, {t}()}});""")
    last = len(c.inputs)
    lines += ["  LocalTensor<uint8_t> tmp(TPosition::VECCALC, 122880, 32768);", "  PipeBarrier<PIPE_ALL>();", c.body,
              "  PipeBarrier<PIPE_ALL>();", f"  DataCopyPad(gy, y, DataCopyExtParams{{1, {c.expected.nbytes}, 0, 0, 0}});",
              "  PipeBarrier<PIPE_ALL>();"]
    assert last <= 4
    return entry(c.name, last + 1, "\n".join(lines))
