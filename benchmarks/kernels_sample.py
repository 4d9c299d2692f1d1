"""Modelled times of the generated sampling kernels, against targets and the roofline of the operator.

    python benchmarks/kernels_sample.py [CASE ...]

Logits are normal, with a standard deviation of 1 in the cases of one row, where a nucleus of 0.99 then holds nearly all of
it, and of 3 in the others. The figures are the cost model's, see docs/cost_model.md. A target "3x" is three times the case with
k = 50. Exits with 1 where a target is missed.
"""

import sys
import time

import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

OFF = 2000  # a k beyond ks_max turns top-k off
# name: rows, vocabulary, dtype, k, p, with q, keywords, cores, target in microseconds
CASES = {
    "one row": (1, 32000, np.float32, 50, 0.9, True, {}, 48, 15.0),
    "the same on 40 cores": (1, 32000, np.float32, 50, 0.9, True, {}, 40, None),
    "one row, k off": (1, 32000, np.float32, OFF, 0.99, True, {}, 48, 40.0),
    "one row, k off, on 40 cores": (1, 32000, np.float32, OFF, 0.99, True, {}, 40, None),
    "one row, k of 1000": (1, 32000, np.float32, 1000, 0.9, True, {}, 48, "3x one row"),
    "many rows": (140, 153600, ml_dtypes.bfloat16, 50, 0.9, True, {}, 48, 110.0),
    "many rows, without q": (140, 153600, ml_dtypes.bfloat16, 50, 0.9, False, {}, 48, 110.0),
    "many rows, k off": (140, 153600, ml_dtypes.bfloat16, OFF, 0.9, True, {}, 48, "3x many rows"),
    "many rows, k of 1000": (140, 153600, ml_dtypes.bfloat16, 1000, 0.9, True, {}, 48, "3x many rows"),
    "eight rows": (8, 153600, ml_dtypes.bfloat16, 50, 0.9, True, {}, 48, None),
    "eight rows, k off": (8, 153600, ml_dtypes.bfloat16, OFF, 0.9, True, {}, 48, "3x eight rows"),
    "many rows, nothing on": (140, 153600, ml_dtypes.bfloat16, OFF, 1.0, True, {}, 48, None),
    "many rows, masked logits": (140, 153600, ml_dtypes.bfloat16, 50, 0.9, True, {"is_need_logits": True}, 48, None),
}


def profile(rows, vocabulary, dtype, k, p, has_q, keywords, cores):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1 if rows == 1 else 3, (rows, vocabulary)).astype(dtype)
    arguments = [logits, np.full(rows, k, np.int32), np.full(rows, p, np.float32).astype(dtype)]
    if has_q:
        arguments.append(rng.exponential(1, (rows, vocabulary)).astype(np.float32))
    started = time.perf_counter()
    program = ja.compile(lambda *operands: ja.top_k_top_p_sample(*operands, **keywords), *arguments)
    seconds = time.perf_counter() - started
    report, source = program.profile(*arguments, cores=cores), program.kernels[0].source
    return report, logits.nbytes, source, seconds


def main():
    columns = (
        "", "shape", "k", "modelled, µs", "target", "", "roofline", "times", "GM bytes a byte", "V", "MTE2", "MTE3", "lines",
        "KB", "compiled in, s",
    )  # fmt: skip
    table, missed, found = Table(*columns), [], {}
    for name in sys.argv[1:] or CASES:
        *case, wanted = CASES[name]
        report, size, source, seconds = profile(*case)
        found[name] = report.microseconds
        if isinstance(wanted, str):
            wanted = 3 * found.get(wanted.removeprefix("3x "), float("nan"))  # of a case that was not asked for: unknown
        moved = (report.gm_read_bytes + report.gm_write_bytes) / size
        state = "" if wanted is None or wanted != wanted else "ok" if report.microseconds <= wanted else "missed"
        if state == "missed":
            missed.append(name)
        table.add_row(
            name, f"{case[0]} x {case[1]}", str(case[3]), f"{report.microseconds:.1f}", f"{wanted:.0f}" if state else "", state,
            f"{report.roofline_microseconds:.1f}", f"{report.roofline_ratio:.2f}", f"{moved:.2f}",
            *(f"{report.pipes[pipe]:.0%}" for pipe in ("V", "MTE2", "MTE3")), str(len(source.splitlines())),
            f"{len(source) / 1000:.0f}", f"{seconds:.1f}",
        )  # fmt: skip
    Console(width=170).print(table)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
