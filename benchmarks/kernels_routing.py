"""Modelled times of the generated routing kernels, beside what they are to reach.

    python benchmarks/kernels_routing.py [--check] [CASE ...]

Each kernel is compiled and run once on the twin, its checker off; the cost model gives the times. `bound` is the fixed
roofline, which takes every input byte and every output byte for moved: kernels that overlap reads with writes, and
routings with few active experts, may come below it. `--check` exits with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import jax
import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja
from jascend.backends.ascend import targets

BF16, F32 = ml_dtypes.bfloat16, np.float32
CORES = (48, 40)


@dataclass(frozen=True)
class Case:
    """One routing of K experts a token, of 256.

    Attributes:
      name: what it shows.
      tokens, size: N and H.
      most: the time that it may take on all cores, in us; a string is a multiple of the bound; None: no target.
      smooth: rows of the scale that goes with the experts.
      attributes: what else is asked for.
      slots: K.
      target: the product.
    """

    name: str
    tokens: int
    size: int
    most: float | str | None
    smooth: int = 0
    attributes: dict = field(default_factory=dict)
    slots: int = 8
    target: str = "ascend910b"

    @property
    def cores(self) -> tuple[int, ...]:
        return CORES if self.target == "ascend910b" else (targets.target(self.target).vector_cores,)


INT8 = {"quant_mode": 1}
CASES = (
    Case("copy", 4096, 2048, 90.0),
    Case("copy, pairs of rows", 4096, 2048, None, attributes={"row_idx_type": 1}),
    Case("copy, one token", 1, 2048, 9.0),
    Case("copy, 64 tokens", 64, 7168, "1.5"),
    Case("copy, 32 of 256 experts", 4096, 7168, 100.0, attributes={"active_expert_range": (64, 96)}),
    Case("copy, long rows", 4096, 7168, "1.5"),
    Case("dynamic int8", 4096, 2048, 70.0, attributes=INT8),
    Case("dynamic int8, long rows", 4096, 7168, "1.5", attributes=INT8),
    Case("dynamic int8, a scale an expert", 4096, 2048, "1.5", smooth=256, attributes=INT8),
    Case("dynamic int8, one token", 1, 7168, None, smooth=256, attributes=INT8 | {"expert_tokens_num_type": 2}),
    *(
        Case(f"950: {name}", 4096, 4096, "1.5", attributes={"quant_mode": mode}, slots=6, target="ascend950")
        for name, mode in (("MXFP8", 3), ("FP8, groups of 128", 5), ("MXFP4", 9), ("dynamic int4", 13))
    ),
)  # fmt: skip


def reports(case: Case) -> dict:
    """The report for each number of cores, all of them first."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(case.tokens, case.size)).astype(BF16)
    ids = np.argsort(rng.random((case.tokens, 256)), axis=1)[:, : case.slots].astype(np.int32)
    operands = {"x": x, "expert_idx": ids}
    if case.smooth:
        operands["scale"] = rng.uniform(0.5, 2, (case.smooth, case.size)).astype(F32)

    def route(*given):
        return ja.moe_init_routing(**dict(zip(operands, given)), expert_num=256, **case.attributes)

    specs = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in operands.values())
    program = ja.compile(route, *specs, target=case.target)
    return {cores: program.profile(*operands.values(), cores=cores) for cores in case.cores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 where a target is missed")
    parser.add_argument("cases", nargs="*", help="those whose names contain one of these; all by default")
    arguments = parser.parse_args()
    table = Table(
        "routing", "N x H", "target", "us", "", "on 40 cores", "bound", "of it", "MB in", "MB out", "busiest pipes"
    )
    missed = []
    for case in CASES:
        if arguments.cases and not any(word in case.name for word in arguments.cases):
            continue
        found = reports(case)
        report = found[case.cores[0]]
        bound = report.roofline.seconds * 1e6
        most = float(case.most) * bound if isinstance(case.most, str) else case.most
        verdict = "" if most is None else "ok" if report.microseconds <= most else "missed"
        if verdict == "missed":
            missed.append(case.name)
        pipes = sorted(report.kernels[0].pipes.items(), key=lambda item: -item[1])[:2]
        table.add_row(
            case.name, f"{case.tokens} x {case.size}", "" if most is None else f"{most:.0f}",
            f"{report.microseconds:.1f}", verdict, f"{found[40].microseconds:.1f}" if 40 in found else "",
            f"{bound:.1f}", f"{report.microseconds / bound:.2f}", f"{report.gm_read_bytes / 1e6:.1f}",
            f"{report.gm_write_bytes / 1e6:.1f}", ", ".join(f"{pipe} {share:.0%}" for pipe, share in pipes),
        )  # fmt: skip
    Console(width=140).print(table)
    if arguments.check and missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
