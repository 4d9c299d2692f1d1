"""Where bytes come from, and what one core gets of the memory that all share.

A copy hits L2 for the part of it that its core has copied before, if not more than L2 holds went by since on all cores
together, and for what any core touched before the last SyncAll. A core's rate is the least of its own and its share of
the total; the share counts cores by the bytes that they move, so that one core with a long tail is not held to 1/48.
"""

from __future__ import annotations

import numpy as np

from jascend.backends.ascend.targets import Costs

from .instructions import INSTRUCTION, MTE2, MTE3, Rates

_GRANULE = 4096  # bytes remembered as one: by the copy that covers its start
_LINE = 512  # the same for copies that cover no start


class Memory:
    """What L2 has, over the epochs of a launch."""

    def __init__(self, blocks: int, costs: Costs):
        self._capacity = costs.l2
        self._earlier: set[tuple[int, int]] = set()  # touched before the last SyncAll, by any core
        self._moved = [0] * blocks
        self._last: list[dict[tuple[int, int], int]] = [{} for _ in range(blocks)]  # bytes moved when last touched

    def epoch(self, programs: list[np.ndarray], active: float) -> list[np.ndarray]:
        """For each block's steps between two SyncAlls, the share of each step's bytes that L2 has."""
        fits = len(self._earlier) * _GRANULE <= self._capacity
        hits = [self._block(block, steps, active, fits) for block, steps in enumerate(programs)]
        for last in self._last:
            self._earlier.update(last)
        return hits

    def _block(self, block: int, steps: np.ndarray, active: float, fits: bool) -> np.ndarray:
        hits = np.zeros(len(steps))
        last, moved = self._last[block], self._moved[block]
        reach = self._capacity / max(active, 1.0)
        chosen = np.flatnonzero((steps["step"] == INSTRUCTION) & (steps["bytes"] > 0))
        copies = steps[chosen]
        columns = (copies[name].tolist() for name in ("argument", "offset", "bytes"))
        for i, argument, offset, size in zip(chosen.tolist(), *columns, strict=True):
            keys = [(argument, granule) for granule in range(-(-offset // _GRANULE), -(-(offset + size) // _GRANULE))]
            keys = keys or [(argument, -1 - offset // _LINE)]
            found = 0
            for key in keys:
                at = last.get(key)
                found += moved - at <= reach if at is not None else fits and key in self._earlier
                last[key] = moved
            hits[i] = found / len(keys)
            moved += size
        self._moved[block] = moved
        return hits


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
        write=min(costs.write, costs.total / writers),
    )


def traffic_seconds(programs: list[np.ndarray], hits: list[np.ndarray], costs: Costs) -> float:
    """The time that all bytes need at least, reads and writes overlapping."""
    moved = hit_bytes = 0.0
    for steps, hit in zip(programs, hits, strict=True):
        moved += bytes_moved(steps, MTE2) + bytes_moved(steps, MTE3)
        hit_bytes += float((steps["bytes"] * hit)[(steps["step"] == INSTRUCTION) & (steps["pipe"] == MTE2)].sum())
    return (moved - hit_bytes) / costs.total_both + hit_bytes / costs.total_l2
