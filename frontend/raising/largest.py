"""The largest elements of rows, in order, where they are no part of a filter, a draw or a router:
what is left of `lax.top_k`.

The operator is `top_k_top_p_sample`, whose list of survivors of top-k, without a softmax, is just that: of equal values
the one of lower index comes first, as `lax.top_k` has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jascend.ops.top_k_top_p_sample import top_k_top_p_sample

from .filters import KS_MAX, Refused
from .graph import Node, Raise

_FLOATS = ("float32", "float16", "bfloat16")


def raise_largest(node: Node) -> Raise | None:
    """Values and indices of `lax.top_k` along rows."""
    if node.op != "top_k" or not node.rank or node.params.get("axis", node.rank - 1) != node.rank - 1:
        return None
    (x,), k = node.inputs, node.length
    if x.dtype.name not in _FLOATS or 0 in node.shape:
        return None
    if k > KS_MAX:
        raise Refused(f"it takes the {k} largest of a row, and the operator at most {KS_MAX}")

    def build(value: Callable[[Node], Any]) -> list[Any]:
        rows = value(x).reshape(-1, x.length)
        number, off = jnp.full(len(rows), k, jnp.int32), jnp.ones(len(rows), rows.dtype)
        found = top_k_top_p_sample(rows, number, off, input_is_logits=False, is_need_sample_result=True, ks_max=KS_MAX)
        values, indices = found.logits_sort_masked[:, :k], found.logits_idx[:, :k]
        return [values.astype(x.dtype).reshape(node.shape), indices.astype(np.int32).reshape(node.shape)]

    return Raise(
        (node.sibling(0), node.sibling(1)), (x,), build, f"the {k} largest of a row, as top_k_top_p_sample", True
    )
