"""When each instruction of a block runs.

The scalar unit issues in program order. An instruction starts when it is issued, its pipe is free, and the flags and
barriers before it on that pipe have come. A wait holds its own pipe, or the scalar unit where that waits itself. Queues
of issued instructions are taken as long enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jascend.backends.ascend.targets import Costs
from jascend.backends.ascend.twin import PIPES

from .instructions import BARRIER, INSTRUCTION, SET, S

_ALL = PIPES.index("ALL")


@dataclass(frozen=True)
class Segment:
    """One block between two SyncAlls, in cycles from its start.

    Attributes:
        cycles: until everything is complete.
        busy: for each pipe, how long it is occupied.
        exposed: for each place of the trace, by how much its instructions put off the end. Sums to `cycles`, but for
            what the scalar unit does last.
        starts, ends: for each step, when it occupies its pipe (zero for flags and barriers); None unless asked for.
    """

    cycles: float
    busy: tuple[float, ...]
    exposed: np.ndarray
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None


def simulate(steps: np.ndarray, occupied: np.ndarray, rest: np.ndarray, places: int, costs: Costs,
             record: bool = False) -> Segment:  # fmt: skip
    """Runs the steps of one block.

    Args:
        steps: of TRACE_DTYPE, without SyncAll.
        occupied, rest: of `step_cycles`.
        places: how many places the trace has.
        record: keep the start and end of every step.
    """
    issue, scalar, flag_cost, scalar_flag = costs.issue, costs.scalar, costs.flag, costs.flag_scalar
    now = 0.0  # the scalar unit
    free, ready, done = [0.0] * len(PIPES), [0.0] * len(PIPES), [0.0] * len(PIPES)
    busy, exposed = [0.0] * len(PIPES), [0.0] * places
    flags: dict[int, tuple[float, int]] = {}
    end_of_all = 0.0
    starts, ends = ([0.0] * len(steps), [0.0] * len(steps)) if record else (None, None)
    columns = (steps[name].tolist() for name in ("step", "pipe", "to", "serial", "place"))
    for i, (step, pipe, to, serial, place, cycles, after) in enumerate(
        zip(*columns, occupied.tolist(), rest.tolist(), strict=True)
    ):
        if step == INSTRUCTION:
            if pipe == S:
                start = now
                now = end = complete = start + cycles
            else:
                now += issue
                busy[S] += issue
                start = max(now, free[pipe], ready[pipe])
                end = free[pipe] = start + cycles
                complete = end + after
                done[pipe] = max(done[pipe], complete)
            busy[pipe] += cycles
            if complete > end_of_all:
                exposed[place] += complete - end_of_all
                end_of_all = complete
            if record:
                starts[i], ends[i] = start, end
            continue
        now += scalar
        busy[S] += scalar
        if step == SET:
            flags[serial] = (now if pipe == S else max(now, done[pipe], ready[pipe]), pipe)
        elif step == BARRIER:
            if pipe == _ALL:
                now = max(now, *done, *ready)
                ready = [now] * len(PIPES)
            else:
                ready[pipe] = max(ready[pipe], done[pipe])
        elif serial in flags:  # a wait; what was set before the last SyncAll has come
            set_at, setter = flags.pop(serial)
            if to == S:
                now = max(now, set_at + scalar_flag)
            else:
                ready[to] = max(ready[to], set_at + (scalar_flag if setter == S else flag_cost))
    kept = (np.array(starts), np.array(ends)) if record else (None, None)
    return Segment(max(now, end_of_all), tuple(busy), np.array(exposed), *kept)
