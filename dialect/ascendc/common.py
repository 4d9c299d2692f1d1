"""What the definitions of `ascendc` share: buffers, limits, and the operands of most ops."""

from __future__ import annotations

from jascend.backends.ascend.instructions import ANY
from mlir import ir

from ..definition import Operand, VerifyError
from ..elements import element_name, type_name

BLOCK = 32  # bytes: the unit of UB addresses and of DataCopy
REPEAT = 256  # bytes a vector instruction handles in one repeat
MAX_REPEATS = 255

DST = Operand("dst", "memref", "written", role="out")
SRC = Operand("src", "memref", "read", role="in")
SRC0 = Operand("src0", "memref", "read", role="in")
SRC1 = Operand("src1", "memref", "read", role="in")


_BITS = {  # those of i64 and i1 in global memory only
    "i64": 64, "i1": 8, "f32": 32, "i32": 32, "ui32": 32, "f16": 16, "bf16": 16, "i16": 16, "ui16": 16,
    "i8": 8, "ui8": 8, "f8E4M3FN": 8, "f8E5M2": 8, "f8E8M0FNU": 8, "i4": 4, "f4E2M1FN": 4,
}  # fmt: skip


def element_bytes(element: ir.Type) -> int:
    """Bytes of one element of a buffer."""
    bits = _BITS[type_name(element)]
    if bits % 8:
        raise ValueError(f"two elements {element} share a byte")
    return bits // 8


def element_bits(element: ir.Type) -> int:
    """Bits of one element of a buffer."""
    return _BITS[type_name(element)]


def bytes_of(count: int, element: ir.Type) -> int:
    """Bytes of so many elements of a buffer."""
    return count * _BITS[type_name(element)] // 8


def element_bytes_of(buffer: ir.Value) -> int:
    return element_bytes(buffer.type.element_type)


def ranges(count: int, length: int, stride: int) -> list[tuple[int, int]]:
    """So many ranges of `length` bytes, `stride` apart: one where they leave nothing out."""
    if count == 1 or stride <= length:
        return [(0, (count - 1) * stride + length)]
    return [(i * stride, i * stride + length) for i in range(count)]


def constant_index(value: ir.Value) -> int | None:
    """The number that an index value is known to be."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return owner.attributes["value"].value


def buffer_length(buffer: ir.Value) -> int:
    """Elements of a UB buffer."""
    return buffer.type.get_dim_size(0)


def buffer_bytes(buffer: ir.Value) -> int:
    """Bytes of a UB buffer."""
    type_ = buffer.type
    return bytes_of(type_.get_dim_size(0), type_.element_type)


def element_of(value: ir.Value) -> str:
    return element_name(value)


def space_of(value: ir.Value) -> str:
    space = value.type.memory_space
    return space.value if isinstance(space, ir.StringAttr) else ""


def in_space(op, **operands: str) -> None:
    for name, space in operands.items():
        value = getattr(op, name)
        if space_of(value) != space:
            raise VerifyError(f"'{name}' must be a memref in memory space \"{space}\", got {value.type}")


def elements_of(op, allowed: tuple[str, ...], *names: str) -> None:
    for name in names:
        element = element_of(getattr(op, name))
        if element not in allowed:
            raise VerifyError(f"'{name}' must have elements {' or '.join(allowed)}, got {element}")


def takes(op, *names: str) -> None:
    """The rule for the elements of a computing op, on one product or another."""
    elements_of(op, ANY.elements[op.operation.name.partition(".")[2]], *names)


def same_elements(op, *names: str) -> None:
    """Whether buffers hold the same as 'dst'."""
    element = element_of(op.dst)
    for name in names:
        if element_of(getattr(op, name)) != element:
            raise VerifyError(f"'{name}' has elements {element_of(getattr(op, name))}, 'dst' has {element}")


def same_lengths(op, *names: str) -> int:
    lengths = {name: buffer_length(getattr(op, name)) for name in names}
    if len(set(lengths.values())) > 1:
        raise VerifyError("buffers differ in length: " + ", ".join(f"'{n}' {length}" for n, length in lengths.items()))
    return lengths[names[0]]


def elementwise(*sources: str):
    """The rule of elementwise ops: one element type, one length."""

    def verify(op) -> None:
        type_ = op.dst.type
        if all(getattr(op, name).type == type_ for name in sources):  # then they agree in everything
            in_space(op, dst="ub")
            takes(op, "dst")
            return
        in_space(op, dst="ub", **{name: "ub" for name in sources})
        takes(op, "dst")
        same_elements(op, *sources)
        same_lengths(op, "dst", *sources)

    return verify


def mask_fits(mask: ir.Value, data: ir.Value) -> None:
    if element_of(mask) != "ui8" or buffer_length(mask) * 8 != buffer_length(data):
        raise VerifyError(
            f"the mask of {buffer_length(data)} elements is ui8[{buffer_length(data) // 8}], got {mask.type}"
        )
