"""Dialect `ascendc`: what the hardware is told (level 3).

One op per call of the Ascend C API that the emitter prints. Buffers are memrefs of rank 1, in memory space "ub" with a
static size or "gm"; the result of a vector op is its first operand, `dst`. Argument order, limits and names are those of
the public API documentation. Which pipe runs an op is part of its definition: synchronisation is derived from it.
"""

from __future__ import annotations

from mlir import ir

from .definition import Attribute, Dialect, Op, Operand, Result, VerifyError

PIPES = ("S", "V", "MTE2", "MTE3")
EVENTS = tuple(f"{a}_{b}" for a in PIPES for b in PIPES if a != b)
EVENT_IDS = range(6)  # 6 and 7 are the framework's

_BLOCK = 32  # bytes: the unit of UB addresses and of DataCopy
_REPEAT = 256  # bytes a vector instruction handles in one repeat
_MAX_REPEATS = 255


def element_bytes(element: ir.Type) -> int:
    """Bytes of one element of a buffer."""
    return {"f32": 4, "i32": 4, "ui32": 4, "f16": 2, "bf16": 2, "i16": 2, "ui16": 2, "i8": 1, "ui8": 1}[str(element)]


def buffer_length(buffer: ir.Value) -> int:
    """Elements of a UB buffer."""
    return ir.MemRefType(buffer.type).get_dim_size(0)


def buffer_bytes(buffer: ir.Value) -> int:
    """Bytes of a UB buffer."""
    return buffer_length(buffer) * element_bytes(ir.MemRefType(buffer.type).element_type)


def _element(value: ir.Value) -> str:
    return str(ir.MemRefType(value.type).element_type)


def _space(value: ir.Value) -> str:
    space = ir.MemRefType(value.type).memory_space
    return space.value if isinstance(space, ir.StringAttr) else ""


def _in_space(op, **operands: str) -> None:
    for name, space in operands.items():
        if _space(getattr(op, name)) != space:
            raise VerifyError(f"'{name}' must be a memref in memory space \"{space}\", got {getattr(op, name).type}")


def _elements(op, allowed: tuple[str, ...], *names: str) -> None:
    for name in names:
        if _element(getattr(op, name)) not in allowed:
            raise VerifyError(f"'{name}' must have elements {' or '.join(allowed)}, got {_element(getattr(op, name))}")


def _lengths(op, *names: str) -> int:
    lengths = {name: buffer_length(getattr(op, name)) for name in names}
    if len(set(lengths.values())) > 1:
        raise VerifyError("buffers differ in length: " + ", ".join(f"'{n}' {length}" for n, length in lengths.items()))
    return lengths[names[0]]


_FLOATS = ("f32", "f16")
_INTS = ("i32", "i16")


def _elementwise(*sources: str, allowed: tuple[str, ...] = _FLOATS):
    """The rule of elementwise ops: one element type, one length."""

    def verify(op) -> None:
        _in_space(op, dst="ub", **{name: "ub" for name in sources})
        _elements(op, allowed, "dst")
        for name in sources:
            if _element(getattr(op, name)) != _element(op.dst):
                raise VerifyError(f"'{name}' has elements {_element(getattr(op, name))}, 'dst' has {_element(op.dst)}")
        _lengths(op, "dst", *sources)

    return verify


def _verify_local_tensor(op) -> None:
    _in_space(op, buffer="ub")
    if op.offset is not None and op.offset % _BLOCK:
        raise VerifyError(f"'offset' must be a multiple of {_BLOCK} bytes, got {op.offset}")


def _verify_copy_in(op) -> None:
    _in_space(op, dst="ub", src="gm")
    if _element(op.dst) != _element(op.src):
        raise VerifyError(f"'dst' has elements {_element(op.dst)}, 'src' has {_element(op.src)}")


def _verify_copy_out(op) -> None:
    _in_space(op, dst="gm", src="ub")
    if _element(op.dst) != _element(op.src):
        raise VerifyError(f"'dst' has elements {_element(op.dst)}, 'src' has {_element(op.src)}")


