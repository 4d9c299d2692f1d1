"""Buffers, and copies between global memory and the unified buffer."""

from __future__ import annotations

from mlir import ir

from ..definition import Attribute, Op, Operand, Result, VerifyError
from .common import (
    BLOCK,
    DST,
    SRC,
    buffer_bytes,
    buffer_length,
    bytes_of,
    constant_index,
    element_bytes_of,
    element_of,
    in_space,
    ranges,
    same_lengths,
)


def _verify_local_tensor(op) -> None:
    in_space(op, buffer="ub")
    offset = op.offset
    if offset is not None and offset % BLOCK:
        raise VerifyError(f"'offset' must be a multiple of {BLOCK} bytes, got {offset}")


def _verify_view(op) -> None:
    in_space(op, buffer="ub", value="ub")
    offset = constant_index(op.offset)
    if offset is None:
        return
    buffer = op.buffer
    start = bytes_of(offset, ir.MemRefType(buffer.type).element_type)
    viewed, there_are = buffer_bytes(op.value), buffer_bytes(buffer)
    if start % BLOCK or start < 0 or start + viewed > there_are:
        raise VerifyError(
            f"{viewed} bytes from byte {start} on: a view starts at a multiple of {BLOCK} bytes and ends within the "
            f"{there_are} bytes of 'buffer'"
        )


def _verify_copy(op) -> None:
    in_space(op, dst="ub", src="ub")
    if element_of(op.dst) != element_of(op.src):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")
    same_lengths(op, "dst", "src")
    if buffer_bytes(op.dst) % BLOCK:
        raise VerifyError(f"whole blocks of {BLOCK} bytes are copied, got {buffer_bytes(op.dst)} bytes")


# How the text holds global memory of elements that no instruction computes on.
_HELD_AS = {"i64": "i32", "i1": "i8"}


def _verify_copy_in(op) -> None:
    in_space(op, dst="ub", src="gm")
    if element_of(op.dst) != _HELD_AS.get(element_of(op.src), element_of(op.src)):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")


def _verify_copy_out(op) -> None:
    in_space(op, dst="gm", src="ub")
    if element_of(op.src) != _HELD_AS.get(element_of(op.dst), element_of(op.dst)):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")


_MAX_COPIES = 4095  # blocks of one copy
_WIDE_STRIDE = 2**32 - 1


def _rows(op, buffer) -> None:
    """A copy of rows: `row_length` elements each, `gm_pitch` apart in GM and `pitch` apart in UB."""
    width, length = element_bytes_of(buffer), buffer_length(buffer)
    memory = element_of(op.src if buffer == op.dst else op.dst)
    if element_of(buffer) not in (memory, "i8" if memory == "i1" else memory):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")
    if not 1 <= op.row_length <= min(op.pitch, op.gm_pitch):
        raise VerifyError(
            f"'row_length' must be 1 to both pitches, got {op.row_length} for {op.pitch} and {op.gm_pitch}"
        )
    if op.pitch * width % BLOCK:
        raise VerifyError(f"'pitch' must fill whole blocks of {BLOCK} bytes, got {op.pitch} elements of {width} bytes")
    if length % op.pitch or length // op.pitch > _MAX_COPIES:
        raise VerifyError(f"1 to {_MAX_COPIES} rows of {op.pitch} elements make a buffer, got one of {length}")
    if (op.gm_pitch - op.row_length) * width > _WIDE_STRIDE:
        raise VerifyError(f"the gap between rows must fit 32 bits, got {(op.gm_pitch - op.row_length) * width} bytes")


def _verify_copy_in_rows(op) -> None:
    in_space(op, dst="ub", src="gm")
    _rows(op, op.dst)


def _verify_copy_out_rows(op) -> None:
    in_space(op, dst="gm", src="ub")
    _rows(op, op.src)


def _copied(op, gap: int) -> int:
    """Elements from the first to the last of `repeat` pieces of `length` that are `gap` apart."""
    return op.repeat * op.length + (op.repeat - 1) * gap


def _pieces(op, buffer: ir.Value, gap: int) -> list[tuple[int, int]]:
    """The bytes of each piece."""
    width = element_bytes_of(buffer)
    return ranges(op.repeat, op.length * width, (op.length + gap) * width)


def _verify_copy_blocks(op) -> None:
    in_space(op, dst="ub", src="ub")
    if element_of(op.dst) != element_of(op.src):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")
    if not 1 <= op.repeat <= _MAX_COPIES:
        raise VerifyError(f"1 to {_MAX_COPIES} pieces are copied, got {op.repeat}")
    for name in ("length", "src_gap", "dst_gap"):
        if getattr(op, name) * element_bytes_of(op.dst) % BLOCK:
            raise VerifyError(f"'{name}' must fill whole blocks of {BLOCK} bytes, got {getattr(op, name)} elements")
    for buffer, gap in (("dst", op.dst_gap), ("src", op.src_gap)):
        if _copied(op, gap) > buffer_length(getattr(op, buffer)):
            raise VerifyError(
                f"{op.repeat} pieces of {op.length} with gaps of {gap} take {_copied(op, gap)} elements, "
                f"'{buffer}' has {buffer_length(getattr(op, buffer))}"
            )


