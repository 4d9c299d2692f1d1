"""Names of types as MLIR prints them, without printing: every verification, lowering and line of text asks for some."""

from __future__ import annotations

from mlir import ir

_NAMES = {
    ir.F16Type: "f16",
    ir.BF16Type: "bf16",
    ir.F32Type: "f32",
    ir.Float8E4M3FNType: "f8E4M3FN",
    ir.Float8E5M2Type: "f8E5M2",
    ir.Float8E8M0FNUType: "f8E8M0FNU",
    ir.Float4E2M1FNType: "f4E2M1FN",
    ir.IndexType: "index",
}


def type_name(type_: ir.Type) -> str:
    """What `str(type_)` is."""
    name = _NAMES.get(type(type_))
    if name is None and isinstance(type_, ir.IntegerType):
        return f"{'' if type_.is_signless else 'u' if type_.is_unsigned else 's'}i{type_.width}"
    return name or str(type_)


def element_name(value: ir.Value) -> str:
    """The type of the elements of a tensor, tile, buffer or global memory."""
    return type_name(value.type.element_type)
