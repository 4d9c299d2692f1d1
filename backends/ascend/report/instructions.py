"""What each step of a trace costs on its pipe, in cycles.

A vector instruction of r repeats (256 bytes each) occupies its pipe for a share of the start-up and r times the API's
cycles; the rest of the start-up passes before its result is there. So instructions in a row overlap, an instruction
behind a barrier does not, and both cost what the guide's formula says.

Repeats whose operands collide in the banks of UB take longer (910B): 16 bank groups of 3 banks lie in the address bits
[8:5] and [17:16], and a group serves one read in a cycle, a bank one read or write. What is written comes a repeat
after what is read, if that helps: so writing to the very groups that are read costs nothing, as in place, but writing
to some of them does. Source: the guide's sample bank_conflict_ub, and its scenarios.

A copy occupies its pipe for max(issue, pieces, bytes / rate), and is complete no sooner than the latency of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jascend.backends.ascend.targets import BANKED, Costs
from jascend.backends.ascend.twin import PIPES, STEPS, Trace
from jascend.backends.ascend.twin.library import NOWHERE

S, V, MTE2, MTE3 = (PIPES.index(name) for name in ("S", "V", "MTE2", "MTE3"))
INSTRUCTION, SET, WAIT, BARRIER, SYNC_ALL = range(len(STEPS))

_REDUCTIONS = ("ReduceMax", "ReduceMin")
# Of functions that the trace has as one instruction, the dependent instructions behind the first.
_MORE_STEPS = {"Sigmoid": 3, "Round": 1, "Rint": 1, "AscendQuant": 3, "SoftMax": 5}


@dataclass(frozen=True)
class Rates:
    """What one core moves when as many cores are active as there are, in bytes a second."""

    read: float
    read_l2: float
    write: float


def split(trace: Trace) -> list[np.ndarray]:
    """The steps of a block between its SyncAlls."""
    syncs = np.flatnonzero(trace.steps["step"] == SYNC_ALL)
    return [part[part["step"] != SYNC_ALL] for part in np.split(trace.steps, syncs)]


def vector_cycles(api: str, width: int, repeats: np.ndarray, costs: Costs) -> np.ndarray:
    """Cycles of vector work of an API on elements of `width` bytes, without the start-up of its first instruction.

    An API that the table does not know counts one cycle a repeat; `unknown_apis` finds them.
    """
    wide, narrow = costs.vector.get(api, (1.0, 1.0))
    cycles, start = (narrow if width == 2 else wide), costs.vector_start
    repeats = repeats.astype(float)
    if api in costs.chained:
        return repeats * (start + cycles)
    work = repeats * cycles
    if api in ("Sort", "Sort<MERGE_SORT>"):  # Sort32, then merges of four with a copy back each
        levels = np.ceil(np.log(np.maximum(repeats, 1)) / np.log(4) - 1e-9)
        return work + levels * (work + repeats + start)
    if api in _REDUCTIONS:  # each round leaves a value and an index for a repeat
        per_repeat = 256 // max(width, 2)
        left = repeats
        while (left > 1).any():
            left = np.where(left > 1, np.ceil(2 * left / per_repeat), 0)
            work = work + np.where(left > 0, start + cycles * left, 0)
    return work + _MORE_STEPS.get(api, 0) * start


_GROUPS = 16  # and so many repeats until the pattern of groups comes again


def bank_cycles(steps: np.ndarray, banked: np.ndarray, costs: Costs) -> np.ndarray:
    """Cycles that vector instructions lose to conflicts of banks.

    Args:
        steps: vector instructions, of TRACE_DTYPE.
        banked: for each, whether its operands are walked as its strides say.
        costs: of the product.
    """
    lost = np.zeros(len(steps))
    two = (steps["address"] != NOWHERE).sum(axis=1) >= 2
    chosen = np.flatnonzero(banked & two) if costs.bank_read or costs.bank_write else []
    if not len(chosen):
        return lost
    fields = ("address", "block_stride", "repeat_stride")
    keys = np.concatenate([steps[name][chosen].astype(np.int64) for name in fields], axis=1)
    keys = np.concatenate([keys, np.minimum(steps["repeats"][chosen], 2**31).astype(np.int64)[:, None]], axis=1)
    kinds, kind = np.unique(keys, axis=0, return_inverse=True)
    address, block, repeat, count = kinds[:, :3], kinds[:, 3:6], kinds[:, 6:9], kinds[:, 9]
    there = address != NOWHERE
    turn = np.arange(_GROUPS)
    blocks = address[..., None] // 32 + repeat[..., None] * turn  # kind, operand, repeat
    bits = 1 << (blocks[..., None] + block[..., None, None] * np.arange(8)) % _GROUPS
    groups = np.bitwise_or.reduce(bits, axis=-1) * there[..., None]
    banks = blocks * 32 >> 16
    written, first, second = np.moveaxis(groups, 1, 0)
    reads = (first & second != 0) & (address[:, 1] != address[:, 2])[:, None]
    writes = np.zeros_like(reads)
    for k in (1, 2):
        writes |= (groups[:, k] & written != 0) & (groups[:, k] != written) & (banks[:, k] == banks[:, 0])
    times = (count[:, None] - turn + _GROUPS - 1) // _GROUPS  # how many repeats follow this turn of the pattern
    cycles = (np.maximum(times, 0) * (reads * costs.bank_read + writes * costs.bank_write)).sum(axis=1)
    lost[chosen] = cycles[kind.reshape(-1)]
    return lost


def unknown_apis(traces: list[Trace], costs: Costs) -> list[str]:
    """Vector APIs in these traces that the product's table does not know."""
    found: set[str] = set()
    for trace in traces:
        used = np.unique(trace.steps["place"][(trace.steps["step"] == INSTRUCTION) & (trace.steps["pipe"] == V)])
        found.update(trace.places[place][0] for place in used)
    return sorted(found - costs.vector.keys())


