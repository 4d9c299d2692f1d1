"""What the ops of the `tile` dialect mean."""

from __future__ import annotations

import numpy as np
from mlir import ir

from .core import NotInterpreted, dtype_of, flush, function, unspecified


@function("tile.load")
def _load(_, op, memory, offset, count):
    tile = ir.RankedTensorType(op.results[0].type)
    length, view = tile.get_dim_size(0), op.opview
    flat = memory.reshape(-1)
    offset, count = int(offset), int(count)
    if memory.dtype.kind in "ib" and memory.dtype != dtype_of(tile.element_type):  # what is loaded as something else
        lanes = memory.itemsize // dtype_of(tile.element_type).itemsize
        flat, offset, count = flat.view(dtype_of(tile.element_type)), lanes * offset, lanes * count
    if not 0 <= count <= length or offset < 0 or offset + count > flat.size:
        raise IndexError(f"tile.load of {count} elements from {offset}: the memory has {flat.size}, the tile {length}")
    dtype = dtype_of(tile.element_type)
    value = unspecified(length, dtype) if view.pad is None else np.full(length, view.pad, dtype)
    value[:count] = flat[offset : offset + count]
    return value


@function("tile.store")
def _store(_, op, value, memory, offset, count):
    flat = memory.reshape(-1)
    offset, count = int(offset), int(count)
    if not 0 <= count <= value.size or offset < 0 or offset + count > flat.size:
        raise IndexError(f"tile.store of {count} elements to {offset}: the memory has {flat.size}, the tile {value.size}")
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
