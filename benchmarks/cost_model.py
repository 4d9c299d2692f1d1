"""The cost model against what was measured on devices.

Runs kernels that do what the measured ones do (tests/data/twin_cost, written from descriptions) on the twin, and prints
modelled beside measured times. `--write` puts the tables into docs/cost_model.md.
"""

from __future__ import annotations

import argparse
import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jascend.backends.ascend import targets, twin
from jascend.backends.ascend.report import Report, profile_launch
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "tests" / "data" / "twin_cost"
DOCUMENT = ROOT / "docs" / "cost_model.md"
CORES = (48, 40)


@dataclass(frozen=True)
class Case:
    """A measured point.

    Attributes:
        name: what was measured.
        measured: the value, in `unit`.
        unit: "us" or "cycles".
        cores: of the device that it was measured on.
        role: "calibrates" where constants of the model are from the sample that this point is from, else "checks".
        model: the modelled value for a number of cores.
    """

    name: str
    measured: float
    unit: str
    cores: int
    role: str
    model: Callable[[int], float]

    @property
    def error(self) -> float:
        """Relative, for the measured device: 0 is exact, -0.5 half the measured value, +1 twice."""
        return self.model(self.cores) / self.measured - 1

    def shown(self, cores: int) -> str:
        """The modelled value, with its error where that device was measured."""
        return f"{self.model(cores):.4g}" + (f" ({self.error:+.1%})" if cores == self.cores else "")


@functools.cache
def library(name: str) -> twin.Library:
    return twin.build(KERNELS / f"{name}.cpp")


def launch(source: str, entry: str, arrays: list, cores: int, **options) -> Report:
    report = profile_launch(library(source), entry, arrays, cores=cores, **options)
    if report.findings:
        raise RuntimeError("\n".join(map(str, report.findings)))
    return report


def at_size(time: Callable[[int], float], small: int, size: float) -> float:
    """A loop's time at `size` rounds, on the line through two small runs: the model repeats itself every few rounds."""
    one, two = time(small), time(2 * small)
    return one + (two - one) / small * (size - small)


@functools.cache
def add_resident(cores: int, *addresses: int) -> float:
    tiling = struct.pack("III", *addresses)
    report = launch("add", "add_resident", [np.zeros(4096, np.float32)], cores, blocks=1, tiling=tiling)
    return next(line.exposed_cycles for line in report.kernels[0].lines if line.api == "Add")


@functools.cache
def add_stream(blocks: int, tile: int, buffers: int, cores: int) -> float:
    def time(tiles: int) -> float:
        x, y, z = (np.ones(blocks * tiles * tile, np.float16) for _ in range(3))
        tiling = struct.pack("III", tiles, tile, buffers)
        return launch("add", "add_stream", [x, y, z], cores, blocks=blocks, tiling=tiling).microseconds

    return at_size(time, 4 * buffers, 2**26 / tile / blocks)


@functools.cache
def read_pieces(cores: int) -> float:
    def time(tiles: int) -> float:
        x = np.ones(cores * tiles * 64 * 256, np.uint8)
        tiling = struct.pack("III", tiles, 0, 2)
        return launch("add", "read_pieces", [x], cores, blocks=cores, tiling=tiling).microseconds

    return at_size(time, 8, 302e6 / (64 * 128) / cores)


