"""What the verification functions of `tile` share."""

from __future__ import annotations

from mlir import ir

from ..definition import VerifyError

SHARING = ("i4", "f4E2M1FN")  # two such elements share a byte

def length_of(value: ir.Value) -> int:
    tile = ir.RankedTensorType(value.type)
    if tile.rank != 1 or not tile.has_static_shape:
        raise VerifyError(f"a tile is a one-dimensional tensor of static shape, got {tile}")
    return tile.get_dim_size(0)


def element_of(value: ir.Value) -> ir.Type:
    return ir.ShapedType(value.type).element_type


def same_element(a: ir.Value, a_name: str, b: ir.Value, b_name: str) -> None:
    if element_of(a) != element_of(b):
        raise VerifyError(f"'{a_name}' has elements {element_of(a)}, '{b_name}' has {element_of(b)}")
