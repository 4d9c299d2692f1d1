"""Buffers, and copies between global memory and the unified buffer."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from .common import BLOCK, DST, SRC, buffer_bytes, constant_of, element_bytes_of, element_of, in_space, same_lengths


def _verify_local_tensor(op) -> None:
    in_space(op, buffer="ub")
    if op.offset is not None and op.offset % BLOCK:
        raise VerifyError(f"'offset' must be a multiple of {BLOCK} bytes, got {op.offset}")


def _verify_view(op) -> None:
    in_space(op, buffer="ub", value="ub")
    offset = constant_of(op.offset)
    if offset is None:
        return
    start = offset * element_bytes_of(op.buffer)
    if start % BLOCK or start < 0 or start + buffer_bytes(op.value) > buffer_bytes(op.buffer):
        raise VerifyError(
            f"{buffer_bytes(op.value)} bytes from byte {start} on: a view starts at a multiple of {BLOCK} bytes and ends "
            f"within the {buffer_bytes(op.buffer)} bytes of 'buffer'"
        )


def _verify_copy(op) -> None:
    in_space(op, dst="ub", src="ub")
    if element_of(op.dst) != element_of(op.src):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")
    same_lengths(op, "dst", "src")
    if buffer_bytes(op.dst) % BLOCK:
        raise VerifyError(f"whole blocks of {BLOCK} bytes are copied, got {buffer_bytes(op.dst)} bytes")


def _verify_copy_in(op) -> None:
    in_space(op, dst="ub", src="gm")
    if element_of(op.dst) != element_of(op.src):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")


def _verify_copy_out(op) -> None:
    in_space(op, dst="gm", src="ub")
    if element_of(op.dst) != element_of(op.src):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")


MEMORY = (
    Op(
        "local_tensor",
        "`LocalTensor<T> name(TPosition::VECCALC, offset, length)`: a named buffer in UB.",
        attributes=(
            Attribute("name_hint", "string", "the buffer's name in the emitted text"),
            Attribute("offset", "integer", "bytes from the start of UB; a multiple of 32; absent until allocated", True),
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
        verify=_verify_copy_out,
        side_effects=True,
        pipe="MTE3",
    ),
)
