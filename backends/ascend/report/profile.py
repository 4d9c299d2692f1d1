"""From a traced run of a kernel to its modelled time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jascend.backends.ascend import targets
from jascend.backends.ascend.twin import PIPES, Run, Trace

from . import memory
from .instructions import INSTRUCTION, MTE2, Rates, split, step_cycles, unknown_apis
from .timeline import Segment, simulate

_PYTHON_LINE = re.compile(r"\s*// (\S+\.py:\d+)\s*$")
_FUNCTION = re.compile(r'extern "C"|\s*__aicore__ inline ')
_STRETCHES = 3  # rounds in which copies are slowed until all cores together keep to the shared bandwidth


@dataclass(frozen=True)
class Line:
    """One API call of a kernel's source, on the busiest core.

    Attributes:
        api, file, line, text: which call.
        python: "file.py:line" that the call was generated for, or "".
        pipe: where it runs.
        count: how often it ran.
        cycles: for how long it occupied its pipe.
        exposed_cycles: by how much it put off the end; over all lines this sums to the core's time.
        gm_bytes: moved between GM and UB.
    """

    api: str
    file: str
    line: int
    text: str
    python: str
    pipe: str
    count: int
    cycles: float
    exposed_cycles: float
    gm_bytes: int


@dataclass(frozen=True)
class Events:
    """Every instruction of the busiest block: arrays of start and end in cycles, pipe, place and GM bytes."""

    start: np.ndarray
    end: np.ndarray
    pipe: np.ndarray
    place: np.ndarray
    bytes: np.ndarray
    places: list[tuple[str, str, int]]
    callers: Sequence[int]


@dataclass(frozen=True)
class KernelProfile:
    """One launch on the model.

    Attributes:
        name, target: of the kernel.
        blocks, cores: of the launch, and of the product.
        cycles: of the launch, from the first instruction to the last, SyncAlls included; launch cost not.
        seconds: the same with the launch cost.
        launch_seconds: that cost, the copying of tiling data included.
        syncs: how many SyncAlls.
        gm_read_bytes, gm_write_bytes: over all blocks, L2 hit or not.
        l2_read_bytes: the part of the reads that L2 has.
        pipes: for each pipe, the share of `cycles` for which the busiest core's is occupied.
        instructions: for each pipe, over all blocks.
        vector_repeats: 256-byte steps of the vector units, over all blocks.
        copy_pieces: contiguous pieces of all copies.
        core_cycles: for each block, its own time without waiting for others.
        busiest: the block that takes longest.
        rates: what one core moves while all are active, in bytes a second, between each two SyncAlls.
        lines: of the busiest block, the most expensive first.
        events: of the busiest block.
        findings: of the twin's checker.
        unknown: vector APIs that the product's table does not know, and the model takes as one cycle a repeat.
    """

    name: str
    target: str
    blocks: int
    cores: int
    cycles: float
    seconds: float
    launch_seconds: float
    syncs: int
    gm_read_bytes: int
    gm_write_bytes: int
    l2_read_bytes: int
    pipes: dict[str, float]
    instructions: dict[str, int]
    vector_repeats: int
    copy_pieces: int
    core_cycles: tuple[float, ...]
    busiest: int
    rates: tuple[Rates, ...]
    lines: tuple[Line, ...]
    events: Events
    findings: tuple
    unknown: tuple[str, ...]


def profile_kernel(run: Run, target: str, *, name: str, cores: int | None = None) -> KernelProfile:
    """Models a launch that was traced.

    Args:
        run: of `Library.launch(..., trace=True)`.
        target: the product.
        name: of the kernel.
        cores: vector cores of the product; more blocks than these run one after another. None: `targets`' number.
    Raises:
        ValueError: the run has no trace, or its target is unknown.
    """
    if run.trace is None:
        raise ValueError(f"{name} was launched without trace=True: there is nothing to model")
    costs, cores = targets.costs(target), cores or targets.target(target).vector_cores
    parts = [split(trace) for trace in run.trace]
    blocks, syncs = len(parts), max(len(part) for part in parts) - 1
    empty = run.trace[0].steps[:0]
    machine = memory.Memory(costs)
    total, l2_read = 0.0, 0.0
    own, results, rates = [0.0] * blocks, [], []
    for epoch in range(syncs + 1):
        programs = [part[epoch] if epoch < len(part) else empty for part in parts]
        hits = machine.epoch(programs)
        modelled = _Epoch(run.trace, programs, hits, cores, costs)
        for block, segment in enumerate(modelled.segments):
            own[block] += segment.cycles
        results.append((total, programs, hits, modelled))
        rates.append(modelled.rates)
        total += modelled.cycles + (costs.sync_all * costs.clock if epoch < syncs else 0)
        reads = [(steps["step"] == INSTRUCTION) & (steps["pipe"] == MTE2) for steps in programs]
        l2_read += sum(float((s["bytes"] * h)[r].sum()) for s, h, r in zip(programs, hits, reads, strict=True))
    busiest = int(np.argmax(own))
    busy = np.sum([modelled.segments[busiest].busy for *_, modelled in results], axis=0)
    exposed = np.sum([modelled.segments[busiest].exposed for *_, modelled in results], axis=0)
    events = _events(run.trace[busiest], busiest, results, costs)
    report = run.report["total"]
    launch = costs.launch + (costs.tiling_copy if run.report["tiling_bytes"] else 0)
    return KernelProfile(
        name=name,
        target=target,
        blocks=blocks,
        cores=cores,
        cycles=total,
        seconds=launch + total / costs.clock,
        launch_seconds=launch,
        syncs=syncs,
        gm_read_bytes=report["gm_read_bytes"],
        gm_write_bytes=report["gm_write_bytes"],
        l2_read_bytes=round(l2_read),
        pipes={pipe: float(busy[i] / total) if total else 0.0 for i, pipe in enumerate(PIPES) if pipe in _SHOWN},
        instructions=dict(report["instructions"]),
        vector_repeats=report["repeats"],
        copy_pieces=int(sum(trace.steps["pieces"].sum() for trace in run.trace)),
        core_cycles=tuple(own),
        busiest=busiest,
        rates=tuple(rates),
        lines=_lines(events, exposed),
        events=events,
        findings=tuple(run.findings),
        unknown=tuple(unknown_apis(run.trace, costs)),
    )


_SHOWN = ("S", "V", "MTE2", "MTE3")


class _Epoch:
    """All blocks between two SyncAlls."""

    def __init__(self, traces, programs, hits, cores: int, costs):
        self._traces, self._programs, self._hits, self._costs = traces, programs, hits, costs
        self.rates = memory.shared_rates(programs, cores, costs)
        least = memory.traffic_seconds(programs, hits, costs) * costs.clock
        self._simulate()
        for _ in range(_STRETCHES):
            self.cycles = self._longest(cores)
            if self.cycles >= least * 0.999:
                return
            slower = self.cycles / least
            self.rates = Rates(*(rate * slower for rate in (self.rates.read, self.rates.read_l2, self.rates.write)))
            self._simulate()
        self.cycles = max(self._longest(cores), least)

    def _simulate(self) -> None:
        """One simulation for all blocks with the same program at the same places."""
        known: dict[tuple, Segment] = {}
        self.segments = []
        for trace, steps, hits in zip(self._traces, self._programs, self._hits, strict=True):
            occupied, rest = step_cycles(steps, trace.places, hits, self.rates, self._costs)
            program = steps.copy()
            program["offset"] = program["argument"] = program["address"] = 0
            key = (program.tobytes(), occupied.tobytes(), tuple(trace.places))
            if key not in known:
                known[key] = simulate(steps, occupied, rest, len(trace.places), self._costs)
            self.segments.append(known[key])

    def _longest(self, cores: int) -> float:
        """The busiest core's time; blocks beyond the number of cores come after others."""
        loads = [0.0] * min(cores, len(self.segments))
        for block, segment in enumerate(self.segments):
            loads[block % len(loads)] += segment.cycles
        return max(loads)


