"""Modelled times of the generated filter kernels, against targets and the roofline of the operator.

    python benchmarks/kernels_filter.py [CASE ...]

Logits are normal with a standard deviation of 3, so that a nucleus of 0.9 holds some 4 % of the row: wider than real
models make it; with one of 1 it holds 60 %. The figures are the cost model's, see docs/cost_model.md; the times to
compile are those of this machine. Exits with 1 where a target is missed.
"""

import sys
import time
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

VOCABULARY = 151936
OFF = VOCABULARY  # a k that turns top-k off
MIXED = (50, OFF, 2000, 1)  # by turns


@dataclass(frozen=True)
class Case:
    """Rows of bfloat16 logits and what is asked of them.

    Attributes:
      target: microseconds; "3x" is three times the first case.
      bytes_a_byte: GM bytes, reads and writes together, for each byte of input, at most.
      times: of the roofline, at most.
      form: "plain", "sorted" (the filter on sorted rows), or "sort".
    """

    rows: int
    k: int | tuple[int, ...] | None
    p: float | None = 0.9
    target: float | str | None = None
    bytes_a_byte: float | None = None
    times: float | None = None
    deviation: float = 3.0
    product: str = "ascend910b"
    cores: int = 48
    form: str = "plain"


CASES = {
    "decoding": Case(8, 50, target=20.0, bytes_a_byte=2.7),
    "the same on 40 cores": Case(8, 50, cores=40),
    "the same on 950": Case(8, 50, product="ascend950", cores=64),
    "top-p alone": Case(8, None, target="3x"),
    "a wide nucleus": Case(8, None, deviation=1.0, target="3x"),
    "a k of 2000": Case(8, 2000, target="3x"),
    "a large k": Case(8, 5000, target="3x"),
    "a very large k": Case(8, 50000, target="3x"),
    "a very large k alone": Case(8, 50000, p=None, target="3x"),
    "mixed k": Case(8, MIXED, target="3x"),
    "k off": Case(8, OFF, target="3x"),
    "one row": Case(1, 50),
    "one row, top-p alone": Case(1, None),
    "many rows, top-p alone": Case(128, None, target=120.0),
    "many rows": Case(128, 50, times=1.5),
    "sorted rows": Case(8, 50, form="sorted"),
    "sorted rows, k off": Case(8, OFF, form="sorted"),
    "a sort": Case(1, None, p=None, form="sort"),
}


def arguments(case):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, case.deviation, (case.rows, VOCABULARY)).astype(ml_dtypes.bfloat16)
    others = {}
    if case.p is not None:
        others["p"] = np.full(case.rows, case.p, np.float32).astype(logits.dtype)
    if case.k is not None:
        others["k"] = np.resize(case.k, case.rows).astype(np.int32)
    if case.form == "sort":
        return ja.sort, {"x": logits}
    if case.form == "plain":
        return ja.apply_top_k_top_p, {"logits": logits, **others}
    order = np.argsort(logits.astype(np.float32), axis=1, kind="stable").astype(np.int32)
    values = np.take_along_axis(logits, order, 1)
    return ja.apply_top_k_top_p_with_sorted, {"sorted_value": values, "sorted_indices": order, **others}


def main():
    columns = (
        "", "rows", "k", "modelled, µs", "target", "", "roofline", "times", "bytes a byte", "V", "MTE2", "MTE3",
        "lines", "KB", "compile, s",
    )  # fmt: skip
    table = Table(*columns, title="Filter, bfloat16, 151936 logits a row")
    missed, first = [], None
    for name in sys.argv[1:] or CASES:
        case = CASES[name]
        function, given = arguments(case)
        start = time.perf_counter()
        program = ja.compile(function, target=case.product, **given)
        seconds = time.perf_counter() - start
        report = program.profile(cores=case.cores, **given)
        first = first or report.microseconds
        size = sum(x.nbytes for x in given.values())
        moved = (report.gm_read_bytes + report.gm_write_bytes) / size
        limit = 3 * first if case.target == "3x" else case.target
        if case.times is not None:
            limit = case.times * report.roofline_microseconds
        too_many = case.bytes_a_byte is not None and moved > case.bytes_a_byte
        is_missed = limit is not None and (report.microseconds > limit or too_many)
        if is_missed:
            missed.append(name)
        source = program.kernels[0].source
        table.add_row(
            name, str(case.rows), "mixed" if case.k == MIXED else str(case.k), f"{report.microseconds:.1f}",
            f"{limit:.1f}" if limit else "",
            "missed" if is_missed else "ok" if limit else "", f"{report.roofline_microseconds:.1f}",
            f"{report.roofline_ratio:.2f}", f"{moved:.2f}",
            *(f"{report.pipes[pipe]:.0%}" for pipe in ("V", "MTE2", "MTE3")),
            str(len(source.splitlines())), f"{len(source) / 1024:.0f}", f"{seconds:.1f}",
        )  # fmt: skip
    Console(width=170).print(table)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
