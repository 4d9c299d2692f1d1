"""What ops mean that move rows and lanes to places known beforehand."""

from __future__ import annotations

import numpy as np
from mlir import ir

from .core import dtype_of, function, unspecified


def _check(op, memory, offset: int, rows: int) -> np.ndarray:
    """The rows in global memory, as a view of it."""
    view, flat = op.opview, memory.reshape(-1)
    if rows == 0:
        return flat[:0].reshape(0, view.row_length)
    end = offset + (rows - 1) * view.gm_pitch + view.row_length
    most = ir.RankedTensorType(view.value.type).get_dim_size(0) // view.pitch
    if not 1 <= rows <= most or offset < 0 or end > flat.size:
        raise IndexError(
            f"{op.name} of {rows} rows from {offset} to {end}: the memory has {flat.size}, the tile {most} rows"
        )
    bits = flat.view(f"u{flat.itemsize}")[offset:]  # strides are for NumPy's own dtypes
    strided = np.lib.stride_tricks.as_strided(
        bits, (rows, view.row_length), (view.gm_pitch * flat.itemsize, flat.itemsize)
    )
    return strided.view(flat.dtype)


@function("tile.load_rows")
def _load_rows(_, op, memory, offset, rows):
    view, tile = op.opview, ir.RankedTensorType(op.results[0].type)
    source = _check(op, memory, int(offset), int(rows))
    value = unspecified(tile.get_dim_size(0), dtype_of(tile.element_type))
    if view.pad is not None:
        value[:] = view.pad
    value.reshape(-1, view.pitch)[: int(rows), : view.row_length] = source
    return value


@function("tile.store_rows")
def _store_rows(_, op, value, memory, offset, rows):
    view = op.opview
    target = _check(op, memory, int(offset), int(rows))
    target[:] = value.reshape(-1, view.pitch)[: int(rows), : view.row_length]
    return ()


@function("tile.broadcast")
def _broadcast(_, op, x):
    return np.repeat(x, op.opview.width)


@function("tile.repeat")
def _repeat(_, op, x):
    times = ir.RankedTensorType(op.results[0].type).get_dim_size(0) // x.size
    return np.tile(x.reshape(-1, op.opview.group), times).reshape(-1)


@function("tile.take")
def _take(_, op, x):
    view = op.opview
    return x.reshape(-1, view.group)[:, view.start : view.start + view.count].reshape(-1).copy()


@function("tile.spread")
def _spread(_, op, x):
    view = op.opview
    groups = x.reshape(-1, view.group)
    value = np.full((groups.shape[0], view.width), view.fill, x.dtype)
    value[:, : view.group] = groups
    return value.reshape(-1)


def _slice(op, length: int, offsets, parts: int) -> int:
    static = op.attributes["static_offsets"][0]
    offset = static if static != ir.ShapedType.get_dynamic_stride_or_offset() else int(offsets[0])
    if not 0 <= offset <= length - parts:
        raise IndexError(f"{op.name} of {parts} elements from {offset}: the tile has {length}")
    return offset


@function("tensor.extract_slice")
def _extract_slice(_, op, x, *offsets):
    count = ir.RankedTensorType(op.results[0].type).get_dim_size(0)
    offset = _slice(op, x.size, offsets, count)
    return x[offset : offset + count].copy()


@function("tensor.insert_slice")
def _insert_slice(_, op, part, into, *offsets):
    offset = _slice(op, into.size, offsets, part.size)
    value = into.copy()
    value[offset : offset + part.size] = part
    return value
