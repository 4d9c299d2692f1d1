"""Modelled times of the generated filter kernels, against targets and the roofline of the operator.

    python benchmarks/kernels_filter.py [CASE ...]

Logits are normal with a standard deviation of 3, so that a nucleus of 0.9 holds some 4 % of the row: wider than real models
make it. The figures are the cost model's, see docs/cost_model.md. Exits with 1 where a target is missed.
"""

import sys

import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

VOCABULARY = 151936
OFF = VOCABULARY  # a k that turns top-k off
MIXED = "k=50 and off"
# name: rows, dtype, p, k, product, vector cores, target in microseconds. A target "3x" is three times the first case.
CASES = {
    "decoding": (8, ml_dtypes.bfloat16, 0.9, 50, "ascend910b", 48, 20.0),
    "the same on 40 cores": (8, ml_dtypes.bfloat16, 0.9, 50, "ascend910b", 40, None),
    "the same on 950": (8, ml_dtypes.bfloat16, 0.9, 50, "ascend950", 64, None),
    "top-p alone": (8, ml_dtypes.bfloat16, 0.9, None, "ascend910b", 48, "3x"),
    "a large k": (8, ml_dtypes.bfloat16, 0.9, 5000, "ascend910b", 48, "3x"),
    "a very large k": (8, ml_dtypes.bfloat16, 0.9, 50000, "ascend910b", 48, "3x"),
    "mixed k": (8, ml_dtypes.bfloat16, 0.9, MIXED, "ascend910b", 48, "3x"),
    "k off": (8, ml_dtypes.bfloat16, 0.9, OFF, "ascend910b", 48, "3x"),
    "one row": (1, ml_dtypes.bfloat16, 0.9, 50, "ascend910b", 48, None),
    "many rows, top-p alone": (128, ml_dtypes.bfloat16, 0.9, None, "ascend910b", 48, 120.0),
    "many rows": (128, ml_dtypes.bfloat16, 0.9, 50, "ascend910b", 48, 84.0),
}


def profile(rows, dtype, p, k, target, cores):
    rng = np.random.default_rng(0)
    arguments = {"logits": rng.normal(0, 3, (rows, VOCABULARY)).astype(dtype)}
    arguments["p"] = np.full(rows, p, np.float32).astype(dtype)
    if k == MIXED:
        arguments["k"] = np.where(np.arange(rows) % 2, 50, OFF).astype(np.int32)
    elif k is not None:
        arguments["k"] = np.full(rows, k, np.int32)
    program = ja.compile(ja.apply_top_k_top_p, target=target, **arguments)
    lines = len(program.kernels[0].source.splitlines())
    return program.profile(cores=cores, **arguments), arguments["logits"].nbytes, lines


def main():
    table = Table("", "rows", "k", "modelled, µs", "target", "roofline", "times", "GM bytes a byte", "V", "MTE2", "MTE3", "lines")
    missed, first = [], None
    for name in sys.argv[1:] or CASES:
        rows, dtype, p, k, target, cores, wanted = CASES[name]
        report, size, lines = profile(rows, dtype, p, k, target, cores)
        first = first or report.microseconds
        wanted = 3 * first if wanted == "3x" else wanted
        moved = (report.gm_read_bytes + report.gm_write_bytes) / size
        if wanted is not None and report.microseconds > wanted:
            missed.append(name)
        table.add_row(
            name, str(rows), str(k), f"{report.microseconds:.1f}", f"{wanted:.0f}" if wanted else "",
            f"{report.roofline_microseconds:.1f}", f"{report.roofline_ratio:.2f}", f"{moved:.2f}",
            *(f"{report.pipes[pipe]:.0%}" for pipe in ("V", "MTE2", "MTE3")), str(lines),
        )  # fmt: skip
    Console(width=140).print(table)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
