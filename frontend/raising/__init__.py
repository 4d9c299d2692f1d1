"""`raise-sampling`: plain `jnp` and `lax` code that is one of the operators becomes it.

Works on jaxprs, where all of the structure is there and the same for every version of JAX that we support: StableHLO
has a running sum as a padded window and an argmax as a reduction of pairs, and `linalg` has no sort. Calls are seen
through and equal computations are one (`graph`), rows have facts (`rows`), and the rules below say which values are
operators.

A rule takes a node and returns a `Raise`, or None, or raises `Refused` with the reason why code that looks like an
operator means something else. What is raised never changes a result beyond the operators' own band of 1e-5 around a
threshold, and never the treatment of equal values (-0.0 equals 0.0); NaN is outside their contract.

Before:

    kth = lax.top_k(logits, 50)[0][..., -1:]
    logits = jnp.where(logits < kth, -jnp.inf, logits)
    token = jax.random.categorical(key, logits)

After:

    logits = ja.apply_top_k_top_p(logits, k=50)
    token = ja.top_k_top_p_sample(logits, 0, 1.0, q).logits_select_idx      # q = -log(u), as categorical draws it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax.extend import source_info_util

from .filters import Refused
from .gating import raise_gating
from .graph import CannotRaise, Graph, HasEffects, Node, Raise
from .largest import raise_largest
from .quantization import raise_quantization
from .random import raise_key, raise_random
from .routing import raise_routing
from .sampling import raise_draw, raise_filter

RAISE_SAMPLING = "raise-sampling"
# In turns: what an earlier turn has raised is not looked at again.
_RULES = ((raise_quantization,), (raise_routing, raise_gating, raise_key, raise_random, raise_draw, raise_filter),
          (raise_largest,))  # fmt: skip


class Remark(NamedTuple):
    """What was raised ("passed") or not ("missed"), and the user's line."""

    kind: str
    text: str
    file: str
    line: int
    column: int


class Raised(NamedTuple):
    """`function` takes and returns flat lists; None where nothing is raised."""

    function: Callable[[Sequence[Any]], list[Any]] | None
    remarks: list[Remark]


def raise_sampling(closed_jaxpr: Any) -> Raised:
    """The same computation with operators in it."""
    try:
        graph = Graph(closed_jaxpr)
    except HasEffects:
        return Raised(None, [])
    raised: dict[Node, Raise] = {}
    missed: dict[Node, str] = {}
    for rules in _RULES:
        for node in [node for node in graph.nodes if node not in raised]:
            for rule in rules:
                try:
                    found = rule(node)
                except Refused as refusal:
                    missed.setdefault(node, str(refusal))
                    continue
                if found is not None:
                    raised.update((each, found) for each in found.nodes if each not in raised)
                    break
    if not raised:
        live = graph.live()
        return Raised(None, [_remark(node, "missed", text) for node, text in missed.items() if node in live])
    remarks: list[Remark] = []

    def run(arguments: Sequence[Any]) -> list[Any]:
        while True:
            used: dict[Node, Raise | None] = {}
            try:
                outputs = graph.run(arguments, raised, used)
                break
            except CannotRaise as error:
                node = error.raised.nodes[0]
                missed[node] = str(error)
                for each in [each for each, found in raised.items() if found is error.raised]:
                    del raised[each]
        passed = {found: node for node, found in used.items() if found is not None}
        remarks[:] = [_remark(node, "passed", found.text) for found, node in passed.items()]
        rest = {node for found in passed if found.is_rest for node in found.nodes}
        left = [(node, text) for node, text in missed.items() if node in rest or node in used and used[node] is None]
        remarks.extend(_remark(node, "missed", text) for node, text in left)
        return outputs

    return Raised(run, remarks)


def _remark(node: Node, kind: str, text: str) -> Remark:
    file, line, column = _place(source_info_util.summarize(node.call.where))
    return Remark(kind, text, file, line, column)


def _place(summary: str) -> tuple[str, int, int]:
    """File, line and column of JAX's `file:line:column (function)`."""
    match re.fullmatch(r"(.*?):(\d+)(?::(\d+))?(?: \(.*\))?", summary):
        case None:
            return "<unknown>", 0, 0
        case found:
            return found[1], int(found[2]), int(found[3] or 1)
