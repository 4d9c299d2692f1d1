"""Samplers: the token with the largest score of each row.

* `argmax(logits)`: greedy.
* `argmax(softmax(logits) / q)`, q exponential: a race. `argmax(logits + g)`, g Gumbel noise, is the same one with
  `q = exp(-g)`: that is how `jax.random.categorical` draws. Scores order tokens alike, but for rounding (1e-5).
* The same among the largest logits (`values, indices = top_k(logits, k)`), with `indices` taken at the place drawn: q
  goes by rank.

The operator of all three is `top_k_top_p_sample`; with all its stages off, q goes by index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jascend.ops.apply_top_k_top_p import apply_top_k_top_p
from jascend.ops.top_k_top_p_sample import top_k_top_p_sample

from .bounds import bounds
from .filters import (
    EXACT_K,
    KS_MAX,
    LOW_TOP_P,
    MIN_P,
    TOP_K,
    TOP_P,
    Computed,
    Filter,
    Refused,
    Step,
    exactly,
    filter_of,
    low_first,
    quietly,
)
from .graph import Node, Raise, number, walk
from .rows import Order, either, listed, log_softmax_of, positions, softmax_of, take_along

Value = Callable[[Node], Any]

_FLOATS = ("float32", "float16", "bfloat16")
_LARGEST_VOCABULARY = 1 << 20
_BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))


def raise_filter(node: Node) -> Raise | None:
    """A filter, as the operators that filter."""
    if node.op not in ("select_n", "scatter", "gather", "sort") or node.dtype.name not in _FLOATS or not node.rank:
        return None
    found = filter_of(node)
    if not found.steps and _looks_like_filter(node):
        raise Refused("it masks by sorted or summed rows, and is no filter of a form that is known here")
    if not found.steps or found.order is not None:
        return None
    _check_rows(node)
    operators = _operators(found)
    text = " and ".join(dict.fromkeys(name for name, _ in operators))
    inputs = (found.source, *_nodes(found.steps))
    return Raise(
        (node,), inputs, lambda value: [_filtered(found.source, operators, value)], f"{_steps(found.steps)}, as {text}"
    )


def _looks_like_filter(node: Node) -> bool:
    match node:
        case Node("select_n", (mask, *cases)) if any(number(case) == -np.inf for case in cases):
            sources = walk(mask, lambda x: x.op not in ("exp", "sort", "top_k", "cumsum"))
            return any(source.op in ("sort", "top_k", "cumsum") for source in sources)
    return False


def _nodes(steps: tuple[Step, ...]) -> list[Node]:
    """What the steps' parameters follow from."""
    values = [step.parameter.value if isinstance(step.parameter, Computed) else step.parameter for step in steps]
    return [value for value in values if isinstance(value, Node)]


def _steps(steps: tuple[Step, ...]) -> str:
    return ", ".join(step.kind for step in steps)


def _check_rows(node: Node) -> None:
    if 0 in node.shape:
        raise Refused("there are no rows")
    if node.length > _LARGEST_VOCABULARY:
        raise Refused(f"rows have {node.length} elements, and the operators take {_LARGEST_VOCABULARY}")


def _operators(found: Filter) -> list[tuple[str, dict[str, Any]]]:
    """The operators that apply a filter's steps, each with its parameters by kind of step."""
    of_probabilities = softmax_of(found.source) is not None
    calls: list[tuple[str, dict[str, Any]]] = []
    for step in found.steps:
        name = "apply_top_k_top_p" if step.kind in _STAGES["apply_top_k_top_p"] else "top_k_top_p_sample"
        if of_probabilities and name == "apply_top_k_top_p":
            raise Refused(f"{step.kind} of this kind takes logits, and these are probabilities")
        stages = _STAGES[name]
        last = calls[-1] if calls else ("", {})
        follows = all(stages.index(step.kind) > stages.index(kind) for kind in last[1] if kind in stages)
        if last[0] == name and follows:
            last[1][step.kind] = step.parameter
        else:
            calls.append((name, {step.kind: step.parameter}))
    return calls


_STAGES = {"apply_top_k_top_p": (TOP_K, TOP_P), "top_k_top_p_sample": (EXACT_K, LOW_TOP_P, MIN_P)}


def _filtered(source: Node, operators: list[tuple[str, dict[str, Any]]], value: Value) -> Any:
    is_logits = softmax_of(source) is None
    rows = value(source).reshape(-1, source.length)
    for name, parameters in operators:
        if name == "apply_top_k_top_p":
            k, p = (_parameter(parameters.get(kind), source, value, dtype) for kind, dtype in
                    ((TOP_K, "int32"), (TOP_P, rows.dtype)))  # fmt: skip
            rows = apply_top_k_top_p(rows, p, k)
        else:
            result = _sampled(rows, parameters, source, value, None, is_need_logits=True, input_is_logits=is_logits)
            rows = result.logits_top_kp_select.astype(rows.dtype)
    return rows.reshape(source.shape)


def _sampled(rows, parameters: dict[str, Any], source: Node, value: Value, q, **options):
    k = _parameter(parameters.get(EXACT_K, 0), source, value, "int32")
    p = _parameter(parameters.get(LOW_TOP_P, 1.0), source, value, rows.dtype)
    share = _parameter(parameters.get(MIN_P), source, value, rows.dtype)
    if share is not None:
        share = jnp.minimum(share, _BELOW_ONE)  # at 1, the operator keeps one copy of the maximum, and the code all
    return top_k_top_p_sample(rows, k, p, q, share, eps=0.0, ks_max=KS_MAX, **options)


