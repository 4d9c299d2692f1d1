"""What gating tests share: the stored cases, and the operator in float64 NumPy, written from its definition."""

import functools
import json
from pathlib import Path

import ml_dtypes
import numpy as np
from vectors import Case

DATA = Path(__file__).parent / "data" / "moe_gating_top_k"
_STORED = {"bf16": ml_dtypes.bfloat16}
_NAMES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@functools.cache
def cases() -> list[Case]:
    """Arrays are the inputs and the expected results by name; None where absent."""
    stored = np.load(DATA / "vectors.npz")

    def load(case, description):
        if description is None:
            return None
        array = stored[f"{case}.{description['key']}"]
        return array.view(_STORED.get(description["dtype"], array.dtype))

    loaded = []
    for info in json.loads((DATA / "index.json").read_text())["cases"]:
        described = {**info["inputs"], **info["expected"]}
        info = dict(info, name="", dtype=_NAMES[info["inputs"]["x"]["dtype"]])
        loaded.append(Case(info, {name: load(info["id"], d) for name, d in described.items()}))
    return loaded


def scores(row, norm_type):
    """float64 [E]. NaN counts as -inf, infinite maxima share a softmax, and what is below the normal float32s is 0."""
    x = np.where(np.isnan(row), -np.inf, row.astype(np.float64))
    with np.errstate(all="ignore"):
        if norm_type == 0:
            if np.max(x) == -np.inf:
                return np.zeros_like(x)
            e = np.where(x == np.max(x), 1.0, _normal(np.exp(x - np.max(x))))
            return _normal(e / np.sum(e))
        e = _normal(np.exp(-np.abs(x)))
        return np.where(x < 0, e, 1) / (1 + e) if norm_type == 1 else np.sqrt(np.maximum(x, 0) + np.log1p(e))


def _normal(x):
    return np.where(x < 2.0**-126, 0.0, x)


def choose(row, n, bias, k, k_group, group_count, mode):
    """The ids of a row, and the least difference, relative to the larger, between values whose order decides them.

    Values that are equal do not count: their order is that of their numbers.
    """
    s = n if bias is None else n + bias.astype(np.float64)
    s = np.where(np.isnan(row) | np.isnan(s), -np.inf, s)
    candidates, margin = np.arange(len(s)), np.inf
    if 1 < group_count < len(s) and k_group < group_count:
        ordered = -np.sort(-s.reshape(group_count, -1), axis=-1)
        group = ordered[:, 0] if mode == 0 else ordered[:, 0] + ordered[:, 1]
        best = _descending(group)
        above, below = group[best[k_group - 1]], group[best[k_group]]
        # A cut between equal groups moves with whatever rounding makes equal to them, above and below.
        margin = _gap(_distinct_around(group, below)) if above == below else _gap(np.array([above, below]))
        size = len(s) // group_count
        candidates = np.concatenate([np.arange(g * size, (g + 1) * size) for g in np.sort(best[:k_group])])
    order = candidates[_descending(s[candidates])]
    last = s[order[min(k, len(order) - 1)]]
    return order[:k], min(margin, _gap(s[order[: k + 1]]), _gap(_distinct_around(s[candidates], last)))


def _descending(values):
    return np.lexsort((np.arange(len(values)), -values))


def _distinct_around(values, value):
    """The next larger one, `value`, and the next smaller one: rounding may make any of them equal."""
    distinct = np.unique(values)
    at = np.searchsorted(distinct, value)
    return distinct[max(at - 1, 0) : at + 2]


def _gap(values):
    a, b = values[:-1], values[1:]
    with np.errstate(invalid="ignore"):
        steps = np.abs(a - b) / np.maximum(np.abs(a), np.abs(b))
    steps = np.where(np.isfinite(a) & np.isfinite(b), steps, 1.0)
    return np.min(steps[a != b], initial=np.inf)


def weights(n, ids, norm_type, eps, factor):
    w = n[ids]
    if norm_type:
        with np.errstate(invalid="ignore"):
            w = w / (np.sum(w) + np.float64(np.float32(eps)))
    return w * np.float64(np.float32(factor))