_CASTS = {
    ("bf16", "f32"): ("CAST_NONE",),
    ("f16", "f32"): ("CAST_NONE",),
    ("f32", "bf16"): ("CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC"),
    ("f32", "f16"): ("CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC", "CAST_ODD"),
    ("i32", "f32"): ("CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC"),
    ("f32", "i32"): ("CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC"),
}


def _verify_cast(op) -> None:
    _in_space(op, dst="ub", src="ub")
    _lengths(op, "dst", "src")
    pair = (_element(op.src), _element(op.dst))
    if pair not in _CASTS:
        raise VerifyError(f"no cast from {pair[0]} to {pair[1]}")
    if op.round_mode not in _CASTS[pair]:
        raise VerifyError(f"a cast from {pair[0]} to {pair[1]} takes {', '.join(_CASTS[pair])}, got {op.round_mode}")


def _verify_duplicate(op) -> None:
    _in_space(op, dst="ub")
    _elements(op, ("f32", "i32", "bf16", "f16"), "dst")
    if op.scalar.type != ir.MemRefType(op.dst.type).element_type:
        raise VerifyError(f"'scalar' must be {_element(op.dst)}, got {op.scalar.type}")


def _verify_create_vec_index(op) -> None:
    _in_space(op, dst="ub")
    _elements(op, ("f32", "i32"), "dst")


def _mask_fits(mask: ir.Value, data: ir.Value) -> None:
    if _element(mask) != "ui8" or buffer_length(mask) * 8 != buffer_length(data):
        raise VerifyError(f"the mask of {buffer_length(data)} elements is ui8[{buffer_length(data) // 8}], got {mask.type}")


def _compared(op, *sources: str) -> None:
    _in_space(op, dst="ub", **{name: "ub" for name in sources})
    _elements(op, _FLOATS, *sources)
    length = _lengths(op, *sources)
    source = getattr(op, sources[0])
    if length * element_bytes(ir.MemRefType(source.type).element_type) % _REPEAT:
        raise VerifyError(f"a comparison covers a multiple of {_REPEAT} bytes, got {length} elements {_element(source)}")
    _mask_fits(op.dst, source)


def _verify_compare(op) -> None:
    _compared(op, "src0", "src1")


def _verify_compare_scalar(op) -> None:
    _compared(op, "src0")


def _verify_select(op) -> None:
    _elementwise("src0", "src1")(op)
    _mask_fits(op.mask, op.dst)


def _verify_select_scalar(op) -> None:
    _elementwise("src0")(op)
    _mask_fits(op.mask, op.dst)


def _verify_block_reduce(op) -> None:
    _in_space(op, dst="ub", src="ub")
    _elements(op, ("f32",), "dst", "src")
    if not 1 <= op.repeat <= _MAX_REPEATS:
        raise VerifyError(f"'repeat' must be 1 to {_MAX_REPEATS}, got {op.repeat}")
    if op.repeat * 64 > buffer_length(op.src) or op.repeat * 8 > buffer_length(op.dst):
        raise VerifyError(
            f"{op.repeat} repeats read {op.repeat * 64} and write {op.repeat * 8} elements; "
            f"'src' has {buffer_length(op.src)}, 'dst' {buffer_length(op.dst)}"
        )


def _verify_whole_reduce(op) -> None:
    _in_space(op, dst="ub", src="ub")
    _elements(op, ("f32",), "dst", "src")
    if not 1 <= op.repeat <= _MAX_REPEATS:
        raise VerifyError(f"'repeat' must be 1 to {_MAX_REPEATS}, got {op.repeat}")
    if not 1 <= op.mask <= 64:
        raise VerifyError(f"'mask' must be 1 to 64 elements, got {op.mask}")
    read = (op.repeat - 1) * op.src_rep_stride * 8 + op.mask
    if read > buffer_length(op.src) or op.repeat > buffer_length(op.dst):
        raise VerifyError(
            f"{op.repeat} repeats read {read} and write {op.repeat} elements; "
            f"'src' has {buffer_length(op.src)}, 'dst' {buffer_length(op.dst)}"
        )


def _verify_gather_mask(op) -> None:
    _in_space(op, dst="ub", src="ub", pattern="ub")
    _elements(op, ("f32", "i32"), "dst", "src")
    _lengths(op, "dst", "src")
    _mask_fits(op.pattern, op.src)


