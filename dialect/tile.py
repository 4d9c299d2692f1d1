"""Dialect `tile`: values that live in one core's unified buffer (level 2).

A tile is a builtin `tensor` of static shape; elementwise work on tiles is plain `arith` and `math`, control flow is
`scf`. Global memory is a `memref` in memory space "gm", addressed by a flat element offset, so that every address is
64-bit arithmetic in the open. The dialect has ops only for what upstream has none.
"""

from __future__ import annotations

from mlir import ir

from .definition import Attribute, Dialect, Op, Operand, Result, VerifyError


def _length(value: ir.Value) -> int:
    tile = ir.RankedTensorType(value.type)
    if tile.rank != 1 or not tile.has_static_shape:
        raise VerifyError(f"a tile is a one-dimensional tensor of static shape, got {tile}")
    return tile.get_dim_size(0)


def _element(value: ir.Value) -> ir.Type:
    return ir.ShapedType(value.type).element_type


def _same_element(a: ir.Value, a_name: str, b: ir.Value, b_name: str) -> None:
    if _element(a) != _element(b):
        raise VerifyError(f"'{a_name}' has elements {_element(a)}, '{b_name}' has {_element(b)}")


def _verify_load(op) -> None:
    _length(op.value)
    _same_element(op.source, "source", op.value, "value")


def _verify_store(op) -> None:
    _length(op.value)
    _same_element(op.target, "target", op.value, "value")


def _verify_reduce(op) -> None:
    length, group = _length(op.x), op.group
    if group < 1 or length % group:
        raise VerifyError(f"'group' must divide the {length} elements of 'x', got {group}")
    if _length(op.value) != length // group:
        raise VerifyError(f"{length} elements in groups of {group} give {length // group} results, got {_length(op.value)}")
    _same_element(op.x, "x", op.value, "value")


def _verify_extract(op) -> None:
    _length(op.x)
    if op.scalar.type != _element(op.x):
        raise VerifyError(f"an element of {op.x.type} is a {_element(op.x)}, got {op.scalar.type}")


def _verify_compress(op) -> None:
    if _length(op.x) != _length(op.mask):
        raise VerifyError(f"'x' has {_length(op.x)} elements, 'mask' {_length(op.mask)}")
    if str(_element(op.mask)) != "i1":
        raise VerifyError(f"'mask' must have elements i1, got {_element(op.mask)}")
    if op.value.type != op.x.type:
        raise VerifyError(f"'value' must be {op.x.type}, got {op.value.type}")


def _verify_iota(op) -> None:
    _length(op.value)
    if str(_element(op.value)) not in ("f32", "i32"):
        raise VerifyError(f"a ramp has elements f32 or i32, got {_element(op.value)}")


TILE = Dialect(
    "tile",
    "Values that live in one core's unified buffer (UB), in SSA form.",
    (
        Op(
            "block_rows",
            "This core's share of the rows: a half-open range.",
            operands=(Operand("rows", "index", "all rows"),),
            results=(Result("first", "index", ""), Result("last", "index", "one past the end")),
            description="Shares differ by at most one row; the first cores take the larger ones.",
        ),
        Op(
            "load",
            "Global memory to UB: `count` elements from `offset` on.",
            operands=(
                Operand("source", "memref", "in memory space \"gm\""),
                Operand("offset", "index", "in elements, from the start of `source`"),
                Operand("count", "index", "valid elements; at most the tile's length"),
            ),
            attributes=(
                Attribute("pad", "float", "what lanes from `count` on hold; absent: they are unspecified", optional=True),
            ),
            results=(Result("value", "tensor", "the tile"),),
            verify=_verify_load,
        ),
        Op(
            "store",
            "UB to global memory: the first `count` elements, to `offset` on.",
            operands=(
                Operand("value", "tensor", "the tile"),
                Operand("target", "memref", "in memory space \"gm\""),
                Operand("offset", "index", "in elements, from the start of `target`"),
                Operand("count", "index", "elements written"),
            ),
            side_effects=True,
            verify=_verify_store,
        ),
        Op(
            "reduce",
            "Reduces every `group` consecutive elements to one, by a fixed tree.",
            operands=(Operand("x", "tensor", "N elements, f32"),),
            attributes=(
                Attribute("kind", "string", "the reduction", values=("add", "max")),
                Attribute("group", "integer", "elements per result; divides N"),
            ),
            results=(Result("value", "tensor", "N / group elements"),),
            description=(
                "The tree depends on `group` only, so a sum has the same bits wherever its group lies. Groups of 1024 "
                "are the blocks that probability sums are made of."
            ),
            verify=_verify_reduce,
        ),
        Op(
            "extract",
            "One element, to the scalar unit.",
            operands=(Operand("x", "tensor", "the tile"), Operand("position", "index", "")),
            results=(Result("scalar", "any", "element type of `x`"),),
            verify=_verify_extract,
        ),
        Op(
            "iota",
            "The ramp 0, 1, 2, ...",
            results=(Result("value", "tensor", "f32 (exact below 2^24) or i32"),),
            verify=_verify_iota,
        ),
        Op(
            "compress",
            "Packs the elements under the mask to the front, in order; the rest is unspecified.",
            operands=(Operand("x", "tensor", "N elements"), Operand("mask", "tensor", "N x i1")),
            results=(Result("value", "tensor", "N elements"), Result("kept", "index", "how many were packed")),
            verify=_verify_compress,
        ),
    ),
)
