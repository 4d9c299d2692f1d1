"""Where bytes come from, and what one core gets of the memory that all share.

A copy hits L2 for the part of it that any core has copied before, if not more than L2 holds went by since. A core's
rate is the least of its own and its share of the total; the share counts cores by the bytes that they move, so that one
core with a long tail is not held to 1/48.
"""

from __future__ import annotations

import numpy as np
from jascend.backends.ascend.targets import Costs

from .instructions import INSTRUCTION, MTE2, MTE3, Rates

_GRANULE = 4096  # bytes remembered as one: by the copy that covers its start
_LINE = 512  # the same for copies that cover no start


class Memory:
    """What L2 has, over the epochs of a launch: the last bytes that any core moved.

    Blocks advance together, one copy each in turn.
    """

    def __init__(self, costs: Costs):
        self._capacity = costs.l2
        self._moved = 0
        self._last: dict[tuple[int, int], int] = {}  # bytes moved when last touched

    def epoch(self, programs: list[np.ndarray]) -> list[np.ndarray]:
        """For each block's steps between two SyncAlls, the share of each step's bytes that L2 has."""
        hits = [np.zeros(len(steps)) for steps in programs]
        copies = [np.flatnonzero((steps["step"] == INSTRUCTION) & (steps["bytes"] > 0)) for steps in programs]
        fields = [
            [programs[block][name][chosen].tolist() for name in ("argument", "offset", "bytes")]
            for block, chosen in enumerate(copies)
        ]
        for turn in range(max(map(len, copies), default=0)):
            for block, chosen in enumerate(copies):
                if turn < len(chosen):
                    argument, offset, size = (column[turn] for column in fields[block])
                    hits[block][chosen[turn]] = self._touch(argument, offset, size)
        return hits

    def _touch(self, argument: int, offset: int, size: int) -> float:
        """Remembers a copy; the part of it that L2 had."""
        keys = [(argument, granule) for granule in range(-(-offset // _GRANULE), -(-(offset + size) // _GRANULE))]
        keys = keys or [(argument, -1 - offset // _LINE)]
        found = 0
        for key in keys:
            at = self._last.get(key)
            found += at is not None and self._moved - at <= self._capacity
            self._last[key] = self._moved
        self._moved += size
        return found / len(keys)


def bytes_moved(steps: np.ndarray, pipe: int) -> int:
    """GM bytes that copies on this pipe move."""
    return int(steps["bytes"][(steps["step"] == INSTRUCTION) & (steps["pipe"] == pipe)].sum())


def active_cores(amounts: list[int], cores: int) -> float:
    """How many cores share a total, each counted by its part of the largest amount."""
    largest = max(amounts, default=0)
    return min(sum(amounts) / largest, cores) if largest else 1.0


def shared_rates(programs: list[np.ndarray], cores: int, costs: Costs) -> Rates:
    """What one core gets while these run side by side."""
    readers = active_cores([bytes_moved(steps, MTE2) for steps in programs], cores)
    writers = active_cores([bytes_moved(steps, MTE3) for steps in programs], cores)
    return Rates(
        read=min(costs.read, costs.total / readers),
        read_l2=min(costs.read_l2, costs.total_l2 / readers),
        write=min(costs.write, costs.total_both / writers),
    )


def traffic_seconds(programs: list[np.ndarray], hits: list[np.ndarray], costs: Costs) -> float:
    """The time that all bytes need at least: they pass L2, and what it lacks comes from memory, reads beside writes."""
    moved = hit_bytes = 0.0
    for steps, hit in zip(programs, hits, strict=True):
        moved += bytes_moved(steps, MTE2) + bytes_moved(steps, MTE3)
        hit_bytes += float((steps["bytes"] * hit)[(steps["step"] == INSTRUCTION) & (steps["pipe"] == MTE2)].sum())
    return max((moved - hit_bytes) / costs.total_both, moved / costs.total_l2)
