"""Gathers, scatters, slices and updates at positions that are computed: for CANN's libraries, a list of positions each.

The dimensions that are indexed become one, whose elements are counted through; several neighbours at a position are as
many positions. The libraries then read, replace or add to slices of one dimension. A kernel computes the list, so that
nothing but what is read or written is moved; where the indexed dimensions are not beside each other, the tensor is
transposed before.

Positions that are out of bounds are moved inside, or what they stand for is left out: a gather fills in, an addition
adds nothing, and an update writes once more what another update writes, or what is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from jascend.libraries import NoLibraryOperator, call, register

_MOST_POSITIONS = (1 << 31) - 1


@dataclass(frozen=True)
class _Pieces:
    """Pieces of a tensor, one for each start.

    Attributes:
      dims: the dimensions that starts are given for, in order.
      windows: how many positions a piece has in each of them.
      positions: [*batch, *windows] int32, in the one dimension that they become.
      inside: [*batch], which pieces were inside from the start; None where all are known to be.
    """

    shape: tuple[int, ...]
    dims: tuple[int, ...]
    windows: tuple[int, ...]
    positions: jax.Array
    inside: jax.Array | None

    @property
    def batch(self) -> tuple[int, ...]:
        return self.positions.shape[: self.positions.ndim - len(self.windows)]

    @property
    def others(self) -> tuple[int, ...]:
        return tuple(dim for dim in range(len(self.shape)) if dim not in self.dims)

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions with those of `dims` side by side: in place where they are, else in front."""
        first, last = self.dims[0], self.dims[-1]
        adjacent = last - first + 1 == len(self.dims)
        return tuple(range(len(self.shape))) if adjacent else (*self.dims, *self.others)

    @property
    def axis(self) -> int:
        """Where `dims` start in that order, and the one dimension is."""
        return self.order.index(self.dims[0])

    @property
    def result_axes(self) -> tuple[tuple[str, int], ...]:
        """What the dimensions of [before, *batch, *windows, after] are: those of the tensor, and of the batch."""
        before, after = self.others[: self.axis], self.others[self.axis :]
        batch = [("batch", i) for i in range(len(self.batch))]
        return (*(("dim", d) for d in before), *batch, *(("dim", d) for d in (*self.dims, *after)))

    def joined(self, x: jax.Array) -> jax.Array:
        """A tensor with its dimensions `dims` as one."""
        sizes = [self.shape[dim] for dim in self.others]
        whole = math.prod(self.shape[dim] for dim in self.dims)
        x = x if self.order == tuple(range(x.ndim)) else lax.transpose(x, self.order)
        return x.reshape(*sizes[: self.axis], whole, *sizes[self.axis :])

    def restored(self, x: jax.Array) -> jax.Array:
        """The other way round."""
        x = x.reshape([self.shape[dim] for dim in self.order])
        return (
            x if self.order == tuple(range(x.ndim)) else lax.transpose(x, [self.order.index(d) for d in range(x.ndim)])
        )

    def over_result(self, of_batch: jax.Array) -> jax.Array:
        """[*batch] over [before, *batch, *windows, after]."""
        shape = [self._size(*axis) for axis in self.result_axes]
        return lax.broadcast_in_dim(of_batch, shape, [self.axis + i for i in range(len(self.batch))])

    def listed(self, result: jax.Array) -> jax.Array:
        """[before, *batch, *windows, after] with the positions as a list."""
        return result.reshape(
            *result.shape[: self.axis], self.positions.size, *result.shape[self.axis + self.positions.ndim :]
        )

    def _size(self, kind: str, number: int) -> int:
        if kind == "batch":
            return self.batch[number]
        return self.windows[self.dims.index(number)] if number in self.dims else self.shape[number]


def _pieces(
    shape: Sequence[int], starts: dict[int, jax.Array], windows: Sequence[int], mode, own: Sequence[int]
) -> _Pieces:
    """`starts` by dimension, [*batch] each; `windows` for all dimensions; those of `own` are inside by themselves. A
    window that is all there is of a dimension starts where this does, unless what is outside counts."""
    if mode != lax.GatherScatterMode.FILL_OR_DROP:
        partial = {dim: start for dim, start in starts.items() if windows[dim] < shape[dim]}
        starts = partial or dict([min(starts.items())])
    dims = tuple(sorted(starts))
    if math.prod(shape[dim] for dim in dims) > _MOST_POSITIONS:
        raise NoLibraryOperator(f"positions in dimensions {list(dims)} of {list(shape)}; kernels count them with int32")
    batch, inside = next(iter(starts.values())).shape, None
    positions = jnp.zeros((*batch, *[1] * len(dims)), jnp.int32)
    for number, dim in enumerate(dims):
        start, last = starts[dim], shape[dim] - windows[dim]
        if dim not in own and mode != lax.GatherScatterMode.PROMISE_IN_BOUNDS:
            moved = jnp.clip(start, 0, last)
            if mode == lax.GatherScatterMode.FILL_OR_DROP:
                inside = start == moved if inside is None else inside & (start == moved)
            start = moved
        window = [windows[each] for each in dims[: number + 1]] + [1] * (len(dims) - number - 1)
        start = lax.broadcast_in_dim(start, (*batch, *window), range(len(batch)))
        if windows[dim] > 1:
            start = start + lax.broadcasted_iota(jnp.int32, start.shape, len(batch) + number)
        positions = start if number == 0 else positions * shape[dim] + start
    return _Pieces(tuple(shape), dims, tuple(windows[dim] for dim in dims), positions, inside)


