"""What the ops of the `tile` dialect mean."""

from __future__ import annotations

import numpy as np
from mlir import ir

from .core import dtype_of, flush, function, unspecified


def _in_lanes(memory, dtype, offset, count):
    """Memory, flat, and where a copy begins and how much it moves, in lanes of its tile's dtype."""
    flat, offset, count = memory.reshape(-1), int(offset), int(count)
    if memory.dtype.kind not in "ib" or memory.dtype == dtype:
        return flat, offset, count
    lanes = memory.itemsize // dtype.itemsize
    return flat.view(dtype), lanes * offset, lanes * count


@function("tile.load")
def _load(_, op, memory, offset, count):
    tile = ir.RankedTensorType(op.results[0].type)
    length, view = tile.get_dim_size(0), op.opview
    flat, offset, count = _in_lanes(memory, dtype_of(tile.element_type), offset, count)
    if not 0 <= count <= length or offset < 0 or offset + count > flat.size:
        raise IndexError(f"tile.load of {count} elements from {offset}: the memory has {flat.size}, the tile {length}")
    dtype = dtype_of(tile.element_type)
    value = unspecified(length, dtype) if view.pad is None else np.full(length, view.pad, dtype)
    value[:count] = flat[offset : offset + count]
    return value


@function("tile.store")
def _store(_, op, value, memory, offset, count):
    flat, offset, count = _in_lanes(memory, value.dtype, offset, count)
    if not 0 <= count <= value.size or offset < 0 or offset + count > flat.size:
        raise IndexError(
            f"tile.store of {count} elements to {offset}: the memory has {flat.size}, the tile {value.size}"
        )
    flat[offset : offset + count] = value[:count]
    return ()


@function("tile.reduce")
def _reduce(_, op, x):
    view = op.opview
    groups = x.reshape(-1, view.group)
    if view.kind != "add":
        return groups.max(axis=1) if view.kind == "max" else groups.min(axis=1)
    while groups.shape[1] > 1:  # neighbours first: the tree of eights of the hardware is this one
        if groups.shape[1] % 2:
            groups = np.pad(groups, ((0, 0), (0, 1)))
        groups = flush(groups[:, ::2] + groups[:, 1::2])
    return groups[:, 0]


@function("tile.extract")
def _extract(_, op, x, position):
    if not 0 <= position < x.size:
        raise IndexError(f"tile.extract of element {position}: the tile has {x.size}")
    return x[int(position)]


@function("tile.iota")
def _iota(_, op):
    tile = ir.RankedTensorType(op.results[0].type)
    return np.arange(tile.get_dim_size(0)).astype(dtype_of(tile.element_type))
