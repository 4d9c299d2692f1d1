"""Filters: what rows keep of their values, and by which rule; the rest is -inf (or 0, of probabilities).

Two operators filter, and they differ in what they do with equal values:

* `apply_top_k_top_p` keeps every copy of the k-th value, and the nucleus keeps the copy at the higher position;
* `top_k_top_p_sample` keeps exactly k, and of equal values the one at the lower position, in the nucleus too.

So a filter is a list of steps of these kinds, each with its parameter, and a step tells to which operator it belongs.
`Refused` says that the code is a filter, but of neither kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from .bounds import bounds
from .graph import Node, number, walk
from .rows import (
    Order,
    either,
    element,
    is_iota,
    lead,
    listed,
    positions,
    put_along,
    ranks,
    reduced,
    restored,
    set_at,
    softmax_of,
    spread,
)

TOP_K, TOP_P = "top-k", "top-p"  # of apply_top_k_top_p
EXACT_K, LOW_TOP_P, MIN_P = "exact top-k", "top-p by lower index", "min-p"  # of top_k_top_p_sample

#: The largest k that `top_k_top_p_sample` takes; more turn its top-k off.
KS_MAX = 1024


class Refused(Exception):
    """Something that would be raised, but means something else; the text says what."""


@dataclass(frozen=True)
class Computed:
    """A parameter that follows from a value of the graph."""

    value: Node
    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Step:
    kind: str
    parameter: Any  # a number, a node, or `Computed`


@dataclass(frozen=True)
class Filter:
    """Rows of `source`, of which the steps, one after the other, keep something.

    `order`: the rows list the source in this order; None: they are in place. `values`: the node after each step."""

    source: Node
    steps: tuple[Step, ...] = ()
    order: Order | None = None
    values: tuple[Node, ...] = ()


def filter_of(node: Node) -> Filter:
    """The filter that a node is; without steps if it is none."""
    match node:
        case Node("select_n", (mask, a, b)) if node.dtype.kind in "fV":
            for value, fill, kept in ((a, b, False), (b, a, True)):
                if number(fill) is not None and number(value) is None:
                    return _masked(node, mask, value, number(fill), kept)
    found = restored(node)
    if found:
        inner = filter_of(found[0])
        return replace(inner, order=None, values=()) if inner.steps and inner.order == found[1] else Filter(node)
    found = listed(node)
    if found and found[1].whole:
        inner = quietly(found[0])
        return replace(inner, order=found[1], values=(*inner.values, found[0]))
    return _largest_put_back(node) or Filter(node)


def quietly(node: Node) -> Filter:
    """`filter_of`, where a filter that is refused is a value like any other: it is reported by itself."""
    try:
        return filter_of(node)
    except Refused:
        return Filter(node)


def _masked(node: Node, mask: Node, value: Node, fill: Any, kept: bool) -> Filter:
    base = quietly(value)
    steps = conditions(mask, value, base, kept)
    if steps is None:
        return Filter(node)
    expected = 0 if softmax_of(base.source) is not None else -math.inf
    if fill != expected:
        raise Refused(f"what it removes becomes {fill:g}, and of the operators {expected:g}")
    return replace(base, steps=base.steps + steps, values=(*base.values, value))


def _largest_put_back(node: Node) -> Filter | None:
    """`full_like(x, -inf).at[rows, indices].set(values)` of `values, indices = top_k(x, k)`."""
    put = put_along(node)
    if put is None or number(put[0]) != -math.inf:
        return None
    order, found = positions(put[1]), listed(put[2])
    if order is None or found is None or found[1] != order or order.key is not found[0] or not order.descending:
        return None
    base = quietly(found[0])
    return replace(base, steps=(*base.steps, exactly(order.length, order)), values=(*base.values, found[0]))


def exactly(k: Any, order: Order) -> Step:
    if not low_first(order):
        raise Refused("it keeps exactly k, of equal logits those of higher index; the operators keep the lower, or all")
    if not isinstance(k, int) or not 1 <= k <= KS_MAX:
        known = f"a k known to be 1 to {KS_MAX}"
        raise Refused(f"it keeps exactly k, which the operator does for {known}, not for {_show(k)}")
    return Step(EXACT_K, k)


def _show(parameter: Any) -> str:
    return "one computed" if isinstance(parameter, (Node, Computed)) else str(parameter)


def low_first(order: Order) -> bool:
    """Whether of equal values the one at the lower position ranks higher."""
    return order.low_first == order.descending


# -- masks ----------------------------------------------------------------------------------------------------------


def conditions(mask: Node, value: Node, base: Filter, kept: bool) -> tuple[Step, ...] | None:
    """The steps that a mask of `value` is; `kept`: whether it is true for what is kept."""
    match mask:
        case Node("not", (inner,)):
            return conditions(inner, value, base, not kept)
        case Node("and" | "or" as op, (a, b)) if (op == "and") == kept:
            first, second = conditions(a, value, base, kept), conditions(b, value, base, kept)
            if first and second and {s.kind for s in first + second} == {TOP_K, TOP_P}:
                # Both look at all of the row: a nucleus of what top-k keeps would be another one.
                return tuple(sorted(first + second, key=lambda step: step.kind == TOP_K))
            return None
    if base.order is not None:
        rules, order = (_at_least_kth, _nucleus, _first_places, _min_p), base.order
        return next((s for rule in rules if (s := rule(mask, value, base, order, kept)) is not None), None)
    found = restored(mask)
    if found:
        inner, order = found
        return _in_order(inner, value, base, order, kept)
    for rule in (_at_least_kth, _min_p, _among_largest):
        steps = rule(mask, value, base, None, kept)
        if steps is not None:
            return steps
    return None


def _in_order(mask: Node, value: Node, base: Filter, order: Order, kept: bool) -> tuple[Step, ...] | None:
    """The steps of a mask that is written for `value` listed in an order."""
    match mask:
        case Node("not", (inner,)):
            return _in_order(inner, value, base, order, not kept)
    return _nucleus(mask, value, base, order, kept) or _first_places(mask, value, base, order, kept)


_REMOVES = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _comparison(node: Node, kept: bool) -> list[tuple[str, Node, Node]]:
    """A comparison that is true for what is kept, both ways round: [(relation, a, b)]."""
    if node.op not in _REMOVES:
        return []
    relation = node.op if kept else _REMOVES[node.op]
    a, b = node.inputs
    return [(relation, a, b), (_MIRRORED[relation], b, a)]


def _at_least_kth(mask: Node, value: Node, base: Filter, order: Order | None, kept: bool) -> tuple[Step, ...] | None:
    """`value >= the k-th largest of it`."""
    for relation, a, b in _comparison(mask, kept):
        found = _kth(b, value) if a is value else None
        if a is value and found is None and _ends_nucleus(b):
            raise Refused(
                "it keeps every copy of the logit at which the nucleus ends; the operators keep those of higher index, "
                "or those of lower index, until the sum reaches p"
            )
        if found is None:
            continue
        k, certain = found
        if relation == "gt":
            raise Refused("it removes the k-th largest logit too, and so its copies; the operator keeps them")
        if relation != "ge":
            return None
        if not certain and mask.op in ("ge", "le"):
            raise Refused(
                "k may be out of range, where the code removes all and the operator nothing; clip k to 1 and the size "
                "of the vocabulary"
            )
        return (Step(TOP_K, k),) if _fits(k, value) else None
    return None


def _ends_nucleus(node: Node) -> bool:
    """Whether a row's limit comes from running sums of probabilities."""
    base = spread(node)
    if base is node and node.rank and node.length != 1:
        return False
    return any(x.op == "cumsum" for x in walk(base, lambda x: x.op not in ("exp", "argument")))


