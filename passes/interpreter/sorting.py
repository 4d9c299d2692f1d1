"""What the ops that move lanes by what they hold mean."""

from __future__ import annotations

import numpy as np

from .core import function, unspecified


def _sorted(pairs: np.ndarray, run: int) -> np.ndarray:
    """Lists of `run` pairs in descending order, NaN first, the earlier of equals first."""
    scores = pairs[::2].reshape(-1, run)
    order = np.lexsort((-scores, ~np.isnan(scores)), axis=-1)
    return np.take_along_axis(pairs.view(np.int64).reshape(-1, run), order, axis=-1).reshape(-1).view(np.float32)


@function("tile.sort")
def _sort(_, op, scores, indices):
    pairs = np.stack([scores.view(np.int32), indices], axis=-1).reshape(-1).view(np.float32)
    return _sorted(pairs, op.opview.run)


@function("tile.merge")
def _merge(_, op, pairs):
    return _sorted(pairs, op.opview.run * op.opview.ways)


@function("tile.merge_lists")
def _merge_lists(_, op, *lists):
    pairs = np.concatenate(lists)
    return _sorted(pairs, pairs.size // 2)


@function("tile.unpack")
def _unpack(_, op, pairs):
    return pairs[::2].copy(), pairs[1::2].copy().view(np.int32)


@function("tile.compress")
def _compress(_, op, x, mask):
    kept = x[mask]
    packed = unspecified(x.size, x.dtype)
    packed[: kept.size] = kept
    return packed, np.int64(kept.size)


def _in_range(op, indices, size) -> None:
    outside = indices[(indices < 0) | (indices >= size)]
    if outside.size:
        raise IndexError(f"{op.name} of element {outside[0]}: the tile has {size}")


@function("tile.gather")
def _gather(_, op, x, indices):
    _in_range(op, indices, x.size)
    return x[indices]


@function("tile.scatter")
def _scatter(_, op, x, indices, into):
    _in_range(op, indices, into.size)
    value = into.copy()
    value[indices] = x
    places, counts = np.unique(indices, return_counts=True)
    several = places[counts > 1]
    value[several] = unspecified(several.size, into.dtype)
    return value


@function("tile.find_first")
def _find_first(_, op, mask):
    return np.int64(np.argmax(mask) if mask.any() else mask.size)
