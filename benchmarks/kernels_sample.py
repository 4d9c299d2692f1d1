"""Modelled times of the generated sampling kernels, against targets and the roofline of the operator.

    python benchmarks/kernels_sample.py [CASE ...]

Logits are normal; with a standard deviation of 1, a nucleus of 0.9 holds 60 % of the row, with 3 some 4 %. The figures
are the cost model's, see docs/cost_model.md. A target "3x NAME" is three times that case. Exits with 1 where a target
is missed.
"""

import sys
import time
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

OFF = 2000  # a k beyond ks_max turns top-k off
MIXED = (50, OFF, 1, 0, 17, 1000)  # by turns


@dataclass(frozen=True)
class Case:
    """Rows of logits and what is asked of them.

    Attributes:
      target: microseconds, or "3x NAME".
      keywords: of the operator.
    """

    rows: int
    k: int | tuple[int, ...]
    target: float | str | None = None
    vocabulary: int = 153600
    dtype: type = ml_dtypes.bfloat16
    p: float = 0.9
    has_q: bool = True
    keywords: dict = field(default_factory=dict)
    deviation: float = 3.0
    cores: int = 48


_ONE = {"vocabulary": 32000, "dtype": np.float32, "deviation": 1.0}
CASES = {
    "one row": Case(1, 50, 15.0, **_ONE),
    "the same on 40 cores": Case(1, 50, cores=40, **_ONE),
    "one row, k off": Case(1, OFF, 40.0, p=0.99, **_ONE),
    "one row, k off, on 40 cores": Case(1, OFF, p=0.99, cores=40, **_ONE),
    "one row, k of 1000": Case(1, 1000, "3x one row", **_ONE),
    "many rows": Case(140, 50, 110.0),
    "many rows, without q": Case(140, 50, 110.0, has_q=False),
    "many rows, k off": Case(140, OFF, "3x many rows"),
    "many rows, k of 1000": Case(140, 1000, "3x many rows"),
    "many rows, mixed k": Case(140, MIXED, "3x many rows"),
    "eight rows": Case(8, 50),
    "eight rows, k off": Case(8, OFF, "3x eight rows"),
    "eight rows, mixed k": Case(8, MIXED, "3x eight rows"),
    "eight rows, a nucleus of a quarter": Case(8, OFF, deviation=2.0),
    "a row a core": Case(48, 50),
    "a row a core, k off": Case(48, OFF),
    "a row a core, a nucleus of a quarter": Case(48, OFF, deviation=2.0),
    "a row a core, a nucleus of 60 %": Case(48, OFF, deviation=1.0),
    "many rows, nothing on": Case(140, OFF, p=1.0),
    "many rows, masked logits": Case(140, 50, keywords={"is_need_logits": True}),
}


def profile(case):
    rng = np.random.default_rng(0)
    shape = case.rows, case.vocabulary
    logits = rng.normal(0, case.deviation, shape).astype(case.dtype)
    arguments = [
        logits,
        np.resize(case.k, case.rows).astype(np.int32),
        np.full(case.rows, case.p, np.float32).astype(case.dtype),
    ]
    if case.has_q:
        arguments.append(rng.exponential(1, shape).astype(np.float32))
    started = time.perf_counter()
    program = ja.compile(lambda *operands: ja.top_k_top_p_sample(*operands, **case.keywords), *arguments)
    seconds = time.perf_counter() - started
    report, source = program.profile(*arguments, cores=case.cores), program.kernels[0].source
    return report, logits.nbytes, source, seconds


def main():
    columns = (
        "", "shape", "k", "modelled, µs", "target", "", "roofline", "times", "GM bytes a byte", "V", "MTE2", "MTE3",
        "lines", "KB", "compiled in, s",
    )  # fmt: skip
    table, missed, found = Table(*columns), [], {}
    for name in sys.argv[1:] or CASES:
        case, wanted = CASES[name], CASES[name].target
        report, size, source, seconds = profile(case)
        found[name] = report.microseconds
        if isinstance(wanted, str):
            # of a case that was not asked for: unknown
            wanted = 3 * found.get(wanted.removeprefix("3x "), float("nan"))
        moved = (report.gm_read_bytes + report.gm_write_bytes) / size
        state = "" if wanted is None or wanted != wanted else "ok" if report.microseconds <= wanted else "missed"
        if state == "missed":
            missed.append(name)
        table.add_row(
            name, f"{case.rows} x {case.vocabulary}", "mixed" if case.k == MIXED else str(case.k),
            f"{report.microseconds:.1f}", f"{wanted:.0f}" if state else "", state,
            f"{report.roofline_microseconds:.1f}", f"{report.roofline_ratio:.2f}", f"{moved:.2f}",
            *(f"{report.pipes[pipe]:.0%}" for pipe in ("V", "MTE2", "MTE3")),
            str(len(source.splitlines())), f"{len(source) / 1000:.0f}", f"{seconds:.1f}",
        )  # fmt: skip
    Console(width=170).print(table)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