def _events(trace: Trace, block: int, results: list, costs) -> Events:
    """The instructions of one block, simulated again with their times kept."""
    columns: list[tuple] = []
    for offset, programs, hits, modelled in results:
        steps = programs[block]
        occupied, rest = step_cycles(steps, trace.places, hits[block], modelled.rates, costs)
        segment = simulate(steps, occupied, rest, len(trace.places), costs, record=True)
        chosen = steps["step"] == INSTRUCTION
        kept = steps[chosen]
        columns.append((segment.starts[chosen] + offset, segment.ends[chosen] + offset,
                        kept["pipe"], kept["place"], kept["bytes"]))  # fmt: skip
    return Events(*(np.concatenate(column) for column in zip(*columns, strict=True)), trace.places, trace.callers)


def _lines(events: Events, exposed: np.ndarray) -> tuple[Line, ...]:
    """The calls of the source, by what they cost."""
    sources: dict[str, list[str]] = {}
    lines = []
    cycles = np.bincount(events.place, events.end - events.start, len(exposed))
    counts = np.bincount(events.place, minlength=len(exposed))
    moved = np.bincount(events.place, events.bytes, len(exposed))
    pipes = np.zeros(len(exposed), int)
    pipes[events.place] = events.pipe
    for place in np.flatnonzero(counts):
        api, file, number = events.places[place]
        if file not in sources:
            path = Path(file)
            sources[file] = path.read_text(errors="replace").splitlines() if path.is_file() else []
        text = sources[file]
        python = python_line(text, (events.callers and events.callers[place]) or number)
        lines.append(Line(api, file, number, text[number - 1].strip() if 0 < number <= len(text) else "", python,
                          PIPES[pipes[place]], int(counts[place]), float(cycles[place]), float(exposed[place]),
                          int(moved[place])))  # fmt: skip
    return tuple(sorted(lines, key=lambda line: (-line.exposed_cycles, -line.cycles, line.line)))


def python_line(source: Sequence[str], number: int) -> str:
    """The Python line that generated code says it is for: the nearest comment above line `number` in its function
    that names one."""
    for text in reversed(source[: max(number - 1, 0)]):
        if match := _PYTHON_LINE.match(text):
            return match[1]
        if _FUNCTION.match(text):
            break
    return ""