def _verify_workspace(op) -> None:
    in_space(op, memory="gm")


_ONCE = Attribute("once", "bool", "no other copy writes an element that this one writes: nothing orders them", True)
_ROWS = (
    Attribute("row_length", "integer", "elements of a row that are copied"),
    Attribute("gm_pitch", "integer", "elements from one row to the next in GM"),
    Attribute("pitch", "integer", "elements from one row to the next in UB; a multiple of 32 bytes"),
)

MEMORY = (
    Op(
        "local_tensor",
        "`LocalTensor<T> name(TPosition::VECCALC, offset, length)`: a named buffer in UB.",
        attributes=(
            Attribute("name_hint", "string", "the buffer's name in the emitted text"),
            Attribute(
                "offset", "integer", "bytes from the start of UB; a multiple of 32; absent until allocated", True
            ),
        ),
        results=(Result("buffer", "memref", "in memory space \"ub\""),),
        verify=_verify_local_tensor,
        side_effects=True,
    ),
    Op(
        "view",
        "`buffer[offset]`: a part of a buffer, or its bytes as elements of another type.",
        operands=(
            Operand("buffer", "memref", "in memory space \"ub\""),
            Operand("offset", "index", "in elements of `buffer`; a multiple of 32 bytes"),
        ),
        results=(Result("value", "memref", "the same bytes"),),
        verify=_verify_view,
        asks=lambda op: constant_index(op.operands[1]),
    ),
    Op(
        "copy",
        "`DataCopy(dst, src, count)` within UB; a multiple of 32 bytes.",
        operands=(DST, SRC),
        verify=_verify_copy,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "copy_in",
        "`DataCopyPad(dst, src[offset], ...)`: one burst from GM to UB.",
        operands=(
            Operand("dst", "memref", "written", role="out"),
            Operand("src", "memref", "read", role="in"),
            Operand("offset", "index", "in elements"),
            Operand("count", "index", "elements; the last 32-byte block is filled up with `pad`"),
        ),
        attributes=(Attribute("pad", "float", "what fills the last block up", optional=True),),
        verify=_verify_copy_in,
        side_effects=True,
        pipe="MTE2",
    ),
    Op(
        "copy_out",
        "`DataCopyPad(dst[offset], src, ...)`: one burst from UB to GM, exact to the byte.",
        operands=(
            Operand("dst", "memref", "written", role="out"),
            Operand("src", "memref", "read", role="in"),
            Operand("offset", "index", "in elements"),
            Operand("count", "index", "elements"),
        ),
        attributes=(_ONCE,),
        verify=_verify_copy_out,
        side_effects=True,
        pipe="MTE3",
    ),
    Op(
        "copy_in_rows",
        "`DataCopyPad(dst, src[offset], {rows, ...})`: rows from GM to UB, in one copy.",
        operands=(
            Operand("dst", "memref", "written", role="out"),
            Operand("src", "memref", "read", role="in"),
            Operand("offset", "index", "of the first row, in elements"),
            Operand("rows", "index", "1 to the rows of `dst`"),
        ),
        attributes=(*_ROWS, Attribute("pad", "float", "what fills the last block of each row up", optional=True)),
        verify=_verify_copy_in_rows,
        side_effects=True,
        pipe="MTE2",
    ),
    Op(
        "copy_out_rows",
        "`DataCopyPad(dst[offset], src, {rows, ...})`: rows from UB to GM, in one copy, exact to the byte.",
        operands=(
            Operand("dst", "memref", "written", role="out"),
            Operand("src", "memref", "read", role="in"),
            Operand("offset", "index", "of the first row, in elements"),
            Operand("rows", "index", "1 to the rows of `src`"),
        ),
        attributes=(*_ROWS, _ONCE),
        verify=_verify_copy_out_rows,
        side_effects=True,
        pipe="MTE3",
    ),
    Op(
        "copy_blocks",
        "`DataCopy(dst, src, {repeat, length, src_gap, dst_gap})` within UB: pieces with gaps between.",
        operands=(
            Operand(
                "dst", "memref", "written", role="out",
                touched=lambda op: _pieces(op, op.dst, op.dst_gap),
            ),
            Operand(
                "src", "memref", "read", role="in",
                touched=lambda op: _pieces(op, op.src, op.src_gap),
            ),
        ),
        attributes=(
            Attribute("repeat", "integer", "pieces, at most 4095"),
            Attribute("length", "integer", "elements of a piece; a multiple of 32 bytes"),
            Attribute("src_gap", "integer", "elements from the end of a piece to the start of the next"),
            Attribute("dst_gap", "integer", "the same in `dst`"),
        ),
        verify=_verify_copy_blocks,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "workspace",
        "`GetUserWorkspace(workspace) + offset`: scratch in GM that all cores share.",
        operands=(Operand("offset", "index", "in bytes"),),
        attributes=(Attribute("name_hint", "string", "its name in the emitted text"),),
        results=(Result("memory", "memref", "in memory space \"gm\""),),
        verify=_verify_workspace,
        side_effects=True,
    ),
)
