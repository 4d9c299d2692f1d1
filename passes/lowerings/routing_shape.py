"""The sizes of one routing, and how it is mapped to tiles."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from jascend.backends.ascend.targets import Target

from ..builder import up
from .site import Candidate

_RUNS = (64, 128, 256, 384, 512, 1024, 1536, 2048)  # pairs that one sort puts in order
_ALONE = 1024  # pairs that every core sorts for itself, rather than meet the others
_SLICE = 512  # experts of one step, where there are more than fit one


@dataclass(frozen=True)
class Shape:
    """One routing: what it is, and the tiles that it is done with.

    Attributes:
      tokens, slots, size: N, K and H.
      first, experts: the first active expert, and how many are active.
      all_experts: E.
      capacity: rows of an expert in drop-pad mode, else 0.
      limit: the most rows, or 0.
      lanes: of a block of pairs. The last one is never a pair.
      block: tokens of such a block.
      alone: whether every core orders all pairs for itself.
      width: lanes of a table of counts; one more than a step has experts, at least.
      step: experts of a table that are not those of the next one too.
      steps: how many tables there are.
      cores: of the product.
    """

    tokens: int
    slots: int
    size: int
    first: int
    experts: int
    all_experts: int
    capacity: int
    limit: int
    lanes: int
    block: int
    alone: bool
    width: int
    step: int
    steps: int
    cores: int

    @property
    def pairs(self) -> int:
        return self.tokens * self.slots

    @property
    def row(self) -> int:
        """Lanes of all tables of counts, one behind the other."""
        return (self.steps - 1) * self.step + self.width


def shape_of(op: ir.OpView, slots: int, target: Target, candidate: Candidate, alone: bool = True) -> Shape:
    """That of an op with the operands and attributes of a routing, of so many experts a token. `alone`: whether few pairs
    may be ordered by every core for itself."""
    tokens, size = ir.RankedTensorType(op.x.type).shape
    first, end = list(op.active_expert_range) or (0, op.expert_num)
    experts = end - first
    alone = alone and tokens * slots < _ALONE
    share = tokens if alone else -(-tokens // target.vector_cores)
    # The last lane is free: the end of the list of pairs shows there.
    lanes = next((run for run in _RUNS if run > share * slots), _RUNS[-1])
    lanes = min(lanes, max(candidate.batch, next(run for run in (*_RUNS, 4096, 8192) if run > slots)))
    width = up(experts + 1, 64)
    step, steps = width, 1
    if width > _SLICE:
        width, step = _SLICE, _SLICE - 8
        steps = -(-(experts + 1) // step)
    rows = ir.RankedTensorType(op.expanded_x.type).get_dim_size(0)
    limited = rows < tokens * slots and not op.drop_pad_mode
    return Shape(
        tokens, slots, size, first, experts, op.expert_num, op.expert_capacity if op.drop_pad_mode else 0,
        rows if limited else 0, lanes, (lanes - 1) // max(1, slots), alone, width, step, steps,
        target.vector_cores,
    )  # fmt: skip