def step_cycles(steps: np.ndarray, places: list, hits: np.ndarray, rates: Rates, costs: Costs):
    """Two arrays by step: cycles for which it occupies its pipe, and cycles from there until it is complete.

    Args:
        steps: of one block, of TRACE_DTYPE.
        places: of its trace.
        hits: for each step, the share of its bytes that L2 has.
        rates: of one core.
        costs: of the product.
    """
    occupied, rest = np.zeros(len(steps)), np.zeros(len(steps))
    instruction, pipe = steps["step"] == INSTRUCTION, steps["pipe"]

    vector = instruction & (pipe == V)
    kinds = steps["place"].astype(np.int64) * 256 + steps["width"]
    for kind in np.unique(kinds[vector]):
        chosen = vector & (kinds == kind)
        api = places[kind >> 8][0]
        occupied[chosen] = vector_cycles(api, int(kind & 255), steps["repeats"][chosen], costs)
    banked = [place for place, (api, *_) in enumerate(places) if api in BANKED]
    occupied[vector] += bank_cycles(steps[vector], np.isin(steps["place"][vector], banked), costs)
    occupied[vector] += costs.vector_follow * costs.vector_start
    rest[vector] = (1 - costs.vector_follow) * costs.vector_start

    scalar = instruction & (pipe == S)
    occupied[scalar] = np.where(steps["bytes"][scalar] > 0, costs.scalar_gm, costs.scalar_ub)

    for direction, latency in ((MTE2, costs.read_latency), (MTE3, costs.write_latency)):
        chosen = instruction & (pipe == direction)
        copies, hit = steps[chosen], hits[chosen]
        if direction == MTE2:
            seconds = copies["bytes"] * ((1 - hit) / rates.read + hit / rates.read_l2)
        else:
            seconds = copies["bytes"] / rates.write
        seconds = seconds * np.where(copies["offset"] % 32 != 0, costs.unaligned, 1.0)
        pieces = np.where(copies["pieces"] > 1, copies["pieces"] * costs.copy_piece, 0)
        busy = np.maximum(np.maximum(seconds * costs.clock, pieces), costs.copy_issue)
        occupied[chosen] = busy
        rest[chosen] = np.maximum(latency - busy, 0)
    return occupied, rest
