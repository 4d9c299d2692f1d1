"""A jaxpr as a graph of values in which equal computations are one node.

Calls (`jit`, `custom_jvp_call`, ...) are seen through, as are operations that pass a value on. So what the user wrote
twice (`jnp.sort(x)` and `jnp.argsort(x)`), or wrapped in functions, is found in one form. Patterns are Python's own:

    match node:
        case Node("div", (Node("exp", (shifted,)), total)): ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from jax.extend import source_info_util
from jax.extend.core import Literal

from jascend.dialect.errors import OperatorError
from jascend.ops.apply_top_k_top_p import apply_top_k_top_p_p
from jascend.ops.moe_gating_top_k import moe_gating_top_k_p
from jascend.ops.moe_init_routing import moe_init_routing_p
from jascend.ops.sort import sort_p
from jascend.ops.top_k_top_p_sample import top_k_top_p_sample_p
from jascend.platform import check_limits, has_limits

_OURS = (apply_top_k_top_p_p, moe_gating_top_k_p, moe_init_routing_p, sort_p, top_k_top_p_sample_p)

#: Operations of one value that is their result too, for inference.
_PASSES_ON = ("stop_gradient", "copy", "copy_p", "optimization_barrier", "name")
_CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat2": "jaxpr",
    "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
}  # fmt: skip


class HasEffects(Exception):
    """The function does more than compute: its operations stay in their order."""


@dataclass(eq=False)
class Call:
    """One application of a primitive; `values` are its results."""

    primitive: Any
    params: Mapping[str, Any]
    inputs: tuple[Node, ...]
    where: Any  # JAX's source info of the user's line
    context: Any
    values: tuple[Node, ...] = ()


@dataclass(eq=False)
class Node:
    """A value. `op` is the primitive that makes it ("ascend.sort" is ours), or "argument" or "constant"; `inputs` are
    the primitive's operands."""

    op: str
    inputs: tuple[Node, ...]
    shape: tuple[int, ...]
    dtype: Any
    output: int = 0
    call: Call | None = None
    constant: Any = None
    returned: bool = False  # is an output
    number: Any = None  # the one number that all elements are
    users: list[Node] = field(default_factory=list, repr=False)

    __match_args__ = ("op", "inputs")

    @property
    def params(self) -> Mapping[str, Any]:
        return self.call.params if self.call else {}

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def length(self) -> int:
        """Elements of a row: the size of the last axis."""
        return self.shape[-1]

    def sibling(self, output: int) -> Node:
        """Another result of the same operation."""
        return self.call.values[output]


@dataclass(eq=False)
class Raise:
    """What computes some nodes another way: from the arrays of `inputs`, `build(value)` makes theirs, where
    `value(node)` is the array of an input. `text` says what it is; `is_rest` that it is less than what the code may
    look like, so that reasons against that are still told."""

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    build: Callable[[Callable[[Node], Any]], Sequence[Any]]
    text: str
    is_rest: bool = False


class CannotRaise(Exception):
    """A `Raise` that does not work out in its surroundings."""

    def __init__(self, raised: Raise, reason: str):
        super().__init__(reason)
        self.raised = raised


