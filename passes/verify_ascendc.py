"""Checks a kernel against what its product's instructions take, before it is emitted.

The dialect's own verifier knows what the API takes on one product or another. This pass knows which: the elements of
each call, the modes of comparisons and casts (`backends/ascend/instructions.py`), the size of the unified buffer. And
it looks at what no single op shows:

- A call may write where it reads only if the two ranges are the same and each repeat writes what it alone reads. Else a
  later repeat reads what an earlier one wrote. Ranges that depend on the run are left to the twin's checker.
- A flag is set once, then waited for once, on every path; a second set before the wait hangs the core.
- A copy of a known length ends within its buffer, and no piece of one is longer than 2,097,151 bytes.

The 64 buffers that a `TPipe` can manage are no limit here: the text declares its buffers at addresses of their own.

The module stays as it is. Where the product is a 910B:

Before:

    "ascendc.compare"(%m, %x, %y) {mode = "LT"} :
      (memref<8xui8, "ub">, memref<64xi32, "ub">, memref<64xi32, "ub">) -> ()

After:

    error: 'ascendc.compare' op on ascend910b compares i32 in mode EQ only, not LT
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from mlir import ir

from jascend.backends.ascend.instructions import ANY, instructions
from jascend.backends.ascend.targets import TARGETS, Target
from jascend.dialect import ASCENDC
from jascend.dialect.ascendc import buffer_bytes, bytes_of, constant_index
from jascend.dialect.definition import Op
from jascend.dialect.elements import element_name

from .accesses import Access, Accesses, may_coincide
from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import option, register_pass

_LONGEST_PIECE = 2_097_151  # bytes of one piece of a DataCopyPad
_COMPARISONS = ("compare", "compare_scalar")
_LOOPS = ("scf.for", "scf.while")
_Flag = tuple[str, int]


@register_pass("verify-ascendc", touches=())
@dataclass(frozen=True)
class VerifyAscendc:
    target: str = option("ascend910b", "the product whose rules hold")

    def run(self, module: ir.Operation, remarks) -> None:
        if self.target not in TARGETS:
            allowed = ", ".join(TARGETS)
            emit_error(module, f"option 'target' of verify-ascendc must be one of {allowed}, got '{self.target}'")
            raise PassFailure
        kernels = [op.operation for op in module.regions[0].blocks[0].operations if KERNEL in op.operation.attributes]
        if not all([_verify(kernel, TARGETS[self.target]) for kernel in kernels]):
            raise PassFailure


def _verify(kernel: ir.Operation, target: Target) -> bool:
    """Whether a kernel keeps every rule; a diagnostic for each op that does not."""
    walk = _Walk(target)
    walk.block(kernel.regions[0].blocks[0])
    walk.end()
    return walk.is_sound


class _Walk:
    """A walk over a kernel that knows which flags are set."""

    def __init__(self, target: Target):
        self.target = target
        self.accesses = Accesses()
        self.set: dict[_Flag, ir.Operation] = {}
        self.is_sound = True

    def broken(self, op: ir.Operation, rule: str) -> None:
        self.is_sound = False
        emit_error(op, f"'{op.name}' op {rule}")

    def block(self, block: ir.Block) -> None:
        for view in block.operations:
            op = view.operation
            name = op.name
            if name.startswith("arith."):
                continue
            definition = ASCENDC.by_name.get(name)
            if definition is None:
                if len(op.regions):
                    self.control(op)
            elif name in ("ascendc.set_flag", "ascendc.wait_flag"):
                self.flag(op)
            elif definition.pipe is not None or name == "ascendc.local_tensor":
                for rule in _broken_rules(view, definition, self.target, self.accesses):
                    self.broken(op, rule)

    def flag(self, op: ir.Operation) -> None:
        flag = op.opview.event, op.opview.event_id
        if op.name == "ascendc.wait_flag":
            if self.set.pop(flag, None) is None:
                self.broken(op, f"waits for {flag[0]} {flag[1]}, which is not set here")
        elif flag in self.set:
            self.broken(op, f"sets {flag[0]} {flag[1]} again before anything has waited for it")
        else:
            self.set[flag] = op

    def control(self, op: ir.Operation) -> None:
        """Each branch, and each iteration of a loop, must leave the flags as it found them: another path skips it."""
        before = dict(self.set)
        for region in op.regions:
            for block in region.blocks:
                self.set = dict(before)
                self.block(block)
                for event, event_id in sorted(self.set.keys() ^ before.keys()):
                    path = "an iteration" if op.name in _LOOPS else "a branch"
                    self.broken(op, f"leaves {event} {event_id} other than it was: {path} must set and wait in pairs")
        self.set = before

    def end(self) -> None:
        for (event, event_id), op in self.set.items():
            self.broken(op, f"sets {event} {event_id}, for which nothing waits")


def _broken_rules(view: ir.OpView, definition: Op, target: Target, accesses: Accesses) -> Iterator[str]:
    """What an op of `ascendc` breaks, a buffer or an instruction."""
    name = definition.name
    if name == "local_tensor":
        yield from _place(view, target, accesses)
        return
    yield from _elements(view, name, target)
    if name.startswith("bitwise_") and buffer_bytes(view.dst) % 2:
        yield f"works on 16-bit units, got {buffer_bytes(view.dst)} bytes"
    if name.startswith(("copy_in", "copy_out")):
        yield from _copy(view)
    if definition.pipe == "V":
        yield from _overlaps(view, accesses)


def _place(view: ir.OpView, target: Target, accesses: Accesses) -> Iterator[str]:
    place = accesses.place(view.buffer)
    offset = place.address
    if offset is None:
        yield "has no address: run allocate-ub first"
        return
    end = offset + place.end
    if offset < 0 or end > target.ub_usable_bytes:
        yield (
            f"'{view.name_hint}' lies on bytes {offset} to {end}: a kernel has {target.ub_usable_bytes} bytes of "
            f"unified buffer on {target.name}"
        )


# -- elements ---------------------------------------------------------------------------------------------------------


def _elements(view: ir.OpView, name: str, target: Target) -> Iterator[str]:
    calls = instructions(target)
    if name == "cast":
        pair = element_name(view.src), element_name(view.dst)
        modes = calls.casts.get(pair, ())
        if view.round_mode not in modes:
            rule = f"in mode {', '.join(modes)} only, not {view.round_mode}" if modes else "not at all"
            yield f"on {target.name} casts {pair[0]} to {pair[1]} {rule}"
    elif name in _COMPARISONS:
        element = element_name(view.src0)
        modes = calls.comparisons.get(element, ())
        if view.mode not in modes:
            rule = f"in mode {', '.join(modes)} only, not {view.mode}" if modes else "not at all"
            yield f"on {target.name} compares {element} {rule}"
    elif name in ANY and name not in calls:
        yield f"does not exist on {target.name}"
    elif name in ANY and element_name(view.dst) not in calls.elements[name]:
        yield f"on {target.name} takes elements {' or '.join(calls.elements[name])}, got {element_name(view.dst)}"


# -- copies between global memory and the unified buffer --------------------------------------------------------------


def _copy(view) -> Iterator[str]:
    is_load = view.operation.name.startswith("ascendc.copy_in")
    buffer = view.dst if is_load else view.src
    element = ir.MemRefType(buffer.type).element_type
    if "pitch" in view.operation.attributes:
        piece, pieces, pitch = view.row_length, constant_index(view.rows), view.pitch
    else:
        piece, pieces, pitch = constant_index(view.count), 1, 0
    if piece is None or pieces is None:
        return
    if bytes_of(piece, element) > _LONGEST_PIECE:
        yield f"copies pieces of {bytes_of(piece, element)} bytes, {_LONGEST_PIECE} are possible"
    whole = bytes_of((pieces - 1) * pitch + piece, element) if pieces else 0
    if piece < 0 or pieces < 0 or whole > buffer_bytes(buffer):
        yield f"copies {whole} bytes, the buffer has {buffer_bytes(buffer)}"


# -- what an instruction writes and reads -----------------------------------------------------------------------------


def _overlaps(view: ir.OpView, accesses: Accesses) -> Iterator[str]:
    touched = [access for access in accesses.of(view) if access.known and access.address is not None]
    written = next((access for access in touched if access.writes), None)
    if written is None:
        return
    for read in touched:
        if read.operand == written.operand:
            continue
        for (a, b), (c, d) in _ranges(written, read):
            same = (a, b) == (c, d)
            if b <= c or d <= a or (same and may_coincide(view.operation, read.operand)):
                continue
            rule = "which it may not" if same else "which are not the same"
            yield (
                f"writes bytes {a} to {b} of the unified buffer and reads '{read.operand}' from bytes {c} to {d}, "
                f"{rule}"
            )
            break


def _ranges(written: Access, read: Access) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The addresses that two accesses may have at the same time."""
    if written.turn is read.turn is None:
        yield _range(written, 0), _range(read, 0)
        return
    for i, j in product(_halves(written), _halves(read)):
        in_step = written.turn and read.turn and written.turn.loop == read.turn.loop and written.root == read.root
        if in_step and (i == j) != (written.turn.half == read.turn.half):
            continue
        yield _range(written, i), _range(read, j)


def _halves(access: Access) -> range:
    return range(2 if access.turn else 1)


def _range(access: Access, half: int) -> tuple[int, int]:
    base = access.address + (access.turn.bytes * half if access.turn else 0)
    return base + access.start, base + access.end
