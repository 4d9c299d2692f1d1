"""What the twin may take: processor seconds of a build with nothing cached and of launches on [8, 151936], and memory.

Seconds are the processor's, of the compilers or of the process that launches: what else a machine does is not in them.
`benchmarks/twin.py` prints the wall-clock ones."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jascend as ja
from jascend.backends.ascend import project
from jascend.backends.ascend.twin import toolchain

pytestmark = pytest.mark.long

VOCABULARY = 151936
BUILD, UNCHECKED, CHECKED = 5, 2, 20  # seconds at most
MEMORY = 512 << 20  # bytes at most that a launch of 48 blocks takes beside its arrays

LAUNCH = """
import json, sys, time
import numpy as np
from jascend.backends.ascend import twin

def peak():  # kilobytes; getrusage has those of the process that started this one in it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

directory, name, rows, columns, blocks, workspace, tiling, check = json.load(sys.stdin)
library = twin.build(f"{directory}/{name}.cpp", include_dirs=[directory])
logits = np.random.default_rng(0).normal(0, 3, (rows, columns)).astype(np.float32)
p, k, out = np.full(rows, 0.9, np.float32), np.full(rows, 50, np.int32), np.full_like(logits, 1)
before, start = peak(), time.process_time()
run = library.launch(name, [logits, p, k, out], tiling=bytes.fromhex(tiling), blocks=blocks, workspace_bytes=workspace,
                     check=check)
seconds, after = time.process_time() - start, peak()
print(json.dumps([seconds, after - before, len(run.findings), int(np.isfinite(out).sum())]))
"""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JASCEND_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def types(rows, *others):
    rowwise = [jax.ShapeDtypeStruct((rows,), np.float32), jax.ShapeDtypeStruct((rows,), np.int32)]
    return [jax.ShapeDtypeStruct((rows, VOCABULARY), np.float32), *rowwise, *others]


def filtering(rows):
    return ja.compile(ja.apply_top_k_top_p, *types(rows)).kernels[0]


def sampling():
    def sample(logits, p, k, q):
        return ja.top_k_top_p_sample(logits, k, p, q, is_need_logits=True)

    return ja.compile(sample, *types(8, jax.ShapeDtypeStruct((8, VOCABULARY), np.float32))).kernels[0]


def compilers(run):
    """Processor seconds of the compilers that a function starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_builds_with_nothing_cached():
    # The runtime and the first kernel are built side by side: on two processors neither waits for the other.
    assert compilers(toolchain.runtime_object) <= BUILD
    for kernel in (filtering(8), sampling()):
        assert len(kernel.source.splitlines()) > 500  # the long ones
        assert 0.1 < compilers(lambda kernel=kernel: project.build_for_twin(kernel, "ascend910b")) <= BUILD
        assert compilers(lambda kernel=kernel: project.build_for_twin(kernel, "ascend910b")) < 0.1  # cached


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the peak of a process's memory")
@pytest.mark.parametrize("rows", [8, 64])
def test_launches(rows, tmp_path):
    kernel = filtering(rows)
    (tmp_path / f"{kernel.name}.cpp").write_text(kernel.source)
    (tmp_path / kernel.tiling_file).write_text(kernel.tiling_header)

    def launch(check):
        arguments = [str(tmp_path), kernel.name, rows, VOCABULARY, kernel.blocks, kernel.workspace_bytes,
                     kernel.tiling_bytes.hex(), check]  # fmt: skip
        given = {"input": json.dumps(arguments), "capture_output": True, "text": True, "check": True}
        package = Path(ja.__file__).parents[1]
        done = subprocess.run([sys.executable, "-c", LAUNCH], cwd=package, env=os.environ.copy(), **given)
        return json.loads(done.stdout)

    assert kernel.blocks == 48
    for check, bound in ((False, UNCHECKED), (True, CHECKED)):
        seconds, kilobytes, findings, kept = launch(check)
        assert findings == 0
        assert 0 < kept <= 50 * rows
        assert seconds <= bound * rows / 8
        assert kilobytes * 1024 <= MEMORY + 2 * rows * VOCABULARY * 4  # and a copy of the two long arrays