def _verify_get_value(op) -> None:
    _in_space(op, src="ub")
    if op.scalar.type != ir.MemRefType(op.src.type).element_type:
        raise VerifyError(f"an element of 'src' is {_element(op.src)}, got {op.scalar.type}")


def _verify_flag(op) -> None:
    if op.event_id not in EVENT_IDS:
        raise VerifyError(f"'event_id' must be {EVENT_IDS[0]} to {EVENT_IDS[-1]} (6 and 7 are reserved), got {op.event_id}")


_DST = Operand("dst", "memref", "written", role="out")
_SRC = Operand("src", "memref", "read", role="in")
_SRC0 = Operand("src0", "memref", "read", role="in")
_SRC1 = Operand("src1", "memref", "read", role="in")
_MODE = Attribute("mode", "string", "`CMPMODE`", values=("LT", "GT", "EQ", "LE", "GE", "NE"))
_EVENT = Attribute("event", "string", "`HardEvent`: the pipe that sets, the pipe that waits", values=EVENTS)
_EVENT_ID = Attribute("event_id", "integer", "0 to 5, per direction")


def _unary(name: str, api: str) -> Op:
    return Op(name, f"`{api}(dst, src, count)`.", operands=(_DST, _SRC), verify=_elementwise("src"), side_effects=True, pipe="V")


def _binary(name: str, api: str, allowed: tuple[str, ...] = _FLOATS) -> Op:
    return Op(
        name, f"`{api}(dst, src0, src1, count)`.", operands=(_DST, _SRC0, _SRC1),
        verify=_elementwise("src0", "src1", allowed=allowed), side_effects=True, pipe="V",
    )  # fmt: skip


def _with_scalar(name: str, api: str) -> Op:
    return Op(
        name, f"`{api}(dst, src, scalar, count)`.", operands=(_DST, _SRC, Operand("scalar", "any", "element type of `src`")),
        verify=_elementwise("src", allowed=_FLOATS + _INTS), side_effects=True, pipe="V",
    )  # fmt: skip


