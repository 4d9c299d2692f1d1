"""What a core has to do with the others: its share of the rows, and memory and meetings that all of them know."""

from __future__ import annotations

from mlir import ir

from ..definition import Attribute, Op, Operand, Result, VerifyError
from ..elements import type_name

_BLOCK = 32  # bytes
_BYTES = {"f32": 4, "i32": 4, "ui32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "ui8": 1}


def _verify_block_rows(op) -> None:
    if op.parts is not None and op.parts < 1:
        raise VerifyError(f"'parts' must be at least 1, got {op.parts}")


def _verify_workspace(op) -> None:
    memory = ir.MemRefType(op.memory.type)
    element = type_name(memory.element_type)
    if op.elements < 1 or op.elements * _BYTES.get(element, 0) % _BLOCK:
        raise VerifyError(f"'elements' must fill whole blocks of {_BLOCK} bytes, got {op.elements} of {element}")
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [op.elements] if op.per == "launch" else [dynamic, op.elements]
    with ir.Location.unknown(op.context):
        expected = ir.MemRefType.get(shape, memory.element_type, memory_space=ir.StringAttr.get("gm"))
    if memory != expected:
        raise VerifyError(f"{op.elements} elements per {op.per} are a {expected}, got {memory}")


CORES = (
    Op(
        "block_rows",
        "This core's share of the rows: a half-open range, and its part of each of them.",
        operands=(Operand("rows", "index", "all rows"),),
        attributes=(Attribute("parts", "integer", "cores that work on the same rows; absent: 1", optional=True),),
        results=(
            Result("first", "index", ""),
            Result("last", "index", "one past the end"),
            Result("part", "index", "0 to `parts` - 1"),
            Result("rounds", "index", "the largest share of any group: the same number on every core"),
        ),
        description=(
            "Groups of `parts` neighbouring cores work on the same rows; core c is part c % `parts` of group c / "
            "`parts`. Shares differ by at most one row; the first groups take the larger ones. A loop with a "
            "`sync_all` inside goes over `rounds`, so that every core gets there as often as the others."
        ),
        verify=_verify_block_rows,
    ),
    Op(
        "core",
        "Which core this is, and among how many.",
        results=(Result("core", "index", "0 to `cores` - 1"), Result("cores", "index", "of the launch")),
    ),
    Op(
        "workspace",
        "Scratch in global memory that all cores of the launch share. What it holds at first is unspecified.",
        attributes=(
            Attribute("name", "string", "its name in the emitted text"),
            Attribute("elements", "integer", "of one core, the launch or one row; whole 32-byte blocks"),
            Attribute("per", "string", "what `elements` is multiplied by", values=("core", "launch", "row")),
        ),
        results=(Result("memory", "memref", "in memory space \"gm\"; rank 1 for \"launch\", else a leading `?`"),),
        verify=_verify_workspace,
    ),
    Op(
        "sync_all",
        "Waits until every core has got here; what each wrote to global memory before is visible to all after.",
        description="Every core of the launch runs it as often as the others.",
        side_effects=True,
    ),
)