def _kth(node: Node, value: Node) -> tuple[Any, bool] | None:
    """(k, certain) where a node is the k-th largest of each row. Uncertain: where k is out of range, it is NaN."""
    top = reduced(node, "reduce_min")
    largest = listed(top) if top is not None else None
    if largest and largest[0] is value and largest[1].key is value and largest[1].descending:
        return top.length, True
    found, wanted = element(node), value
    match spread(node):
        case Node("neg", (inner,)):  # of the sorted negatives
            found = element(inner)
            wanted = next((user for user in value.users if user.op == "neg"), value)
    if found is None:
        return None
    rows, place = found
    order = _order_of(rows, wanted, value)
    if order is None:
        return None
    if isinstance(place, int):
        return (place + 1 if order.descending else order.key.length - place), True
    if any(x.op == "cumsum" for x in walk(place, lambda x: x.op != "exp")):
        return None
    return _computed_kth(place, order, str(spread(node).params.get("mode")))


def _order_of(rows: Node, listing: Node, value: Node) -> Order | None:
    """The order by `value` in which `rows` list `listing`, be that in place or listed itself."""
    own, other = listed(rows), listed(value)
    if own and own[0] is listing and own[1].key is value:
        return own[1]
    if other and rows is value and other[1].key is other[0]:
        return other[1]
    if own and other and own[0] is other[0] and own[1].key is other[0]:
        return own[1]
    return None


