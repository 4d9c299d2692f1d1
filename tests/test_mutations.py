"""Generated kernels, broken on purpose one place at a time: the twin's checker must notice.

Every deletion of a barrier or of a flag pair that goes unnoticed would be synchronisation that the kernel does not need;
`insert-sync` should not have put it there.
"""

import functools
import re

import ml_dtypes
import numpy as np
import pytest

import jascend as ja
from jascend.backends.ascend import twin
from jascend.backends.ascend.codegen import tiling

ROWS, VOCABULARY = 2, 9000  # two rows on one core, three chunks each with a tail: every loop goes round


def scaled_filter(logits, temperature, p, k):
    return ja.apply_top_k_top_p(logits / temperature[:, None], p, k)


@functools.cache
def arguments():
    """The first row exercises ties at the boundary of the nucleus, the second has top-k off."""
    rng = np.random.default_rng(0)
    logits = (rng.integers(-40, 40, (ROWS, VOCABULARY)) / 4).astype(ml_dtypes.bfloat16)
    scalars = (np.array(x, np.float32).astype(ml_dtypes.bfloat16) for x in ([1, 2], [0.9, 0.5]))
    return (logits, *scalars, np.array([500, 0], np.int32))


@functools.cache
def kernel():
    return ja.compile(scaled_filter, *arguments()).kernels[0]


def findings(source, directory):
    """What the checker says of a source in place of the kernel's, run by one core."""
    (directory / kernel().tiling_file).write_text(kernel().tiling_header)
    file = directory / "mutant.cpp"
    file.write_text(source)
    library = twin.build(file, include_dirs=(directory,), target="ascend910b")
    out = np.zeros((ROWS, VOCABULARY), ml_dtypes.bfloat16)
    one_core = tiling.pack({"rows_per_core": ROWS, "extra_rows": 0})
    return library.launch(kernel().name, [*arguments(), out], tiling=one_core, blocks=1).findings


def deletions():
    """For every synchronisation of the kernel, the numbers of the lines that make it up."""
    lines = kernel().source.splitlines()
    found = []
    for i, line in enumerate(lines):
        flag = re.fullmatch(r"\s*SetFlag<HardEvent::(\w+)>\((\w+)\);", line)
        if flag:
            wait = f"WaitFlag<HardEvent::{flag[1]}>({flag[2]});"
            found.append((i, next(j for j in range(i + 1, len(lines)) if lines[j].strip() == wait)))
        elif line.strip().startswith("PipeBarrier<PIPE_V>"):
            found.append((i,))
    return found


def without(numbers):
    return "\n".join(line for i, line in enumerate(kernel().source.splitlines()) if i not in numbers)


def described(numbers):
    lines = kernel().source.splitlines()
    return f"line {numbers[0] + 1}, {lines[numbers[0]].strip()}, before {lines[numbers[0] + 1].strip()}"


def test_the_kernel_itself_is_sound(tmp_path):
    assert findings(kernel().source, tmp_path) == []


@pytest.mark.parametrize("place", range(6))
def test_a_missing_synchronisation_is_found(tmp_path, place):
    """One of each sort, spread over the kernel; the long test deletes them all."""
    all_of_them = deletions()
    numbers = all_of_them[place * len(all_of_them) // 6 + place % 2]
    found = findings(without(numbers), tmp_path)
    assert any(f.kind in ("missing-sync", "uninitialised-ub") for f in found), described(numbers)


@pytest.mark.long
def test_every_missing_synchronisation_is_found(tmp_path):
    unnoticed = [described(numbers) for numbers in deletions() if not findings(without(numbers), tmp_path)]
    assert not unnoticed, "\n".join(unnoticed)


def mutants():
    source = kernel().source
    first_buffer = re.search(r"LocalTensor<float> (\w+)\(TPosition::VECCALC, 16384, kTile\)", source)
    return {
        "an address that is not aligned": source.replace(first_buffer[0], first_buffer[0].replace("16384", "16388")),
        "a copy that is a block too long": source.replace("const uint32_t bytes = count *", "const uint32_t bytes = 32 + count *"),
        "a buffer beyond the unified buffer": source.replace(first_buffer[0], first_buffer[0].replace("16384", "196608")),
        "an event that is set twice": source.replace("SetFlag<HardEvent::V_MTE3>(EVENT_ID0);", "SetFlag<HardEvent::V_MTE3>(EVENT_ID0);\n" * 2, 1),
        "a row too many": source.replace("firstRow + rowsPerCore", "1 + firstRow + rowsPerCore"),
    }  # fmt: skip


@pytest.mark.parametrize("fault", [
    "an address that is not aligned", "a copy that is a block too long", "a buffer beyond the unified buffer",
    "an event that is set twice", "a row too many",
])  # fmt: skip
def test_other_faults_are_found(tmp_path, fault):
    mutant = mutants()[fault]
    assert mutant != kernel().source
    assert findings(mutant, tmp_path), fault