def _parameter(parameter: Any, source: Node, value: Value, dtype: Any) -> Any:
    """A parameter as the operators take it: one number a row."""
    lead = source.shape[:-1]
    rows = int(np.prod(lead))
    if parameter is None:
        return None
    if isinstance(parameter, jax.Array):
        return parameter
    if isinstance(parameter, (Node, Computed)):
        node = parameter if isinstance(parameter, Node) else parameter.value
        array = value(node)
        array = array.reshape(array.shape[: len(lead)]) if node.rank > len(lead) else array
        array = jnp.broadcast_to(array.reshape((*array.shape, *(1,) * (len(lead) - array.ndim))), lead).reshape(rows)
        array = array.astype(dtype)
        return array if isinstance(parameter, Node) else parameter.function(array)
    return jnp.full((rows,), parameter, dtype)


# -- drawing --------------------------------------------------------------------------------------------------------


def raise_draw(node: Node) -> Raise | None:
    """An index of the largest score of each row, in place or among the largest logits."""
    match node:
        case Node("argmax", (scores,)) if tuple(node.params["axes"]) == (scores.rank - 1,):
            return _in_place(node, scores)
    taken = take_along(node)
    if taken:
        indices, place = taken
        order = positions(indices)
        while place.op in ("broadcast_in_dim", "reshape") and place.inputs[0].op in ("argmax", "reshape"):
            place = place.inputs[0]
        match place:
            case Node("argmax", (scores,)) if order and tuple(place.params["axes"]) == (scores.rank - 1,):
                return _by_rank(node, scores, order)
    return None


def _in_place(node: Node, scores: Node) -> Raise | None:
    in_float32 = scores.dtype == np.float32  # as the operator's scores; what others order, it must not compute anew
    race = _race(scores) if in_float32 else None
    logits = race.logits if race else (in_float32 and softmax_of(scores)) or scores
    if logits.dtype.name not in _FLOATS or logits.length == 1 or _is_listed(logits):
        return None
    _check_rows(logits)
    k = 1 if scores is logits else 0  # of logits, the operator's top-k of one is exact

    def build(value: Value) -> list[Any]:
        rows = value(logits).reshape(-1, logits.length)
        q = race and jnp.broadcast_to(value(race.q), logits.shape).reshape(rows.shape)
        result = top_k_top_p_sample(
            rows, jnp.full(len(rows), k, jnp.int32), jnp.ones(len(rows), rows.dtype), q, eps=0.0, ks_max=KS_MAX
        )
        return [result.logits_select_idx.astype(node.dtype).reshape(node.shape)]

    inputs = (logits, race.q) if race else (logits,)
    return Raise((node,), inputs, build, f"{'draw' if race else 'greedy choice'}, as top_k_top_p_sample")


def _is_listed(logits: Node) -> bool:
    """Whether rows are listed in an order: the places drawn are no tokens yet."""
    return listed(logits) is not None or quietly(logits).order is not None


def _by_rank(node: Node, scores: Node, order: Order) -> Raise | None:
    race = _race(scores)
    if race is None:
        return None
    first = listed(race.logits)
    # What is listed up to a place is no filter of whole rows.
    found = Filter(first[0], (), first[1]) if first and not first[1].whole else quietly(race.logits)
    if found.order != order or not order.descending or found.source is not order.key:
        return None
    if not low_first(order):
        raise Refused("its order has equal logits by decreasing index, the operator's by increasing index")
    if race.logits.dtype != np.float32:
        raise Refused(f"its scores are computed in {race.logits.dtype}, those of the operator in float32")
    _check_rows(order.key)
    steps = found.steps if order.whole else (exactly(order.length, order), *found.steps)
    kinds, stages = [step.kind for step in steps], _STAGES["top_k_top_p_sample"]
    if kinds != [kind for kind in stages if kind in kinds]:
        raise Refused(f"its stages, {_steps(steps)}, are not those of the operator: {', '.join(stages)}")
    if not kinds or kinds == [MIN_P]:
        raise Refused("it draws by rank among all tokens; the operator sorts only where top-k or top-p is on")
    source = order.key

    def build(value: Value) -> list[Any]:
        rows = value(source).reshape(-1, source.length)
        q = jnp.broadcast_to(value(race.q), race.logits.shape).reshape(len(rows), -1)
        q = jnp.pad(q, ((0, 0), (0, source.length - q.shape[1])), constant_values=1.0)
        given = {step.kind: step.parameter for step in steps}
        if LOW_TOP_P in given:  # at 1 nothing sorts, and q would go by index
            given[LOW_TOP_P] = jnp.minimum(_parameter(given[LOW_TOP_P], source, value, rows.dtype), _BELOW_ONE)
        result = _sampled(rows, given, source, value, q)
        return [result.logits_select_idx.astype(node.dtype).reshape(node.shape)]

    text = f"draw by rank after {_steps(steps)}, as top_k_top_p_sample"
    return Raise((node,), (source, race.q, *_nodes(steps)), build, text)


class _Race(NamedTuple):
    """Scores that order tokens as `softmax(logits) / q` does."""

    logits: Node
    q: Node


def _race(scores: Node) -> _Race | None:
    match scores:
        case Node("div", (probabilities, q)):
            logits = softmax_of(probabilities)
            if logits is None or q.dtype != np.float32:
                return None
            if bounds(q)[0] < 0:
                raise Refused("q may be negative, and the operator takes its absolute value: divide by jnp.abs(q)")
            return _Race(logits, q)
    for noise, logits in either(scores, "add"):
        match noise:
            case Node("neg", (Node("log", (q,)),)) if bounds(q)[0] >= 0:
                return _Race(log_softmax_of(logits) or logits, q)
    return None