def _fits(k: Any, rows: Node) -> bool:
    value = k.value if isinstance(k, Computed) else k
    return not isinstance(value, Node) or parameter(value, rows) is value


def _computed_kth(place: Node, order: Order, mode: str) -> tuple[Any, bool] | None:
    size = order.key.length
    index, wraps = place, False
    match place:  # JAX counts a negative index from the end
        case Node("select_n", (Node("lt", (a, zero)), b, Node("add", (c, _)))) if a is b is c and number(zero) == 0:
            index, wraps = a, bounds(a)[0] < 0
    low, high = bounds(index)
    certain = low >= 0 and high < size
    if not certain and "FILL" not in mode:
        return None  # out of range, it is another element
    match spread(index):
        case Node("sub", (all_, k)) if not order.descending and number(all_) == size:
            return (Computed(spread(k), _wrapped(size)) if wraps else spread(k)), certain
    if order.descending:
        return Computed(spread(place), lambda i: i + 1), certain
    return Computed(spread(place), lambda i: size - i), certain


def _wrapped(size: int) -> Callable[[Any], Any]:
    """The k that the element `size - k` is the k-th largest for, where a negative index counts from the end."""
    return lambda k: k - size * jnp.clip(k - size, 0, 1)


def _among_largest(mask: Node, value: Node, base: Filter, order: Order | None, kept: bool) -> tuple[Step, ...] | None:
    """Exactly k: `argsort(argsort(-x)) < k`, or a mask put where `top_k` says."""
    put = put_along(mask)
    if put and number(put[0]) is not None and number(put[2]) is not None and bool(number(put[2])) == kept:
        found = positions(put[1])
        if found and found.key is value and found.descending and bool(number(put[0])) != kept:
            return (exactly(found.length, found),)
    for relation, a, b in _comparison(mask, kept):
        found = ranks(a)
        if found and found.key is value and found.descending and relation in ("lt", "le"):
            k = number(b)
            return (exactly(spread(b) if k is None else int(k) + (relation == "le"), found),)
    return None


def _is_by(order: Order, value: Node, base: Filter) -> bool:
    """Whether an order is one by `value`, which what was removed before does not change."""
    return order.key is value or order.key in (base.source, *base.values)


def _first_places(mask: Node, value: Node, base: Filter, order: Order, kept: bool) -> tuple[Step, ...] | None:
    """Exactly k: `arange(V) < k` in a descending order."""
    in_place = value if base.order is None else (listed(value) or (None,))[0]
    for relation, a, b in _comparison(mask, kept):
        if is_iota(spread_rows(a)) and order.key is in_place and order.descending and relation in ("lt", "le"):
            k = number(b)
            return (exactly(spread(b) if k is None else int(k) + (relation == "le"), order),)
    return None


# -- top-p ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Places:
    """A mask of places in an order, true for what is kept, taken apart."""

    mask: Node
    kept: bool
    first_kept: bool = False  # whatever the mask says
    last_kept: bool = False
    moved: bool = False  # the mask speaks of the place before

    def apart(self) -> _Places:
        """One layer less, or the same."""
        mask, last = self.mask, self.mask.length - 1
        match mask:
            case Node("not", (inner,)):
                return replace(self, mask=inner, kept=not self.kept)
            case Node("or" | "and" as op, (a, b)) if (op == "or") == self.kept:
                for one, other in ((a, b), (b, a)):
                    place = _only_place(one, self.kept)
                    if place in (0, last):
                        return self._forced(place == 0, other)
                    if _is_set_to(one, other, op == "or"):  # `mask | mask.at[:, 0].set(True)`
                        return replace(self, mask=one)
            case Node("concatenate", (first, rest)) if _is_shift(mask, first, rest):
                return self._moved(rest.inputs[0], number(first))
            case Node("reshape", (Node("concatenate", (first, rest)) as flat,)) if (
                flat.rank == 1 and _is_shift(flat, first, rest)
            ):
                rows = rest.inputs[0]  # `roll` without an axis: a row's first place gets the last one of the row before
                if rows.op == "reshape" and rows.inputs[0].shape == mask.shape:
                    return self._moved(rows.inputs[0], None)
            case Node("slice", (Node("concatenate", (first, rest)) as longer,)) if _is_longer_shift(mask, longer):
                return self._moved(rest, number(first))
            case Node("pad", (rest, fill)) if _is_padded_shift(mask, rest):
                return self._moved(rest.inputs[0], number(fill))
        found = set_at(mask)
        if found:
            inner, place, values = found
            constant = number(values)
            if values.shape == mask.shape[:-1] and place in (0, last) and constant is not None:
                return self._forced(place == 0, inner) if bool(constant) == self.kept else self
            shifted = _sliced_to_front(values)
            if place == 1 and shifted is not None and values.length == last:
                return self._moved(shifted, None)
        return self

    def _moved(self, inner: Node, first: Any) -> _Places:
        """`inner` moved by one place; `first`, where it is known, is what the first place gets."""
        first_kept = self.first_kept or (first is not None and bool(first) == self.kept)
        return replace(self, mask=inner, moved=True, first_kept=True) if first_kept and not self.moved else self

    def _forced(self, first: bool, inner: Node) -> _Places:
        return replace(self, mask=inner, first_kept=self.first_kept or first, last_kept=self.last_kept or not first)


