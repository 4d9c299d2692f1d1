"""The sizes of one routing, and how it is mapped to tiles."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from jascend.dialect.ascend import results_of_routing, shaped
from jascend.dialect.rules.shaped import INT32_MAX

from ..builder import up
from .site import Site

_RUNS = (64, 128, 256, 384, 512, 1024, 1536, 2048)  # pairs that one sort puts in order
_ALONE = 1024  # pairs that every core sorts for itself, rather than meet the others
_SLICE = 512  # experts of one step, where there are more than fit one
_MANY = 2048  # tokens that blocks are sized for, where any number is served


@dataclass(frozen=True)
class Shape:
    """One routing: what it is, and the tiles that it is done with.

    Attributes:
      tokens, slots, size: N, K and H. N is None where any number of tokens is served.
      least: how many tokens there are at least.
      first, experts: the first active expert, and how many are active.
      all_experts: E.
      capacity: rows of an expert in drop-pad mode, else 0.
      limit: the most rows, or 0 where there can be none too many.
      lanes: of a block of pairs. The last one is never a pair.
      block: tokens of such a block.
      share: tokens that a core puts in order, at most, of as many as sizes are chosen for.
      alone: whether every core orders all pairs for itself.
      width: lanes of a table of counts; one more than a step has experts, at least.
      step: experts of a table that are not those of the next one too.
      steps: how many tables there are.
      cores: of the product.
    """

    tokens: int | None
    least: int
    slots: int
    size: int
    first: int
    experts: int
    all_experts: int
    capacity: int
    limit: int
    lanes: int
    block: int
    share: int
    alone: bool
    width: int
    step: int
    steps: int
    cores: int

    @property
    def pairs(self) -> int:
        """Of so many tokens as are known."""
        return self.tokens * self.slots

    @property
    def is_empty(self) -> bool:
        return 0 in (self.tokens, self.slots)

    @property
    def row(self) -> int:
        """Lanes of all tables of counts, one behind the other."""
        return (self.steps - 1) * self.step + self.width


def ways_of(op: ir.OpView, slots: int, site: Site, most_alone: int = _ALONE) -> list[Shape]:
    """Those of an op with the operands and attributes of a routing, of so many experts a token. Few pairs are ordered
    by every core for itself, but of no more tokens than `most_alone`. Where any number of tokens is served there are
    two ways, that of few tokens first; only that of many if a token has too many experts, and only that of few if there
    cannot be more."""
    tokens = site.known_rows(op.x.type)
    few = min(most_alone, (_ALONE - 1) // max(1, slots))
    if tokens is not None:
        return [_shape_of(op, slots, site, tokens, tokens, alone=tokens <= few)]
    most = site.bound_of_rows(op.x.type) or INT32_MAX
    of_few = [_shape_of(op, slots, site, None, min(few, most), alone=True)] if few else []
    of_many = [_shape_of(op, slots, site, None, min(_MANY, most), least=few + 1 if few else 0)] if most > few else []
    return of_few + of_many


def _shape_of(
    op: ir.OpView, slots: int, site: Site, tokens: int | None, most: int, *, alone: bool = False, least: int = 0
) -> Shape:
    """That of so many tokens, with sizes for `most`."""
    size, cores = ir.RankedTensorType(op.x.type).get_dim_size(1), site.target.vector_cores
    first, end = list(op.active_expert_range) or (0, op.expert_num)
    experts = end - first
    share = most if alone else -(-most // cores)
    # The last lane is free: the end of the list of pairs shows there.
    lanes = next((run for run in _RUNS if run > share * slots), _RUNS[-1])
    lanes = min(lanes, max(site.candidate.batch, next(run for run in (*_RUNS, 4096, 8192) if run > slots)))
    width = up(experts + 1, 64)
    step, steps = width, 1
    if width > _SLICE:
        width, step = _SLICE, _SLICE - 8
        steps = -(-(experts + 1) // step)
    return Shape(
        tokens, least if tokens is None else tokens, slots, size, first, experts, op.expert_num,
        op.expert_capacity if op.drop_pad_mode else 0, _limit(op, tokens, slots), lanes, (lanes - 1) // max(1, slots),
        share, alone, width, step, steps, cores,
    )  # fmt: skip


def _limit(op: ir.OpView, tokens: int | None, slots: int) -> int:
    """What `active_num` limits the rows to; 0 where it does not, or there cannot be as many."""
    if op.drop_pad_mode:
        return 0
    if tokens is not None:
        rows = ir.RankedTensorType(op.expanded_x.type).get_dim_size(0)
        return rows if rows < tokens * slots else 0
    return results_of_routing(op, shaped(op.x).shape[0])["expanded_x"].shape[0].most or 0
