"""Ops that move lanes to places known beforehand: repeated, picked or spread, group by group."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from ..elements import element_name
from .common import SHARING, length_of, same_element

_BLOCKS = {"f32": 8, "i32": 8, "f16": 16, "bf16": 16, "i16": 16}  # elements of a 32-byte block
_BROADCAST = 8  # elements that Brcb takes at a time


def _result(op, length: int, why: str) -> None:
    same_element(op.x, "x", op.value, "value")
    if length_of(op.value) != length:
        raise VerifyError(f"{why} are {length} elements, got {length_of(op.value)}")


def _verify_broadcast(op) -> None:
    count, element = length_of(op.x), element_name(op.x)
    block = _BLOCKS.get(element)
    if block is None:
        raise VerifyError(f"elements {' or '.join(_BLOCKS)} can be broadcast, got {element}")
    if op.width < 1 or op.width % block:
        raise VerifyError(
            f"'width' must be a multiple of {block} elements {element}, which are 32 bytes, got {op.width}"
        )
    _result(op, count * op.width, f"{count} elements {op.width} times each")


def _verify_repeat(op) -> None:
    count, block = length_of(op.x), _BLOCKS.get(element_name(op.x))
    if block is None or op.group < 1 or op.group % block or count % op.group:
        raise VerifyError(f"'group' must be a multiple of 32 bytes that divides {op.x.type}, got {op.group}")
    same_element(op.x, "x", op.value, "value")
    if length_of(op.value) % count:
        raise VerifyError(f"{count} elements, repeated, are no {length_of(op.value)} elements")


def _verify_take(op) -> None:
    length, element = length_of(op.x), element_name(op.x)
    if element in SHARING:
        raise VerifyError(f"lanes of whole bytes can be taken, but two elements {element} share a byte")
    if op.group < 1 or length % op.group:
        raise VerifyError(f"'group' must divide the {length} elements of 'x', got {op.group}")
    if op.count < 1 or op.start < 0 or op.start + op.count > op.group:
        raise VerifyError(f"{op.count} lanes from {op.start} on are not within a group of {op.group}")
    _result(op, length // op.group * op.count, f"{op.count} lanes of every group of {op.group}")


def _verify_spread(op) -> None:
    length, block = length_of(op.x), _BLOCKS.get(element_name(op.x))
    if block is None or op.group < 1 or op.group % block or op.width % block:
        raise VerifyError(f"'group' and 'width' must be multiples of 32 bytes, got {op.group} and {op.width}")
    if length % op.group:
        raise VerifyError(f"'group' must divide the {length} elements of 'x', got {op.group}")
    if op.width < op.group:
        raise VerifyError(f"'width' must be at least 'group', got {op.width} for {op.group}")
    _result(op, length // op.group * op.width, f"{length // op.group} groups of {op.width}")


LANES = (
    Op(
        "broadcast",
        "Each element `width` times: one value a row becomes a row of it.",
        operands=(Operand("x", "tensor", "R elements"),),
        attributes=(Attribute("width", "integer", "a multiple of 32 bytes"),),
        results=(Result("value", "tensor", "R * `width` elements"),),
        description=(
            "Where it feeds arithmetic of two tiles only, the rows are never written: the instruction reads the same "
            "32 bytes again and again."
        ),
        verify=_verify_broadcast,
    ),
    Op(
        "repeat",
        "Every group of lanes, several times in a row.",
        operands=(Operand("x", "tensor", "N elements"),),
        attributes=(Attribute("group", "integer", "divides N; a multiple of 32 bytes"),),
        results=(Result("value", "tensor", "a multiple of N elements"),),
        verify=_verify_repeat,
    ),
    Op(
        "take",
        "`count` lanes from `start` on of every group.",
        operands=(Operand("x", "tensor", "N elements"),),
        attributes=(
            Attribute("group", "integer", "divides N"),
            Attribute("start", "integer", "of the lanes, in a group"),
            Attribute("count", "integer", "lanes of a group"),
        ),
        results=(Result("value", "tensor", "N / `group` * `count` elements"),),
        verify=_verify_take,
    ),
    Op(
        "spread",
        "Groups of `group` lanes become groups of `width` lanes; the new lanes hold `fill`.",
        operands=(Operand("x", "tensor", "N elements"),),
        attributes=(
            Attribute("group", "integer", "divides N; a multiple of 32 bytes"),
            Attribute("width", "integer", "at least `group`; a multiple of 32 bytes"),
            Attribute("fill", "float", ""),
        ),
        results=(Result("value", "tensor", "N / `group` * `width` elements"),),
        verify=_verify_spread,
    ),
)