def _starts(
    what: str, rank: int, indices: jax.Array, index_map: Sequence[int], batching: Sequence[int], own: Sequence[int]
) -> dict[int, jax.Array]:
    """The starts by dimension: columns of the indices, and for the dimensions of batches their own positions. Where
    there are none, as in `x.at[:].set(y)`, pieces begin where the tensor does."""
    if indices.dtype != jnp.int32:
        raise NoLibraryOperator(f"a {what} by {indices.dtype}; kernels compute with int32")
    batch = indices.shape[:-1]
    columns = [lax.index_in_dim(indices, i, -1, keepdims=False) for i in range(indices.shape[-1])]
    starts = dict(zip(index_map, columns)) | {
        dim: lax.broadcasted_iota(jnp.int32, batch, position) for dim, position in zip(batching, own)
    }
    if not starts and not rank:
        raise NoLibraryOperator(f"a {what} of a single number")
    return starts or {0: jnp.zeros(batch, jnp.int32)}


_NARROW = (jnp.bool_, jnp.int8)  # what kernels select between as int32
_FILLS = {"bool": True, "int8": jnp.iinfo(jnp.int8).min, "int32": jnp.iinfo(jnp.int32).min}


def _held(dtype, what: str):
    """What kernels select between elements of a dtype as; raises NoLibraryOperator with `what` where they do not."""
    if dtype in _NARROW:
        return jnp.int32
    if not jnp.issubdtype(dtype, jnp.floating) and dtype != jnp.int32:
        raise NoLibraryOperator(what.format(dtype))
    return dtype


