"""How each op of the `ascendc` dialect is printed: one registered function an op."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mlir import ir

from jascend.dialect.ascendc import buffer_bytes, buffer_length, element_bits, element_bytes_of
from jascend.dialect.elements import element_name, type_name
from jascend.passes.accesses import root_of
from jascend.passes.builder import name_of

from . import scalars
from .scalars import ADDITIVE, Expr, ctype, variable
from .tiling import camel

if TYPE_CHECKING:
    from .kernel import Emitter

STORAGE = {
    "f32": "float", "i32": "int32_t", "bf16": "bfloat16_t", "f16": "half", "ui8": "uint8_t", "i16": "int16_t",
    "i8": "int8_t",
    # The narrow formats as the bytes that hold them.
    "f8E4M3FN": "uint8_t", "f8E5M2": "uint8_t", "f8E8M0FNU": "uint8_t", "i4": "uint8_t", "f4E2M1FN": "uint8_t",
}  # fmt: skip


def gm_type(element: ir.Type) -> str:
    """Global memory of 16-bit floats is handled as bit patterns: copies do not look inside. Nor do they with 64-bit
    integers, which are pairs of words, and with truth values, which are bytes."""
    held = {"bf16": "uint16_t", "f16": "uint16_t", "i64": "int32_t", "i1": "int8_t"}
    return held.get(type_name(element)) or STORAGE[type_name(element)]


CALLS: dict[str, Callable[[Emitter, ir.Operation], None]] = {}


def prints(*names: str) -> Callable:
    """Registers a function of (emitter, op) that prints ops of `ascendc`."""

    def register(function: Callable) -> Callable:
        CALLS.update((f"ascendc.{name}", function) for name in names)
        return function

    return register


def bits(out: Emitter, buffer: ir.Value) -> str:
    """A buffer of 16-bit floats as the bit patterns that copies and fills handle."""
    name = out.text(buffer)
    is_half = element_name(buffer) in ("bf16", "f16")
    return f"{name}.ReinterpretCast<uint16_t>()" if is_half else name


# -- memory -----------------------------------------------------------------------------------------------------------


@prints("view")
def view(out: Emitter, op: ir.Operation) -> None:
    source, start = op.operands
    value = op.results[0]
    part, offset = out.text(source), _in_units(out, source, start)
    if offset != "0":
        part += f"[{offset}]"
    before, after = (STORAGE[element_name(x)] for x in (source, value))
    if after != before:
        part += f".ReinterpretCast<{after}>()"
    out.values[value] = Expr(part, reads=out.values[start].reads)


def _in_units(out: Emitter, memory: ir.Value, elements: ir.Value) -> str:
    """A number of elements as the text counts them: two of 4 bits are a byte."""
    text = out.text(elements)
    if element_bits(ir.MemRefType(memory.type).element_type) > 4:
        return text
    return str(int(text) // 2) if text.isdigit() else f"({text}) / 2"


def _count(out: Emitter, memory: ir.Value, elements: ir.Value) -> str:
    """The same where the API takes 32 bits."""
    text = _in_units(out, memory, elements)
    return out.u32(elements) if text == out.text(elements) else f"static_cast<uint32_t>({text})"


@prints("copy_in_rows")
def copy_in_rows(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    dst, src = bits(out, view.dst), f"{out.text(view.src)}[{out.text(view.offset)}]"
    numbers = f"{_u16(out, view.rows)}, {_layout(out, view)}"
    if view.pad is None:
        out.put(f"CopyInRows({dst}, {src}, {numbers});")
        return
    element = ir.MemRefType(view.dst.type).element_type
    out.put(f"CopyInRowsPadded({dst}, {src}, {numbers}, {_padding(element, view.pad)});")


@prints("copy_out_rows")
def copy_out_rows(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    dst = f"{out.text(view.dst)}[{out.text(view.offset)}]"
    out.put(f"CopyOutRows({dst}, {bits(out, view.src)}, {_u16(out, view.rows)}, {_layout(out, view)});")


def _u16(out: Emitter, value: ir.Value) -> str:
    text = out.text(value)
    return text if text.isdigit() else f"static_cast<uint16_t>({text})"


def _layout(out: Emitter, view) -> str:
    return ", ".join(out.count(n) for n in (view.row_length, view.gm_pitch, view.pitch))


@prints("copy_blocks")
def copy_blocks(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    per_block = 32 // element_bytes_of(view.dst)
    numbers = (view.repeat, *(n // per_block for n in (view.length, view.src_gap, view.dst_gap)))
    dst, src = map(out.text, op.operands)
    out.put(f"DataCopy({dst}, {src}, DataCopyParams({', '.join(map(str, numbers))}));")


@prints("workspace")
def workspace(out: Emitter, op: ir.Operation) -> None:
    memory = op.opview.memory
    element = gm_type(ir.MemRefType(memory.type).element_type)
    name = out.fresh(f"{op.opview.name_hint}_gm", member=out.begins)
    out.values[memory] = variable(name)
    offset = out.values[op.opview.offset]
    kept = out.functions is not None and not out.begins
    start = out.functions.kept_workspace() if kept else "workspace"
    place = f"GetUserWorkspace({start})" + ("" if offset.text == "0" else f" + {offset.inside(ADDITIVE)}")
    if out.begins:
        out.functions.members.append(f"GlobalTensor<{element}> {name};")
    else:
        out.put(f"GlobalTensor<{element}> {name};")
    out.put(f"{name}.SetGlobalBuffer((__gm__ {element} *)({place}));")


@prints("copy")
def copy(out: Emitter, op: ir.Operation) -> None:
    dst, src = map(out.text, op.operands)
    out.put(f"DataCopy({dst}, {src}, {out.length(op.operands[0])});")


@prints("copy_in")
def copy_in(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    element = ir.MemRefType(view.dst.type).element_type
    dst, src = bits(out, view.dst), f"{out.text(view.src)}[{_in_units(out, view.src, view.offset)}]"
    count = _count(out, view.src, view.count)
    if view.pad is None:
        out.put(f"CopyIn({dst}, {src}, {count});")
        return
    out.put(f"CopyInPadded({dst}, {src}, {count}, {_padding(element, view.pad)});")


def _padding(element: ir.Type, pad: float) -> str:
    name = type_name(element)
    if isinstance(element, ir.FloatType):
        held = ir.FloatAttr.get(element, pad, loc=ir.Location.unknown(element.context)).value
        return scalars.constant(held, name).text
    text = scalars.constant(int(pad), name).text
    return f"static_cast<{STORAGE[name]}>({text})" if name in ("i8", "i16") else text


@prints("copy_out")
def copy_out(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    dst = f"{out.text(view.dst)}[{_in_units(out, view.dst, view.offset)}]"
    out.put(f"CopyOut({dst}, {bits(out, view.src)}, {_count(out, view.dst, view.count)});")


# -- elementwise ------------------------------------------------------------------------------------------------------


@prints("duplicate")
def duplicate(out: Emitter, op: ir.Operation) -> None:
    dst, scalar = op.operands
    out.put(f"Duplicate({bits(out, dst)}, {scalar_of(out, scalar)}, {out.length(dst)});")


def scalar_of(out: Emitter, scalar: ir.Value) -> str:
    """A scalar where the API deduces the element type from it; a buffer stays what it is."""
    type_ = scalar.type
    is_short = isinstance(type_, ir.IntegerType) and type_.width == 16
    return f"static_cast<int16_t>({out.text(scalar)})" if is_short else out.text(scalar)


@prints("create_vec_index")
def create_vec_index(out: Emitter, op: ir.Operation) -> None:
    (dst,) = op.operands
    element = STORAGE[element_name(dst)]
    zero = "0.0f" if element == "float" else "0"
    out.put(f"CreateVecIndex<{element}>({out.text(dst)}, {zero}, {out.length(dst)});")


@prints("cast")
def cast(out: Emitter, op: ir.Operation) -> None:
    dst, src = op.operands
    mode = op.attributes["round_mode"].value
    count = out.count(buffer_length(dst))
    out.put(f"Cast({_cast_operand(out, dst, src)}, {_cast_operand(out, src, dst)}, RoundMode::{mode}, {count});")


_NARROW = {"f8E4M3FN": "fp8_e4m3fn_t", "f8E5M2": "fp8_e5m2_t", "f4E2M1FN": "fp4x2_e2m1_t", "i4": "int4b_t"}


def _cast_operand(out: Emitter, buffer: ir.Value, other: ir.Value) -> str:
    """Bytes of a narrow format as elements of it; bytes that come from float are HiFloat8."""
    element, opposite = (element_name(x) for x in (buffer, other))
    narrow = "hifloat8_t" if (element, opposite) == ("ui8", "f32") else _NARROW.get(element)
    return f"{out.text(buffer)}.ReinterpretCast<{narrow}>()" if narrow else out.text(buffer)


@prints("add", "sub", "mul", "div", "max", "min", "adds", "muls", "maxs", "mins", "exp", "ln", "sqrt", "abs")
def plain(out: Emitter, op: ir.Operation) -> None:
    """`Api(operands..., count)`."""
    api = "".join(part.capitalize() for part in op.name.partition(".")[2].split("_"))
    operands = ", ".join(scalar_of(out, operand) for operand in op.operands)
    out.put(f"{api}({operands}, {out.length(op.operands[0])});")


@prints("shift_left", "shift_right")
def shift(out: Emitter, op: ir.Operation) -> None:
    api = {"ascendc.shift_left": "ShiftLeft", "ascendc.shift_right": "ShiftRight"}[op.name]
    dst, src, scalar = op.operands
    to, of, amount = out.text(dst), out.text(src), out.text(scalar)
    width = element_bytes_of(src)
    if op.opview.logical:
        to, of = unsigned(out, dst, width), unsigned(out, src, width)
        amount = f"static_cast<{_UNSIGNED[width]}>({amount})"
    elif width == 2:
        amount = f"static_cast<int16_t>({amount})"
    out.put(f"{api}({to}, {of}, {amount}, {out.length(dst)});")


@prints("compare", "compare_scalar")
def comparison(out: Emitter, op: ir.Operation) -> None:
    api = "Compare" if op.name == "ascendc.compare" else out.api("CompareScalar")
    dst, a, b = op.operands
    mode = op.attributes["mode"].value
    out.put(
        f"{api}({out.text(dst)}, {out.text(a)}, {scalar_of(out, b)}, CMPMODE::{mode}, {out.length(op.operands[1])});"
    )


@prints("bitwise_and", "bitwise_or", "bitwise_not")
def bitwise(out: Emitter, op: ir.Operation) -> None:
    api = op.name.rpartition("_")[2].capitalize()
    operands = ", ".join(unsigned(out, operand, 2) for operand in op.operands)
    out.put(f"{api}({operands}, {out.count(buffer_bytes(op.operands[0]) // 2)});")


@prints("select", "select_scalar")
def selection(out: Emitter, op: ir.Operation) -> None:
    mode = "VSEL_TENSOR_SCALAR_MODE" if op.name.endswith("_scalar") else "VSEL_TENSOR_TENSOR_MODE"
    dst, mask, a, b = op.operands
    moved = {"i32": "float", "bf16": "half", "i16": "half"}.get(element_name(dst))

    def text(value: ir.Value) -> str:
        """The API has float and half; of other types it moves the bits."""
        return f"{out.text(value)}.ReinterpretCast<{moved}>()" if moved else out.text(value)

    out.put(f"Select({text(dst)}, {out.text(mask)}, {text(a)}, {text(b)}, SELMODE::{mode}, {out.length(dst)});")


# -- reductions, lanes by what they hold ------------------------------------------------------------------------------


@prints("block_reduce_sum", "block_reduce_max", "block_reduce_min")
def block_reduction(out: Emitter, op: ir.Operation) -> None:
    api = f"BlockReduce{op.name.rpartition('_')[2].capitalize()}"
    dst, src = map(out.text, op.operands)
    out.put(f"{api}<float>({dst}, {src}, {op.attributes['repeat'].value}, 64, 1, 1, 8);")


@prints("whole_reduce_sum", "whole_reduce_max", "whole_reduce_min")
def whole_reduction(out: Emitter, op: ir.Operation) -> None:
    is_sum = op.name.endswith("sum")
    dst, src = map(out.text, op.operands)
    mask, repeat, stride = (op.attributes[name].value for name in ("mask", "repeat", "src_rep_stride"))
    order = "" if is_sum else ", ReduceOrder::ORDER_ONLY_VALUE"
    api = f"WholeReduce{op.name.rpartition('_')[2].capitalize()}"
    out.put(f"{api}<float>({dst}, {src}, {mask}, {repeat}, 1, 1, {stride}{order});")


_UNSIGNED = {2: "uint16_t", 4: "uint32_t"}


def unsigned(out: Emitter, buffer: ir.Value, width: int = 4) -> str:
    """A buffer as unsigned integers of so many bytes."""
    return f"{out.text(buffer)}.ReinterpretCast<{_UNSIGNED[width]}>()"


@prints("sort32")
def sort32(out: Emitter, op: ir.Operation) -> None:
    dst, scores, indices = op.operands
    repeat = buffer_length(scores) // 32
    out.put(f"Sort32<float>({out.text(dst)}, {out.text(scores)}, {unsigned(out, indices)}, {repeat});")


@prints("mrg_sort")
def mrg_sort(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    dst, src = map(out.text, op.operands)
    valid = (1 << view.ways) - 1
    out.put(f"MergeLists({dst}, {src}, {view.run}, {valid}, {view.repeat});")


@prints("mrg_sort_lists")
def mrg_sort_lists(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    lists = [source for source in (view.src0, view.src1, view.src2, view.src3) if source is not None]
    names = ", ".join(out.text(source) for source in (*lists, *[lists[-1]] * (4 - len(lists))))
    lengths = ", ".join(str(buffer_length(source) // 2) for source in lists) + ", 0" * (4 - len(lists))
    out.put(f"MergeTogether({out.text(view.dst)}, MrgSortSrcList<float>({names}), {lengths}, {(1 << len(lists)) - 1});")


@prints("gather_mask")
def gather_mask(out: Emitter, op: ir.Operation) -> None:
    dst, src, pattern = op.operands
    width = element_bytes_of(src)
    kept = out.declare("uint64_t", "kept", "0", const=False)
    out.put(
        f"GatherMask({out.text(dst)}, {out.text(src)}, {unsigned(out, pattern, width)}, true, {out.length(dst)}, "
        f"GatherMaskParams{{1, 1, 8, 8}}, {kept.text});"
    )
    out.values[op.results[0]] = Expr(f"static_cast<int64_t>({kept.text})", reads=kept.reads)


@prints("gather_pattern")
def gather_pattern(out: Emitter, op: ir.Operation) -> None:
    dst, src = op.operands
    to, of = (STORAGE[element_name(buffer)] for buffer in (dst, src))
    source = out.text(src) if to == of else f"{out.text(src)}.ReinterpretCast<{to}>()"
    out.put(f"GatherByPattern({out.text(dst)}, {source}, {op.opview.pattern}, {out.length(src)});")


@prints("gather", "scatter")
def gather(out: Emitter, op: ir.Operation) -> None:
    api = {"ascendc.gather": "Gather", "ascendc.scatter": "Scatter"}[op.name]
    dst, src, offsets = op.operands
    out.put(f"{api}({out.text(dst)}, {out.text(src)}, {unsigned(out, offsets)}, 0, {out.length(offsets)});")


@prints("get_value")
def get_value(out: Emitter, op: ir.Operation) -> None:
    src, position = op.operands
    result = op.results[0]
    text = f"{out.text(src)}.GetValue({out.text(position)})"
    root = root_of(src)
    hint = name_of(result) or name_of(root) or root.owner.attributes["name_hint"].value
    out.values[result] = out.declare(ctype(result.type), hint, text)


# -- the launch, and the order of the pipes ---------------------------------------------------------------------------


@prints("block_idx")
def block_idx(out: Emitter, op: ir.Operation) -> None:
    out.values[op.results[0]] = out.declare("int64_t", name_of(op.results[0]) or "core", "GetBlockIdx()")


@prints("block_num")
def block_num(out: Emitter, op: ir.Operation) -> None:
    out.values[op.results[0]] = out.declare("int64_t", name_of(op.results[0]) or "cores", "GetBlockNum()")


@prints("sync_all")
def sync_all(out: Emitter, op: ir.Operation) -> None:
    out.put("SyncAll();")


@prints("tiling")
def tiling_field(out: Emitter, op: ir.Operation) -> None:
    field = op.attributes["field"].value
    out.fields.add(field)
    out.values[op.results[0]] = out.declare("int64_t", field, f"tilingData.{camel(field)}")


@prints("set_flag", "wait_flag")
def flag(out: Emitter, op: ir.Operation) -> None:
    api = {"ascendc.set_flag": "SetFlag", "ascendc.wait_flag": "WaitFlag"}[op.name]
    out.put(f"{api}<HardEvent::{op.attributes['event'].value}>(EVENT_ID{op.attributes['event_id'].value});")


@prints("pipe_barrier")
def pipe_barrier(out: Emitter, op: ir.Operation) -> None:
    out.put(f"PipeBarrier<PIPE_{op.attributes['pipe'].value}>();")
