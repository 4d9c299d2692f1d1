"""Numbers that `jax.random` draws for a race, with a key of Threefry: what kernels draw themselves.

A race needs exponential numbers, `-log1p(-u)` or `-log(u)` of uniform numbers u; the negated logarithm of the second is
what `jax.random.gumbel` gives. A uniform number is made of 32 random bits in one way (`jax.random.uniform` from some
`low` to 1). Keys that are split, or that numbers are folded into, are one and the same: Threefry of a counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jascend.ops.random import random_exponential_p, random_key_p

from .filters import Refused
from .graph import Node, Raise, number, walk
from .rows import either

_THREEFRY = "key<fry>"
_ONE = 0x3F800000  # the bits of 1.0
_ELEMENTWISE = ("add", "sub", "mul", "max", "or", "bitcast_convert_type", "shift_right_logical", "convert_element_type",
                "broadcast_in_dim", "reshape", "slice", "squeeze", "neg")  # fmt: skip


def raise_random(node: Node) -> Raise | None:
    """Exponential numbers, as the operator that draws them."""
    match node:
        case Node("neg", (Node("log1p", (Node("neg", (uniform,)),)),)):
            draw = "exponential"
        case Node("neg", (Node("log", (uniform,)),)):
            draw = "gumbel"
        case _:
            return None
    drawn = next((x for x in walk(uniform, lambda x: x.op in _ELEMENTWISE) if x.op == "random_bits"), None)
    if drawn is None:
        return None
    if node.dtype != np.float32:
        raise Refused(
            f"it draws numbers of {node.dtype}, and kernels those of float32: cast the logits to float32 first"
        )
    found = uniform_of(uniform)
    if found is None or not 0 <= found[1] < 1 or (draw == "exponential" and found[1]):
        raise Refused(
            "its uniform numbers are not those of jax.random.uniform(key, shape, minval=low) with 0 <= low < 1"
        )
    bits, low = found
    (key,) = bits.inputs
    _check_generator(key)
    if not bits.rank or 0 in bits.shape:
        raise Refused("there are no rows")
    inner = bits.params["shape"]
    if key.rank and (not inner or any(size != 1 for size in inner[:-1])):
        raise Refused(f"each of its keys draws numbers of shape {inner}: keys draw one row each, or one key draws all")

    def build(value: Callable[[Node], Any]) -> list[Any]:
        data = _words(key, value)
        rows = int(np.prod(bits.shape[:-1]))
        drawn = random_exponential_p.bind(
            jnp.broadcast_to(data, (rows, 2)), length=bits.length, draw=draw, low=float(low),
            counts="row" if key.rank else "array",
        )  # fmt: skip
        return [drawn.reshape(node.shape)]

    return Raise(
        (node,),
        (_unwrapped(key),),
        build,
        f"{'Gumbel' if draw == 'gumbel' else 'exponential'} noise, as random_exponential",
    )


def raise_key(node: Node) -> Raise | None:
    """Keys that are made of others, as the operator that makes them."""
    found = _child(node)
    if found is None:
        return None
    key, count = found
    _check_generator(key)
    is_typed = jax.dtypes.issubdtype(node.dtype, jax.dtypes.prng_key)
    shape = node.shape if is_typed else node.shape[:-1]

    def build(value: Callable[[Node], Any]) -> list[Any]:
        rows = int(np.prod(shape))
        words = _words(key, value).reshape(*key.shape, *(1,) * (len(shape) - key.rank), 2)
        match count:
            case Node():
                counts = lax.bitcast_convert_type(value(count), jnp.int32)
            case range():
                counts = jnp.arange(len(count), dtype=jnp.int32)
            case _:
                counts = jnp.asarray(count, jnp.int32)
        if isinstance(count, Node):
            counts = counts.reshape(*counts.shape, *(1,) * (len(shape) - counts.ndim))
        words, counts = jnp.broadcast_to(words, (*shape, 2)), jnp.broadcast_to(counts, shape)
        child = random_key_p.bind(words.reshape(rows, 2), counts.reshape(rows))
        child = lax.bitcast_convert_type(child, jnp.uint32).reshape(*shape, 2)
        return [jax.random.wrap_key_data(child, impl="threefry2x32") if is_typed else child]

    inputs = (_unwrapped(key), count) if isinstance(count, Node) else (_unwrapped(key),)
    return Raise((node,), inputs, build, "a key made of another one, as random_key")


def _child(node: Node) -> tuple[Node, Any] | None:
    """(key, count) where keys are made of others:
    the numbers are known, or a value of the graph, from the first axis on."""
    match node:
        case Node("random_fold_in", (key, data)) if data.shape[: key.rank] == key.shape[: data.rank]:
            return key, data
        case Node("random_split", (key,)) if len(node.params["shape"]) == 1:
            return key, range(node.shape[-1])
        case Node("random_unwrap", (Node("random_split", (key,)) as keys,)) if len(keys.params["shape"]) == 1:
            return key, range(keys.shape[-1])
        case Node("unstack", (keys,)) if (key := _split(keys)) is not None and node.params["axis"] == key.rank:
            return key, node.output
        case Node("squeeze", (Node("slice", (keys,)) as one,)) if (key := _split(keys)) is not None:
            axis, starts = key.rank, one.params["start_indices"]
            whole = one.shape == (*keys.shape[:axis], 1, *keys.shape[axis + 1 :])
            return (key, starts[axis]) if whole and tuple(node.params["dimensions"]) == (axis,) else None
    return None


def _split(keys: Node) -> Node | None:
    """What keys, or their words, are split from, along a last axis of keys."""
    keys = keys.inputs[0] if keys.op == "random_unwrap" else keys
    return keys.inputs[0] if keys.op == "random_split" and len(keys.params["shape"]) == 1 else None


def _check_generator(key: Node) -> None:
    if key.dtype.name != _THREEFRY:
        raise Refused(f"its key is {key.dtype.name}, and kernels draw with Threefry, {_THREEFRY}")
    if not jax.config.jax_threefry_partitionable:
        raise Refused("jax_threefry_partitionable is off, and kernels draw numbers as if it were on")


def _unwrapped(key: Node) -> Node:
    """What has the words of keys: raw ones, or the keys."""
    return key.inputs[0] if key.op == "random_wrap" else key


def _words(key: Node, value: Callable[[Node], Any]) -> Any:
    """The words of keys, [keys, 2] int32."""
    words = _unwrapped(key)
    data = value(words) if words is not key else jax.random.key_data(value(key))
    return lax.bitcast_convert_type(data, jnp.int32).reshape(-1, 2)


def uniform_of(node: Node) -> tuple[Node, float] | None:
    """(bits, low) of uniform numbers from `low` to 1 that are made of random bits."""
    for low, scaled in either(node, "max"):
        for product, shift in either(scaled, "add"):
            for mantissa, scale in either(product, "mul"):
                least, factor = number(low), number(scale)
                if (
                    least is None
                    or factor is None
                    or number(shift) != least
                    or factor != np.float32(1) - np.float32(least)
                ):
                    continue
                bits = _mantissa_of(mantissa)
                if bits is not None:
                    return bits, float(least)
    return None


def _mantissa_of(node: Node) -> Node | None:
    """The bits of which the upper 23 are the mantissa of a number from 1 to 2, less 1."""
    match node:
        case Node(
            "sub", (Node("bitcast_convert_type", (Node("or", (Node("shift_right_logical", (bits, nine)), one)),)), less)
        ):
            numbers = (number(nine), number(one), number(less))
            is_drawn = bits.op == "random_bits" and bits.params["bit_width"] == 32
            return bits if is_drawn and numbers == (9, _ONE, 1.0) else None
    return None