def _gather(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    numbers, mode = dimension_numbers, lax.GatherScatterMode.from_any(mode)
    batching = numbers.operand_batching_dims
    starts = _starts("gather", x.ndim, indices, numbers.start_index_map, batching, numbers.start_indices_batching_dims)
    x = lax.slice(x, [0] * x.ndim, [size if dim in starts else slice_sizes[dim] for dim, size in enumerate(x.shape)])
    pieces = _pieces(x.shape, starts, slice_sizes, mode, batching)
    out = _taken(x, pieces)
    if pieces.inside is not None:
        fill = _FILLS.get(x.dtype.name, jnp.nan) if fill_value is None else fill_value
        held = _held(x.dtype, "a gather of {} that fills in what is out of bounds")
        filled = jnp.where(pieces.over_result(pieces.inside), out.astype(held), jnp.asarray(fill, held))
        out = filled.astype(x.dtype)
    gone = {("dim", dim) for dim in (*numbers.collapsed_slice_dims, *batching)}
    kept = [axis for axis in pieces.result_axes if axis not in gone]
    out = out.reshape([size for size, axis in zip(out.shape, pieces.result_axes) if axis not in gone])
    windows = iter(sorted(axis for axis in kept if axis[0] == "dim"))
    batches = iter(("batch", i) for i in range(len(pieces.batch)))
    wanted = [next(windows) if i in numbers.offset_dims else next(batches) for i in range(len(kept))]
    return lax.transpose(out, [kept.index(axis) for axis in wanted])


def _taken(x: jax.Array, pieces: _Pieces) -> jax.Array:
    """[before, *batch, *windows, after] of a tensor."""
    out = call("aclnnIndexSelect", pieces.joined(x), pieces.positions.reshape(-1), dims=(pieces.axis,))
    return out.reshape([*out.shape[: pieces.axis], *pieces.positions.shape, *out.shape[pieces.axis + 1 :]])


def _dynamic_slice(x, *starts, slice_sizes):
    pieces = _neighbours(x.shape, starts, slice_sizes)
    return x if pieces is None else lax.transpose(_taken(x, pieces), _in_order(pieces))


def _dynamic_update_slice(x, update, *starts):
    pieces = _neighbours(x.shape, starts, update.shape)
    return (
        update
        if pieces is None
        else _replaced(x, pieces, lax.transpose(update, [dim for _, dim in pieces.result_axes]))
    )


def _neighbours(shape: Sequence[int], starts: Sequence[jax.Array], sizes: Sequence[int]) -> _Pieces | None:
    """The piece of some dimensions from a position on that is moved until it is inside;
    None where it is all there is."""
    partial = {dim: start.astype(jnp.int32) for dim, start in enumerate(starts) if sizes[dim] != shape[dim]}
    return _pieces(shape, partial, sizes, lax.GatherScatterMode.CLIP, ()) if partial else None


def _in_order(pieces: _Pieces) -> list[int]:
    return [pieces.result_axes.index(("dim", dim)) for dim in range(len(pieces.shape))]


def _scattered(x, indices, updates, dimension_numbers, mode) -> tuple[_Pieces, jax.Array]:
    """The pieces of a scatter, and the updates in the order of [before, *batch, *windows, after]."""
    numbers = dimension_numbers
    batching = numbers.operand_batching_dims
    without = {*numbers.inserted_window_dims, *batching}
    places = dict(zip((dim for dim in range(x.ndim) if dim not in without), numbers.update_window_dims))
    windows = [updates.shape[places[dim]] if dim in places else 1 for dim in range(x.ndim)]
    index_map, own = numbers.scatter_dims_to_operand_dims, numbers.scatter_indices_batching_dims
    starts = _starts("scatter", x.ndim, indices, index_map, batching, own)
    starts |= {
        dim: jnp.zeros(indices.shape[:-1], jnp.int32)
        for dim in range(x.ndim)
        if windows[dim] < x.shape[dim] and dim not in starts
    }
    pieces = _pieces(x.shape, starts, windows, lax.GatherScatterMode.from_any(mode), batching)
    of_batch = [i for i in range(updates.ndim) if i not in numbers.update_window_dims]
    axes = [of_batch[number] if kind == "batch" else places.get(number) for kind, number in pieces.result_axes]
    updates = lax.transpose(updates, [axis for axis in axes if axis is not None])
    return pieces, updates.reshape([pieces._size(*axis) for axis in pieces.result_axes])


def _scatter(x, indices, updates, *, dimension_numbers, mode, **_):
    pieces, updates = _scattered(x, indices, updates, dimension_numbers, mode)
    if pieces.inside is not None:
        held = _held(x.dtype, "a scatter of {} that leaves out what is out of bounds, which aclnnIndexCopy does not: "
                              "where nothing is, `.at[...].set(..., mode='promise_in_bounds')`")  # fmt: skip
        pieces, updates = _only_inside(x.astype(held), pieces, updates.astype(held))
        return _replaced(x, pieces, updates.astype(x.dtype))
    return _replaced(x, pieces, updates)


def _only_inside(x: jax.Array, pieces: _Pieces, updates: jax.Array) -> tuple[_Pieces, jax.Array]:
    """Updates of which those out of bounds are the first one that is not, or, where there is none, what is there."""
    count, window = math.prod(pieces.batch), math.prod(pieces.windows)
    held = _taken(x, pieces)
    if count == 1:
        return pieces, jnp.where(pieces.over_result(pieces.inside), updates, held)
    axis = pieces.axis
    inside = pieces.inside.astype(jnp.float32).reshape(count)
    first = call("aclnnArgMax", inside, dims=(0,)).reshape(1)
    places = pieces.positions.reshape(count, window)
    places = jnp.where(inside[:, None] > 0, places, call("aclnnIndexSelect", places, first, dims=(0,)))
    parts = [each.reshape(*each.shape[:axis], count, window, *each.shape[axis + pieces.positions.ndim :])
             for each in (updates, held)]  # fmt: skip
    own, there = (call("aclnnIndexSelect", each, first, dims=(axis,)) for each in parts)
    is_one = lax.broadcast_in_dim(call("aclnnIndexSelect", inside, first, dims=(0,)), own.shape, [axis])
    of_first = jnp.where(is_one > 0, own, there)
    kept = lax.broadcast_in_dim(inside, parts[0].shape, [axis]) > 0
    updates = jnp.where(kept, parts[0], of_first).reshape(updates.shape)
    return _Pieces(pieces.shape, pieces.dims, pieces.windows, places.reshape(pieces.positions.shape), None), updates


def _replaced(x: jax.Array, pieces: _Pieces, updates: jax.Array) -> jax.Array:
    positions = pieces.positions.reshape(-1)
    return pieces.restored(
        call("aclnnIndexCopy", pieces.joined(x), positions, pieces.listed(updates), dims=(pieces.axis,))
    )


def _scatter_add(x, indices, updates, *, dimension_numbers, mode, **_):
    pieces, updates = _scattered(x, indices, updates, dimension_numbers, mode)
    if pieces.inside is not None:
        nothing = -0.0 if jnp.issubdtype(x.dtype, jnp.floating) else 0
        updates = jnp.where(pieces.over_result(pieces.inside), updates, jnp.asarray(nothing, x.dtype))
    updates = pieces.listed(updates)
    spread = lax.broadcast_in_dim(pieces.positions.reshape(-1), updates.shape, [pieces.axis])
    return pieces.restored(call("aclnnScatterAdd", pieces.joined(x), spread, updates, dims=(pieces.axis,)))


def _combining(primitive) -> None:
    def refuse(*_, **__):
        raise NoLibraryOperator("the libraries replace slices and add to them, no more")

    register(primitive, refuse)


register(lax.gather_p, _gather)
register(lax.dynamic_slice_p, _dynamic_slice)
register(lax.dynamic_update_slice_p, _dynamic_update_slice)
register(lax.scatter_p, _scatter)
register(lax.scatter_add_p, _scatter_add)
for _primitive in (lax.scatter_max_p, lax.scatter_min_p, lax.scatter_mul_p):
    _combining(_primitive)
