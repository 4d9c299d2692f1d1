"""Ops in the form with mask, repeats and strides: the same 32-byte block can serve a whole row."""

from __future__ import annotations

from mlir import ir

from ..definition import Attribute, Op, Operand, VerifyError
from .common import (
    BLOCK,
    MAX_REPEATS,
    REPEAT,
    buffer_bytes,
    element_bytes_of,
    in_space,
    ranges,
    same_elements,
    takes,
)

_BROADCAST = 8  # elements that Brcb takes a repeat
_MAX_STRIDE = 255


def _pieces(op, buffer: ir.Value, block_stride: int, repeat_stride: int) -> list[tuple[int, int]]:
    """The bytes that lanes lie on: of each repeat one run, or where its blocks are apart each of them."""
    taken = op.mask * element_bytes_of(buffer)
    if block_stride == 1:
        return ranges(op.repeat, taken, repeat_stride * BLOCK)
    found = set()
    for repeat in range(op.repeat):
        for block in range(-(-taken // BLOCK)):
            start = (repeat * repeat_stride + block * block_stride) * BLOCK
            found.add((start, start + min(BLOCK, taken - block * BLOCK)))
    return sorted(found, key=lambda piece: piece[1])


def _touched(name: str, position: int):
    """Which bytes of an operand are touched; `position` is its place in the strides."""

    def touched(op) -> list[tuple[int, int]]:
        half = len(op.strides) // 2
        return _pieces(op, getattr(op, name), op.strides[position], op.strides[half + position])

    return touched


def _operands(*names: str) -> tuple[Operand, ...]:
    return tuple(
        Operand(
            name, "memref", "written" if name == "dst" else "read", role="out" if name == "dst" else "in",
            touched=_touched(name, position),
        )
        for position, name in enumerate(names)
    )  # fmt: skip


def _verify_strided(*names: str):
    def verify(op) -> None:
        in_space(op, **dict.fromkeys(names, "ub"))
        takes(op, "dst")
        same_elements(op, *names[1:])
        lanes = REPEAT // element_bytes_of(op.dst)
        if not 1 <= op.mask <= lanes:
            raise VerifyError(f"'mask' must be 1 to {lanes} elements, got {op.mask}")
        if not 1 <= op.repeat <= MAX_REPEATS:
            raise VerifyError(f"'repeat' must be 1 to {MAX_REPEATS}, got {op.repeat}")
        if len(op.strides) != 2 * len(names) or not all(0 <= s <= _MAX_STRIDE for s in op.strides):
            raise VerifyError(f"'strides' must be {2 * len(names)} numbers up to {_MAX_STRIDE}, got {list(op.strides)}")
        for position, name in enumerate(names):
            hull, has = _touched(name, position)(op)[-1][1], buffer_bytes(getattr(op, name))
            if hull > has:
                raise VerifyError(
                    f"{op.repeat} repeats of {op.mask} elements reach byte {hull} of '{name}', which has {has}"
                )

    return verify


def _attributes(strides: str) -> tuple[Attribute, ...]:
    return (
        Attribute("mask", "integer", "elements of a repeat"),
        Attribute("repeat", "integer", f"at most {MAX_REPEATS}"),
        Attribute("strides", "int32 list", f"{strides}, in 32-byte blocks: between blocks, then between repeats"),
    )


def _binary(name: str, api: str) -> Op:
    names = ("dst", "src0", "src1")
    return Op(
        f"{name}_strided",
        f"`{api}(dst, src0, src1, mask, repeat, {{strides}})`.",
        operands=_operands(*names),
        attributes=_attributes("of dst, src0, src1"),
        verify=_verify_strided(*names),
        side_effects=True,
        pipe="V",
        in_place=names[1:],
    )


def _verify_brcb(op) -> None:
    in_space(op, dst="ub", src="ub")
    takes(op, "dst")
    same_elements(op, "src")
    if not 1 <= op.repeat <= MAX_REPEATS:
        raise VerifyError(f"'repeat' must be 1 to {MAX_REPEATS}, got {op.repeat}")
    count = op.repeat * _BROADCAST
    if count * element_bytes_of(op.src) > buffer_bytes(op.src) or count * BLOCK > buffer_bytes(op.dst):
        raise VerifyError(
            f"{op.repeat} repeats read {count} elements and write {count * BLOCK} bytes; "
            f"'src' has {buffer_bytes(op.src)} bytes, 'dst' {buffer_bytes(op.dst)}"
        )


STRIDED = (
    _binary("add", "Add"),
    _binary("sub", "Sub"),
    _binary("mul", "Mul"),
    _binary("div", "Div"),
    _binary("max", "Max"),
    _binary("min", "Min"),
    Op(
        "copy_strided",
        "`Copy(dst, src, mask, repeat, {strides})` within UB.",
        operands=_operands("dst", "src"),
        attributes=_attributes("of dst, src"),
        verify=_verify_strided("dst", "src"),
        side_effects=True,
        pipe="V",
    ),
    Op(
        "brcb",
        "`Brcb(dst, src, repeat, {1, 8})`: each element fills a 32-byte block.",
        operands=(
            Operand("dst", "memref", "written", role="out", touched=lambda op: [(0, op.repeat * _BROADCAST * BLOCK)]),
            Operand(
                "src", "memref", "read", role="in",
                touched=lambda op: [(0, op.repeat * _BROADCAST * element_bytes_of(op.src))],
            ),
        ),
        attributes=(Attribute("repeat", "integer", f"8 elements each; at most {MAX_REPEATS}"),),
        verify=_verify_brcb,
        side_effects=True,
        pipe="V",
    ),
)  # fmt: skip
