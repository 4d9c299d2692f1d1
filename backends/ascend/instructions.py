"""What the calls of the Ascend C API take on each architecture, as data: element types, comparisons, casts.

The dialect `ascendc` takes what one of the products takes; `verify-ascendc` and the lowering to `ascendc` ask for the
one that is compiled for. Element types are those of the IR. Where a call moves bits and the emitter reinterprets the
operands for it (`Select` on i32 as float), the type that the IR has is the one in the table.

Sources: the API pages of the public Ascend C documentation and the type checks in the public headers,
for 2201 and 3510.
"""

from __future__ import annotations

from dataclasses import dataclass

from .targets import Target

_FLOATS = ("f32", "f16")
_INTS = ("i32", "i16")
_NUMBERS = (*_FLOATS, *_INTS)
_BITS = (*_NUMBERS, "bf16")  # what calls take that only move bits
_ARITHMETIC = ("add", "sub", "mul", "max", "min")
_SCALAR_ARITHMETIC = ("adds", "muls", "maxs", "mins")
_MODES = ("LT", "GT", "EQ", "LE", "GE", "NE")
_FIVE = ("CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC")
_EXACT = ("CAST_NONE",)
_ALL = (*_EXACT, *_FIVE)
_NARROW = ("i8", "ui8", "i4")


@dataclass(frozen=True)
class Instructions:
    """The calls of one architecture.

    Attributes:
        elements: for each op of `ascendc` that computes, the elements that it takes; an op that is not here does not
            exist.
        comparisons: the modes of `Compare` and `CompareScalar`, by the elements compared.
        casts: the rounding modes of `Cast`, by the elements it converts from and to.
    """

    elements: dict[str, tuple[str, ...]]
    comparisons: dict[str, tuple[str, ...]]
    casts: dict[tuple[str, str], tuple[str, ...]]

    def __contains__(self, op: str) -> bool:
        return op in self.elements


_ELEMENTS_2201 = {
    **dict.fromkeys((*_ARITHMETIC, *_SCALAR_ARITHMETIC), _NUMBERS),
    **{f"{name}_strided": _NUMBERS for name in _ARITHMETIC},
    **dict.fromkeys(("div", "div_strided", "exp", "ln", "sqrt", "abs"), _FLOATS),
    **dict.fromkeys(("shift_left", "shift_right"), _INTS),
    # Printed on 16-bit units, which is all that 2201 has.
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_not"), ("ui8", *_INTS)),
    "select": _BITS,
    "select_scalar": _FLOATS,
    **dict.fromkeys(("duplicate", "copy_strided", "brcb", "gather_mask", "gather_pattern", "gather"), _BITS),
    "create_vec_index": _NUMBERS,
    **{f"{extent}_reduce_{kind}": ("f32",) for extent in ("block", "whole") for kind in ("sum", "max", "min")},
    **dict.fromkeys(("block_sum_first", "add_lane", "sort32", "mrg_sort", "mrg_sort_lists"), ("f32",)),
}
_CASTS_2201 = {
    ("bf16", "f32"): _EXACT,
    ("f16", "f32"): _EXACT,
    ("f32", "bf16"): _FIVE,
    ("f32", "f16"): (*_ALL, "CAST_ODD"),
    ("f32", "f32"): _FIVE,
    ("i32", "f32"): _ALL,
    ("f32", "i32"): _FIVE,
    ("bf16", "i32"): _FIVE,
    ("i32", "i16"): _EXACT,
    ("i16", "f32"): _EXACT,
    ("f32", "i16"): _FIVE,
    ("f16", "i16"): _FIVE,
    ("f16", "i32"): _FIVE,
    **{("f16", narrow): _ALL for narrow in _NARROW},
    **{(narrow, "f16"): _EXACT for narrow in _NARROW},
}
_COMPARISONS_2201 = {"f32": _MODES, "f16": _MODES, "i32": ("EQ",)}

_ELEMENTS_3510 = _ELEMENTS_2201 | {
    **dict.fromkeys((*_ARITHMETIC, *_SCALAR_ARITHMETIC), _BITS),
    **{f"{name}_strided": _BITS for name in _ARITHMETIC},
    **dict.fromkeys(("div", "div_strided"), _NUMBERS),
    "abs": _NUMBERS,
    "scatter": _BITS,
}
_CASTS_3510 = _CASTS_2201 | {
    ("f32", "f8E4M3FN"): ("CAST_RINT",),
    ("f32", "f8E5M2"): ("CAST_RINT",),
    ("f32", "ui8"): ("CAST_ROUND",),  # the codes of HiFloat8
    ("bf16", "f4E2M1FN"): _FIVE,
    ("i32", "ui8"): _EXACT,
}

INSTRUCTIONS: dict[int, Instructions] = {
    2201: Instructions(_ELEMENTS_2201, _COMPARISONS_2201, _CASTS_2201),
    3510: Instructions(_ELEMENTS_3510, dict.fromkeys(_BITS, _MODES), _CASTS_3510),
}
ANY = INSTRUCTIONS[3510]  # what one of the architectures takes: 3510 takes all that 2201 does


def instructions(target: Target) -> Instructions:
    """The calls of a product."""
    return INSTRUCTIONS[target.npu_arch]