def _is_set_to(node: Node, mask: Node, value: bool) -> bool:
    """Whether a node is a mask with some of it set to a value."""
    found = set_at(node)
    if not found or found[0] is not mask:
        return False
    constant = number(found[2])
    return constant is not None and bool(constant) == value


def _is_shift(node: Node, first: Node, rest: Node) -> bool:
    whole = node.params["dimension"] == node.rank - 1 and first.length == 1 and rest.length == node.length - 1
    inner = _sliced_to_front(rest)
    if not whole or inner is None:
        return False
    return number(first) is not None or (first.op == "slice" and first.inputs[0] is inner)


def _is_longer_shift(node: Node, longer: Node) -> bool:
    """Whether a node is `concatenate((first, rest))[..., :-1]`."""
    first, rest = longer.inputs
    return (
        _sliced_to_front(node) is longer and longer.params["dimension"] == node.rank - 1
        and first.length == 1 and rest.length == node.length
    )  # fmt: skip


def _is_padded_shift(node: Node, rest: Node) -> bool:
    *lead, last = node.params["padding_config"]
    zero = all(tuple(map(int, axis)) == (0, 0, 0) for axis in lead)
    return zero and tuple(map(int, last)) == (1, 0, 0) and _sliced_to_front(rest) is not None


def _sliced_to_front(node: Node) -> Node | None:
    """x of `x[..., :-1]`."""
    match node:
        case Node("slice", (x,)) if node.length == x.length - 1 and node.shape[:-1] == x.shape[:-1]:
            return x if set(node.params["start_indices"]) == {0} else None
    return None


def _only_place(node: Node, kept: bool) -> int | None:
    """The one place where a mask says that something is kept."""
    node = spread_rows(node)
    if node.op != ("eq" if kept else "ne"):
        return None
    for a, b in either(node, node.op):
        if is_iota(spread_rows(a)) and number(b) is not None:
            return int(number(b))
    return None


def spread_rows(node: Node) -> Node:
    """A row that a node repeats for the batch."""
    while node.op in ("broadcast_in_dim", "reshape") and node.inputs[0].rank and node.inputs[0].length == node.length:
        if node.op == "broadcast_in_dim" and node.params["broadcast_dimensions"][-1] != node.rank - 1:
            break
        node = node.inputs[0]
    return node


def _nucleus(mask: Node, value: Node, base: Filter, order: Order, kept: bool) -> tuple[Step, ...] | None:
    """A running sum of probabilities in an order, compared with p or with 1 - p."""
    places = _Places(mask, kept)
    while (inner := places.apart()) is not places:
        places = inner
    for relation, sums, limit in _comparison(places.mask, places.kept):
        found = _running_sum(sums)
        if found is None:
            continue
        probabilities, exclusive = found
        if exclusive and places.moved or not _are_of(probabilities, value, base, order):
            continue
        p = _mass(relation, limit, order, exclusive or places.moved, places)
        return (Step(LOW_TOP_P if low_first(order) else TOP_P, p),)
    return None


def _running_sum(node: Node) -> tuple[Node, bool] | None:
    """(x, exclusive) of `cumsum(x)`, or of `cumsum(x) - x`."""
    match node:
        case Node("cumsum", (x,)) if along_last(node):
            return x, False
        case Node("sub", (Node("cumsum", (x,)) as sums, y)) if x is y and along_last(sums):
            return x, True
    return None


def along_last(node: Node) -> bool:
    return node.params["axis"] == node.rank - 1 and not node.params["reverse"]


