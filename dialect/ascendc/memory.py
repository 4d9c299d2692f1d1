"""Buffers, and copies between global memory and the unified buffer."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from .common import BLOCK, element_of, in_space


def _verify_local_tensor(op) -> None:
    in_space(op, buffer="ub")
    if op.offset is not None and op.offset % BLOCK:
        raise VerifyError(f"'offset' must be a multiple of {BLOCK} bytes, got {op.offset}")


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