@functools.cache
def sample(vocabulary: int, k: int, cores: int) -> float:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, vocabulary).astype(np.float32)
    noise = rng.exponential(size=vocabulary).astype(np.float32)
    out = np.zeros(1, np.int32)
    arrays = [logits, np.array([k], np.int32), np.array([0.9], np.float32), noise, out]
    tiling = struct.pack("II", vocabulary, -(-vocabulary // 32) * 32)
    report = launch("sample", "sample", arrays, cores, blocks=1, tiling=tiling)
    ranked = np.argsort(-logits, kind="stable")[:k]
    weights = np.exp(logits[ranked] - logits[ranked[0]])
    nucleus = 1 + int((np.cumsum(weights / weights.sum()) <= 0.9).sum())
    assert out[0] == ranked[np.argmax(weights[:nucleus] / (noise[:nucleus] + 1e-8))]
    return report.microseconds


@functools.cache
def route(tokens: int, hidden: int, cores: int, k: int = 8, experts: int = 256) -> float:
    rng = np.random.default_rng(0)
    rows = tokens * k
    x = rng.integers(0, 2**16, (tokens, hidden)).astype(np.uint16)
    ids = np.argsort(rng.random((tokens, experts)), axis=1)[:, :k].astype(np.int32)
    expanded, row = np.zeros((rows, hidden), np.uint16), np.zeros(rows, np.int32)
    counts = np.zeros(experts, np.int32)
    tiling = struct.pack("5I", tokens, k, hidden, experts, 1 if rows <= 6144 else 16)
    report = launch("routing", "route", [x, ids, expanded, row, counts], cores, blocks=min(cores, rows), tiling=tiling,
                    workspace_bytes=24 * rows)  # fmt: skip
    order = np.argsort(ids.ravel(), kind="stable")
    assert (row[order] == np.arange(rows)).all() and (expanded == x[order // k]).all()
    assert (counts == np.bincount(ids.ravel(), minlength=experts)).all()
    return report.microseconds


CASES = [
    Case("Add of 4096 floats in UB", 88, "cycles", 48, "calibrates",
         lambda cores: add_resident(cores, 0, 0x10100, 0x20000)),
    Case("the same, both operands in one bank group", 154, "cycles", 48, "calibrates",
         lambda cores: add_resident(cores, 0, 0x10000, 0x14100)),
    Case("the same, the result in a bank that is read", 139, "cycles", 48, "calibrates",
         lambda cores: add_resident(cores, 0, 0x10100, 0x4020)),
    Case("Add of 67M halves on one core, 8 KB tiles, one buffer", 6909, "us", 48, "calibrates",
         lambda cores: add_stream(1, 4096, 1, cores)),
    Case("the same on all cores, 30 KB tiles, two buffers", 184.5, "us", 48, "calibrates",
         lambda cores: add_stream(cores, 15360, 2, cores)),
    Case("302 MB read in pieces of 128 B", 221, "us", 48, "calibrates", read_pieces),
    Case("sampler 1x32, k 20, p 0.9", 12.2, "us", 40, "checks", lambda cores: sample(32, 20, cores)),
    Case("sampler 1x32000, k 50, p 0.9", 41.8, "us", 40, "checks", lambda cores: sample(32000, 50, cores)),
    Case("routing 1x2048 bf16, k 8 of 256", 19, "us", 40, "checks", lambda cores: route(1, 2048, cores)),
    Case("routing 507x4608 bf16, k 8 of 256", 57.6, "us", 40, "checks", lambda cores: route(507, 4608, cores)),
    Case("routing 4096x2048 bf16, k 8 of 256", 124.4, "us", 40, "checks", lambda cores: route(4096, 2048, cores)),
]  # fmt: skip

# The public hand-written kernels themselves, with the tiling that their host code computes for 40 cores. They are not
# part of the project, so these are results of one run, in November 2026; random logits have a deviation of 2. Measured
# times are of an older state of those kernels than any that we ran.
THEMSELVES = [
    ("sampler 1x32, k 20, p 0.9", 12.2, 6.1, "August 2026"),
    ("sampler 1x32000, k 50, p 0.9", 41.8, 25.7, "August 2026"),
    ("sampler 1x32000, k 2000, p 0.99", 450, 226.7, "August 2026"),
    ("routing 1x2048 bf16, k 8 of 256", 19, 15.6, "November 2025"),
    ("the same", 19, 5.6, "August 2026, without a pass through GM"),
    ("routing 507x4608 bf16, k 8 of 256", 57.6, 54.1, "November 2025"),
    ("the same", 57.6, 41.9, "August 2026"),
    ("routing 4096x2048 bf16, k 8 of 256", 124.4, 239.2, "November 2025, gather indices"),
    ("the same", 124.4, 149.3, "November 2025, scatter indices"),
    ("the same", 124.4, 125.2, "August 2026"),
    ("the same, static quantization", 152.7, 95.7, "August 2026"),
]

NOT_REPLAYED = [
    (
        "sampler 1x32000, k 2000, p 0.99",
        "450 us",
        "no source of ours for its merges through GM; the kernel itself: above",
    ),
    (
        "sampler 140x153600 bf16",
        "1251.6 us",
        "measured with a k and p that the table does not give: the kernel itself comes to 241 us with k 50, to 3879 us "
        "with p 0.9 alone (4 rows a core, each modelled alone)",
    ),
    ("copies of 302 MB four times, from GM and from L2", "828 and 366 us", "the rate of L2 is derived from them"),
    ("routing with quantization", "152.7 to 213.6 us", "no source of ours; the kernel itself, static: above"),
    ("softmax 128x128 on 950", "44113 to 1785 cycles", "register-level vector functions, which the twin does not run"),
]

HEADER = ("case", "measured", "on cores", "role", *(f"model, {cores} cores" for cores in CORES))


def rows() -> list[tuple[str, ...]]:
    """The table of accuracy."""
    return [
        (case.name, f"{case.measured:g} {case.unit}", str(case.cores), case.role,
         *(case.shown(cores) for cores in CORES))
        for case in CASES
    ]  # fmt: skip


def themselves() -> list[tuple[str, ...]]:
    """The table of the hand-written kernels."""
    return [(name, f"{measured:g} us", f"{model:g} us ({model / measured - 1:+.0%})", state)
            for name, measured, model, state in THEMSELVES]  # fmt: skip


def markdown(header: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *body)]
    return "\n".join(lines) + "\n"


def fact_rows(architecture: int) -> list[tuple[str, ...]]:
    """The constants of one architecture."""
    facts = targets.COSTS[architecture].facts
    return [(f"`{name}`", f"{fact.value:g} {fact.unit}", fact.kind, fact.source) for name, fact in facts.items()]


def tables() -> dict[str, str]:
    """Each generated part of the document, by name."""
    facts = ("constant", "value", "kind", "source")
    return {
        "accuracy": markdown(HEADER, rows()),
        "themselves": markdown(("case", "measured", "model, 40 cores", "state of the kernel"), themselves()),
        "not replayed": markdown(("case", "measured", "why not"), NOT_REPLAYED),
        "constants 2201": markdown(facts, fact_rows(2201)),
        "constants 3510": markdown(facts, fact_rows(3510)),
    }


def filled(document: str, parts: dict[str, str]) -> str:
    """The document with each part between its two marks replaced."""
    for name, text in parts.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, rest = document.split(begin)
        document = before + begin + text + end + rest.split(end)[1]
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/cost_model.md")
    options = parser.parse_args()
    console = Console()
    with console.status("running the kernels on the twin"):
        body = rows()
    table = Table(*HEADER, title="The model against measurements")
    for row in body:
        table.add_row(*row)
    console.print(table)
    missing = Table("case", "measured", "why not", title="Not replayed")
    for row in NOT_REPLAYED:
        missing.add_row(*row)
    console.print(missing)
    if options.write:
        DOCUMENT.write_text(filled(DOCUMENT.read_text(), tables()))


if __name__ == "__main__":
    main()