def _are_of(probabilities: Node, value: Node, base: Filter, order: Order) -> bool:
    """Whether they are the softmax of `value`, listed in an order by it; of probabilities, they themselves."""
    in_place = value
    if base.order is not None:
        in_place = (listed(value) or (None,))[0]
    if softmax_of(base.source) is not None:
        return listed(probabilities) == (in_place, order) and order.key is in_place
    rows = softmax_of(probabilities)
    if rows is value:
        if base.order != order:
            return False
    elif rows is not None:
        if listed(rows) != (in_place, order):
            return False
    else:
        found = listed(probabilities)
        if found is None or found[1] != order or softmax_of(found[0]) is not in_place or in_place is None:
            return False
    if softmax_of(order.key) is not None:
        raise Refused(
            "it sorts by probability, where different logits can be equal, and so keeps others than an order by logits"
        )
    if not _is_by(order, in_place, base):
        return False
    if value.dtype != np.float32:
        raise Refused(f"its probabilities are computed in {value.dtype}, those of the operator in float32")
    return True


def _mass(relation: str, limit: Node, order: Order, exclusive: bool, places: _Places) -> Any:
    """p, from what the running sums are compared with."""
    if places.last_kept if order.descending else places.first_kept:
        raise Refused("it always keeps the least likely token")
    if order.descending:
        if relation not in ("lt", "le"):
            raise Refused("it keeps the tail of the distribution")
        if not exclusive:
            raise Refused("it removes the token whose probability reaches p; the operators keep it")
        p, best_kept = parameter(limit, places.mask), places.first_kept
    else:
        if relation not in ("gt", "ge"):
            raise Refused("it keeps the tail of the distribution")
        if exclusive:
            raise Refused("it compares sums up to the token before with 1 - p, and keeps one fewer than the operators")
        p, best_kept = _complement(limit, places.mask), places.last_kept
    if p is None:
        raise Refused("its limit is not one p a row" if order.descending else "its limit is not 1 - p, one a row")
    low = bounds(p)[0] if isinstance(p, Node) else p
    if not best_kept and (low < 0 or low == 0 and relation in ("lt", "gt")):
        raise Refused(
            "p may be 0 or less, where the code keeps nothing and the operators one token: always keep the best, or "
            "clip p"
        )
    return p


def parameter(node: Node, rows: Node) -> Any:
    """A number, or a node with one value for each of the rows, or for all of them; None if it is neither."""
    constant = number(node)
    if constant is not None:
        return float(constant)
    node = spread(node)
    shape = lead(node.shape)
    fits = len(shape) < rows.rank and all(size in (1, whole) for size, whole in zip(shape, rows.shape))
    return node if fits else None


def _complement(node: Node, rows: Node) -> Any:
    """p of `1 - p`."""
    constant = number(node)
    if constant is not None:
        return 1.0 - float(constant)
    match spread(node):
        case Node("sub", (one, p)) if number(one) == 1:
            return parameter(p, rows)
    return None


# -- min-p ----------------------------------------------------------------------------------------------------------


def _min_p(mask: Node, value: Node, base: Filter, order: Order | None, kept: bool) -> tuple[Step, ...] | None:
    """A probability compared with a share of the largest one, or a logit with the largest one plus its logarithm."""
    for relation, a, b in _comparison(mask, kept):
        share = _share_of_largest(a, b, value, base)
        if share is None:
            continue
        if relation not in ("ge", "gt"):
            return None
        if value.dtype != np.float32:
            raise Refused(f"its probabilities are computed in {value.dtype}, those of the operator in float32")
        low, high = bounds(share) if isinstance(share, Node) else (share, share)
        if high > 1:
            raise Refused(
                "min-p may exceed 1, where the code keeps nothing and the operator one token; clip it to 0 and 1"
            )
        if relation == "gt" and high >= 1:
            raise Refused("it removes the most likely token where min-p is 1; the operator keeps it")
        return (Step(MIN_P, share),)
    return None


def _share_of_largest(a: Node, b: Node, value: Node, base: Filter) -> Any:
    if softmax_of(a) is value or (a is value and softmax_of(base.source) is not None):
        for share, top in either(spread(b), "mul"):
            if reduced(top, "reduce_max") is a:
                return parameter(share, value)
    if a is value:
        for log_share, top in either(spread(b), "add"):
            if reduced(top, "reduce_max") is value:
                return _exp(log_share, value)
    match a:
        case Node("sub", (x, top)) if x is value and reduced(top, "reduce_max") is value:
            return _exp(b, value)
    return None


def _exp(node: Node, rows: Node) -> Any:
    """m of `log(m)`."""
    constant = number(node)
    if constant is not None:
        return math.exp(constant)
    match spread(node):
        case Node("log", (share,)):
            return parameter(share, rows)
    return None