ASCENDC = Dialect(
    "ascendc",
    "The Ascend C API, one op a call: explicit buffers, counts, repeats and events.",
    (
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
            "block_idx",
            "`GetBlockIdx()`: which core this is.",
            results=(Result("value", "index", ""),),
        ),
        Op(
            "tiling",
            "A field of the tiling data.",
            attributes=(Attribute("field", "string", "the field's name"),),
            results=(Result("value", "index", ""),),
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
        Op(
            "duplicate",
            "`Duplicate(dst, scalar, count)`.",
            operands=(_DST, Operand("scalar", "any", "element type of `dst`")),
            verify=_verify_duplicate,
            side_effects=True,
            pipe="V",
        ),
        Op(
            "create_vec_index",
            "`CreateVecIndex(dst, 0, count)`: the ramp 0, 1, 2, ...",
            operands=(_DST,),
            verify=_verify_create_vec_index,
            side_effects=True,
            pipe="V",
        ),
        Op(
            "cast",
            "`Cast(dst, src, round_mode, count)`.",
            operands=(_DST, _SRC),
            attributes=(Attribute("round_mode", "string", "`RoundMode`"),),
            verify=_verify_cast,
            side_effects=True,
            pipe="V",
        ),
        _binary("add", "Add", _FLOATS + _INTS),
        _binary("sub", "Sub", _FLOATS + _INTS),
        _binary("mul", "Mul", _FLOATS + _INTS),
        _binary("div", "Div"),
        _binary("max", "Max", _FLOATS + _INTS),
        _binary("min", "Min", _FLOATS + _INTS),
        _with_scalar("adds", "Adds"),
        _with_scalar("muls", "Muls"),
        _with_scalar("maxs", "Maxs"),
        _with_scalar("mins", "Mins"),
        _unary("exp", "Exp"),
        _unary("ln", "Ln"),
        _unary("sqrt", "Sqrt"),
        _unary("abs", "Abs"),
        Op(
            "compare",
            "`Compare(dst, src0, src1, mode, count)`: one bit an element, lowest bit first.",
            operands=(_DST, _SRC0, _SRC1),
            attributes=(_MODE,),
            verify=_verify_compare,
            side_effects=True,
            pipe="V",
        ),
        Op(
            "compare_scalar",
            "`CompareScalar(dst, src0, scalar, mode, count)`: one bit an element, lowest bit first.",
            operands=(_DST, _SRC0, Operand("scalar", "any", "element type of `src0`")),
            attributes=(_MODE,),
            verify=_verify_compare_scalar,
            side_effects=True,
            pipe="V",
        ),
        Op(
            "bitwise_not",
            "`Not(dst, src, count)`, on 16-bit units of a mask.",
            operands=(_DST, _SRC),
            verify=_elementwise("src", allowed=("ui8",)),
            side_effects=True,
            pipe="V",
        ),
        Op(
            "select",
            "`Select(dst, mask, src0, src1, VSEL_TENSOR_TENSOR_MODE, count)`: a set bit takes `src0`.",
            operands=(_DST, Operand("mask", "memref", "read", role="in"), _SRC0, _SRC1),
            verify=_verify_select,
            side_effects=True,
            pipe="V",
        ),
        Op(
            "select_scalar",
            "`Select(dst, mask, src0, scalar, VSEL_TENSOR_SCALAR_MODE, count)`: a set bit takes `src0`.",
            operands=(_DST, Operand("mask", "memref", "read", role="in"), _SRC0, Operand("scalar", "any", "")),
            verify=_verify_select_scalar,
            side_effects=True,
            pipe="V",
        ),
        *(
            Op(
                f"block_reduce_{kind}",
                f"`BlockReduce{kind.capitalize()}(dst, src, repeat, 64, 1, 1, 8)`: one result per 32-byte block.",
                operands=(_DST, _SRC),
                attributes=(Attribute("repeat", "integer", "256-byte repeats, at most 255"),),
                verify=_verify_block_reduce,
                side_effects=True,
                pipe="V",
            )
            for kind in ("sum", "max")
        ),
        *(
            Op(
                f"whole_reduce_{kind}",
                f"`WholeReduce{kind.capitalize()}(dst, src, mask, repeat, 1, 1, src_rep_stride)`: one result per repeat.",
                operands=(_DST, _SRC),
                attributes=(
                    Attribute("mask", "integer", "elements per repeat, at most 64"),
                    Attribute("repeat", "integer", "at most 255"),
                    Attribute("src_rep_stride", "integer", "32-byte blocks from one repeat to the next"),
                ),
                verify=_verify_whole_reduce,
                side_effects=True,
                pipe="V",
            )
            for kind in ("sum", "max")
        ),
        Op(
            "gather_mask",
            "`GatherMask(dst, src, pattern, true, count, {1, 1, 8, 8}, kept)`: packs the elements under the set bits.",
            operands=(_DST, _SRC, Operand("pattern", "memref", "ui8, one bit an element", role="in")),
            results=(Result("kept", "index", "elements packed"),),
            verify=_verify_gather_mask,
            side_effects=True,
            pipe="V",
        ),
        Op(
            "get_value",
            "`src.GetValue(position)`: one element, to the scalar unit.",
            operands=(_SRC, Operand("position", "index", "")),
            results=(Result("scalar", "any", "element type of `src`"),),
            verify=_verify_get_value,
            side_effects=True,
            pipe="S",
        ),
        Op(
            "set_flag",
            "`SetFlag<HardEvent::event>(event_id)`.",
            attributes=(_EVENT, _EVENT_ID),
            verify=_verify_flag,
            side_effects=True,
        ),
        Op(
            "wait_flag",
            "`WaitFlag<HardEvent::event>(event_id)`.",
            attributes=(_EVENT, _EVENT_ID),
            verify=_verify_flag,
            side_effects=True,
        ),
        Op(
            "pipe_barrier",
            "`PipeBarrier<PIPE_pipe>()`.",
            attributes=(Attribute("pipe", "string", "the pipe that waits for itself; ALL: every pipe", values=("V", "MTE2", "MTE3", "ALL")),),
            side_effects=True,
        ),
    ),
)
