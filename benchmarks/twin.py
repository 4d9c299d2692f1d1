"""How long the twin takes: building a kernel that nothing is cached of, and launching one on [8, 151936].

`python benchmarks/twin.py`, on a machine that does nothing else. Builds are in a cache of their own; launches are of
the generated filter on the product's 48 vector cores, the best of a few. The bounds are what the project claims for two
processors; the processor's own seconds say how much of the time others took. `tests/test_twin_limits.py` holds those to
the bounds, and memory too.
"""

import os
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja
from jascend.backends.ascend import project, twin

ROWS, VOCABULARY, REPEATS = 8, 151936, 2
SMALL = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void small(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {
  InitSocState();
  LocalTensor<float> f(TPosition::VECCALC, 0, 64);
  Duplicate(f, 1.0f, 64);
  PipeBarrier<PIPE_ALL>();
}
"""


def seconds(run):
    """Wall-clock seconds, the processor's (the compiler's too), and what the function gives."""
    start, before = time.perf_counter(), os.times()
    result = run()
    after = os.times()
    return (time.perf_counter() - start, sum(after[:4]) - sum(before[:4])), result


def kernels():
    """The kernels of the generated filter for [8, 151936] and of the longest generated sampler."""
    logits = jax.ShapeDtypeStruct((ROWS, VOCABULARY), np.float32)
    p, k = jax.ShapeDtypeStruct((ROWS,), np.float32), jax.ShapeDtypeStruct((ROWS,), np.int32)

    def sample(logits, p, k, q):
        return ja.top_k_top_p_sample(logits, k, p, q, is_need_logits=True)

    (filtering,) = ja.compile(ja.apply_top_k_top_p, logits, p, k).kernels
    (sampling,) = ja.compile(sample, logits, p, k, logits).kernels
    return filtering, sampling


def main():
    table = Table("what", "seconds", "processor", "at most", "kept")

    def row(what, taken, bound):
        kept = "" if bound is None else "yes" if taken[0] <= bound else "no"
        table.add_row(what, f"{taken[0]:.2f}", f"{taken[1]:.2f}", "" if bound is None else f"{bound:g}", kept)

    with tempfile.TemporaryDirectory() as directory:
        os.environ["JASCEND_CACHE_DIR"] = directory
        source = Path(directory) / "small.cpp"
        source.write_text(SMALL)
        row("a kernel of one instruction, and the twin's runtime", seconds(lambda: twin.build(source))[0], 5)
        row("the same, cached", seconds(lambda: twin.build(source))[0], 0.1)
        kernel, sampling = kernels()
        taken, library = seconds(lambda: project.build_for_twin(kernel, "ascend910b"))
        row("the generated filter, not cached", taken, 5)
        row("the longest sampler, not cached", seconds(lambda: project.build_for_twin(sampling, "ascend910b"))[0], 5)

        rng = np.random.default_rng(0)
        logits = rng.normal(0, 3, (ROWS, VOCABULARY)).astype(np.float32)
        p, k = np.full(ROWS, 0.9, np.float32), np.full(ROWS, 50, np.int32)
        results = {}
        for check, bound in [(False, 2), (True, 20)]:
            best = np.inf, 0.0
            for _ in range(REPEATS):
                out = np.empty_like(logits)
                taken, run = seconds(lambda out=out, check=check: library.launch(
                    kernel.name, [logits, p, k, out], tiling=kernel.tiling_bytes, blocks=kernel.blocks, check=check,
                    workspace_bytes=kernel.workspace_bytes))  # fmt: skip
                best = min(best, taken)
                assert run.findings == [], run.describe()
            results[check] = out
            row(f"[{ROWS}, {VOCABULARY}], {'checked' if check else 'unchecked'}", best, bound)
        assert np.array_equal(results[False], results[True])
        assert np.array_equal(results[True], np.asarray(ja.apply_top_k_top_p(logits, p, k)))
    Console().print(table)


if __name__ == "__main__":
    main()
