"""Global memory, and tiles that come from it and go there."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from ..elements import element_name
from .common import SHARING, length_of, same_element

_BYTES = {
    "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "ui8": 1, "f8E4M3FN": 1, "f8E5M2": 1, "f8E8M0FNU": 1,
}  # fmt: skip
_BLOCK = 32  # bytes
_MAX_ROWS = 4095  # blocks of one copy


# Elements in global memory that no instruction computes on, and what a copy makes of each:
# the tile's element, and how many.
COPIED_AS = {"i64": ("i32", 2), "i1": ("i8", 1)}


def _verify_load(op) -> None:
    _verify_copy(op, "source", "loaded as")


def _verify_store(op) -> None:
    _verify_copy(op, "target", "stored from")


def _verify_copy(op, memory: str, verb: str) -> None:
    length, held = length_of(op.value), element_name(getattr(op, memory))
    if held not in COPIED_AS:
        same_element(getattr(op, memory), memory, op.value, "value")
        return
    element, lanes = COPIED_AS[held]
    if element_name(op.value) != element or length % lanes:
        multiple = f" a multiple of {lanes}" if lanes > 1 else ""
        raise VerifyError(f"elements {held} are {verb}{multiple} {element}, got {op.value.type}")


def _rows(op) -> None:
    length, element = length_of(op.value), element_name(op.value)
    if element in SHARING:
        raise VerifyError(f"rows of whole bytes can be copied, but two elements {element} share a byte")
    if not 1 <= op.row_length <= min(op.pitch, op.gm_pitch):
        raise VerifyError(
            f"'row_length' must be 1 to both pitches, got {op.row_length} for {op.pitch} and {op.gm_pitch}"
        )
    if op.pitch * _BYTES.get(element, 0) % _BLOCK:
        raise VerifyError(f"'pitch' must fill whole blocks of {_BLOCK} bytes, got {op.pitch} of {element}")
    if length % op.pitch or length // op.pitch > _MAX_ROWS:
        raise VerifyError(f"1 to {_MAX_ROWS} rows of {op.pitch} elements make a tile, got one of {length}")


def _verify_load_rows(op) -> None:
    _verify_rows(op, "source", "loaded as")


def _verify_store_rows(op) -> None:
    _verify_rows(op, "target", "stored from")


def _verify_rows(op, memory: str, verb: str) -> None:
    if element_name(getattr(op, memory)) == "i1":
        _verify_copy(op, memory, verb)
    else:
        same_element(getattr(op, memory), memory, op.value, "value")
    _rows(op)


_ONCE = Attribute(
    "once", "bool", "no other store of a launch writes an element that this one writes: it need not wait for them", True
)
_ROWS = (
    Attribute("row_length", "integer", "elements of a row that are moved"),
    Attribute("gm_pitch", "integer", "elements from one row to the next in global memory"),
    Attribute("pitch", "integer", "elements from one row to the next in the tile; a multiple of 32 bytes"),
)

MEMORY = (
    Op(
        "load",
        "Global memory to UB: `count` elements from `offset` on.",
        operands=(
            Operand("source", "memref", "in memory space \"gm\""),
            Operand("offset", "index", "in elements, from the start of `source`"),
            Operand("count", "index", "valid elements; at most as many as the tile takes"),
        ),
        attributes=(
            Attribute("pad", "float", "what lanes from `count` on hold; absent: they are unspecified", optional=True),
        ),
        results=(Result("value", "tensor", "the tile; i64 as two lanes of i32, the lower half first, i1 as i8"),),
        verify=_verify_load,
    ),
    Op(
        "store",
        "UB to global memory: the first `count` elements, to `offset` on.",
        operands=(
            Operand("value", "tensor", "the tile; i64 from two lanes of i32, the lower half first, i1 from i8"),
            Operand("target", "memref", "in memory space \"gm\""),
            Operand("offset", "index", "in elements, from the start of `target`"),
            Operand("count", "index", "elements written"),
        ),
        attributes=(_ONCE,),
        side_effects=True,
        verify=_verify_store,
    ),
    Op(
        "load_rows",
        "Global memory to UB: `rows` rows of `row_length` elements, in one copy.",
        operands=(
            Operand("source", "memref", "in memory space \"gm\""),
            Operand("offset", "index", "of the first row, in elements from the start of `source`"),
            Operand("rows", "index", "1 to the rows of the tile"),
        ),
        attributes=(
            *_ROWS,
            Attribute("pad", "float", "what all other lanes hold; absent: they are unspecified", optional=True),
        ),
        results=(Result("value", "tensor", "R * `pitch` elements; i1 as i8"),),
        verify=_verify_load_rows,
    ),
    Op(
        "store_rows",
        "UB to global memory: `rows` rows of `row_length` elements, in one copy.",
        operands=(
            Operand("value", "tensor", "R * `pitch` elements; i1 from i8"),
            Operand("target", "memref", "in memory space \"gm\""),
            Operand("offset", "index", "of the first row, in elements from the start of `target`"),
            Operand("rows", "index", "1 to the rows of the tile"),
        ),
        attributes=(*_ROWS, _ONCE),
        side_effects=True,
        verify=_verify_store_rows,
    ),
)