class Graph:
    """The computation of a closed jaxpr. `nodes` are in an order in which inputs come first."""

    def __init__(self, closed: Any):
        self.nodes: list[Node] = []
        self._known: dict[Any, Call | Node] = {}
        self.arguments = [self._add(Node("argument", (), v.aval.shape, v.aval.dtype)) for v in closed.jaxpr.invars]
        self.outputs = self._inline(closed, self.arguments, None)
        self._link()

    # -- building -----------------------------------------------------------------------------------------------

    def _add(self, node: Node) -> Node:
        node.number = _number(node)
        self.nodes.append(node)
        return node

    def _inline(self, closed: Any, inputs: Sequence[Node], where: Any) -> list[Node]:
        # That of a checkpoint has no constants, and on older versions says so by not being closed.
        jaxpr, consts = getattr(closed, "jaxpr", closed), getattr(closed, "consts", ())
        if jaxpr.effects:
            raise HasEffects
        env = dict(zip(jaxpr.invars, inputs))
        env.update((variable, self._constant(value)) for variable, value in zip(jaxpr.constvars, consts))

        def read(atom: Any) -> Node:
            return self._constant(atom.val, atom.aval) if isinstance(atom, Literal) else env[atom]

        for eqn in jaxpr.eqns:
            values = self._equation(eqn, [read(atom) for atom in eqn.invars], where or eqn.source_info)
            env.update(zip(eqn.outvars, values))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: Any, inputs: list[Node], where: Any) -> Sequence[Node]:
        name = eqn.primitive.name
        if name in _CALLS:
            # The inner jaxpr is traced once for all its callers, so its lines may be those of another call.
            return self._inline(eqn.params[_CALLS[name]], inputs, where)
        if name in _PASSES_ON and len(inputs) == 1:
            return inputs
        out = eqn.outvars[0].aval
        if name == "convert_element_type" and inputs[0].dtype == out.dtype:
            return inputs
        if name in ("reshape", "broadcast_in_dim") and inputs[0].shape == out.shape:
            return inputs[:1]
        if name == "max" and -np.inf in (number(inputs[0]), number(inputs[1])):
            return [inputs[int(number(inputs[0]) == -np.inf)]]
        if name == "select_n" and number(inputs[0]) is not None:
            return [inputs[1 + int(number(inputs[0]))]]
        if eqn.primitive in _OURS:
            name = f"ascend.{name}"
        key = (name, *(id(node) for node in inputs), *sorted((k, _key(v)) for k, v in eqn.params.items()))
        if key not in self._known:
            call = Call(eqn.primitive, eqn.params, tuple(inputs), where, eqn.ctx)
            nodes = [
                Node(name, call.inputs, tuple(v.aval.shape), v.aval.dtype, i, call) for i, v in enumerate(eqn.outvars)
            ]
            call.values = tuple(self._add(node) for node in nodes)
            self._known[key] = call
        return self._known[key].values

    def _constant(self, value: Any, aval: Any = None) -> Node:
        aval = jax.typeof(value) if aval is None else aval
        key = (aval.shape, str(aval.dtype), repr(value) if not aval.shape else id(value))
        if key not in self._known:
            self._known[key] = self._add(Node("constant", (), tuple(aval.shape), aval.dtype, constant=value))
        return self._known[key]

    def _link(self) -> None:
        for node in self.nodes:
            for operand in dict.fromkeys(node.inputs):
                operand.users.append(node)
        for node in self.outputs:
            node.returned = True

    def live(self) -> set[Node]:
        """The nodes that the outputs need."""
        return {node for output in self.outputs for node in walk(output, lambda _: True)}

    # -- running ------------------------------------------------------------------------------------------------

    def run(self, arguments: Sequence[Any], raised: Mapping[Node, Raise], used: dict[Node, Raise | None]) -> list[Any]:
        """The outputs. A node in `raised` is computed as that says; only what the outputs need is computed. The nodes
        computed are added to `used`. Raises `CannotRaise`."""
        arrays: dict[Node, Any] = dict(zip(self.arguments, arguments))
        self.compute(self.outputs, arrays, raised, used)
        return [arrays[node] for node in self.outputs]

    def compute(
        self,
        wanted: Sequence[Node],
        arrays: dict[Node, Any],
        raised: Mapping[Node, Raise] = MappingProxyType({}),
        used: dict[Node, Raise | None] | None = None,
    ) -> None:
        """Adds the arrays of the nodes wanted, and of what they are computed from, to those that there are; `raised`
        and `used` as of `run`."""
        used = {} if used is None else used
        stack = list(reversed(wanted))
        while stack:  # no recursion: programs are deep
            node = stack[-1]
            if node in arrays:
                stack.pop()
                continue
            found = raised.get(node)
            missing = [x for x in (found.inputs if found else node.inputs) if x not in arrays]
            if missing and node in used:  # its inputs wait for it
                last = next(each for each in map(raised.get, reversed(stack)) if each)
                raise CannotRaise(last, "its inputs follow from its results")
            used[node] = found
            if missing:
                stack.extend(missing)
            elif found is not None:
                results = _build(found, node, arrays)
                arrays.update((each, result) for each, result in zip(found.nodes, results) if raised.get(each) is found)
            elif node.call is None:
                arrays[node] = node.constant
            else:
                results = zip(node.call.values, _bind(node.call, [arrays[x] for x in node.inputs]))
                arrays.update((each, result) for each, result in results if each is node or each not in raised)


def _build(found: Raise, node: Node, arrays: Mapping[Node, Any]) -> Sequence[Any]:
    with _at(node.call):
        try:
            if has_limits():
                _check_limits(found, arrays)
            return found.build(arrays.__getitem__)
        except OperatorError as error:
            raise CannotRaise(found, str(error)) from error


def _check_limits(found: Raise, arrays: Mapping[Node, Any]) -> None:
    """Raises what an operator of it raises on the product that it is compiled for."""
    inputs = [arrays[x] for x in found.inputs]
    built = jax.make_jaxpr(lambda *given: list(found.build(dict(zip(found.inputs, given)).__getitem__)))(*inputs)
    for eqn in built.eqns:
        check_limits(eqn.primitive, [atom.aval for atom in eqn.invars], eqn.params)


def _key(value: Any) -> Any:
    try:
        return (type(value).__name__, str(hash(value)), repr(value) if isinstance(value, (int, float, tuple)) else "")
    except TypeError:
        return (type(value).__name__, str(id(value)), "")


def _at(call: Call):
    """The context in which what is traced gets the place of a call."""
    stack = source_info_util.current_name_stack() + call.where.name_stack
    return source_info_util.user_context(call.where.traceback, name_stack=stack)


def _bind(call: Call, inputs: list[Any]) -> Sequence[Any]:
    params = call.primitive.get_bind_params(call.params)
    with _at(call), call.context.manager:
        results = call.primitive.bind(*inputs, **params)
    return results if call.primitive.multiple_results else [results]


def walk(node: Node, through: Callable[[Node], bool]) -> Iterator[Node]:
    """A node and what it is computed from, going on through the inputs of nodes for which `through` holds."""
    seen, stack = set(), [node]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if through(node):
            stack.extend(node.inputs)


_LARGEST_CONSTANT = 1 << 16  # weights are not looked through
_FOLDED = {"neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "log": np.log}


def number(node: Node) -> Any:
    """The one number that all elements of a node are, or None."""
    return node.number


def _number(node: Node) -> Any:
    match node:
        case Node("constant"):
            size = math.prod(node.shape)
            if jax.dtypes.issubdtype(node.dtype, jax.dtypes.extended) or not 0 < size <= _LARGEST_CONSTANT:
                return None
            array = np.asarray(node.constant, node.dtype).ravel()
            return array[0] if (array == array[0]).all() else None
        case Node("broadcast_in_dim" | "reshape" | "squeeze", (x, *_)):
            return x.number
        case Node("convert_element_type", (x,)):
            return None if x.number is None else np.asarray(x.number).astype(node.dtype)[()]
        case Node(op, inputs) if op in _FOLDED:
            values = [x.number for x in inputs]
            if any(value is None for value in values):
                return None
            with np.errstate(all="ignore"):
                return _FOLDED[op](*values)
    return None
