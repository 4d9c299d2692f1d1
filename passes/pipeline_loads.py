"""Loads the next chunk while this one is worked on.

In a loop over chunks the vector unit waits for every load, and the copy pipe for the work on what it loaded before.
This pass starts the load of an iteration in the one before: the loaded tile becomes a value that the loop carries, its
first one loaded before the loop. `lower-to-ascendc` gives a tile that is carried like this two buffers that take turns,
and `insert-sync` orders the copy into one against the work on the other at the end of the body only. The last iteration
loads nothing: its count is 0, so there is no second copy of the body.

A load moves if its offset and count depend on nothing but the loop's induction variable, if the loop does not write the
memory it reads, and if the model says that it pays: it saves the smaller of the times of the loop's loads and of its
vector work, less what the loop's control costs, and that must be more than a share of the whole (`min-gain`). Times are
those of the target's cost tables; what a loop inside runs through is taken for 8 iterations where it is not known.

Before:

    scf.for %i = %c0 to %n step %c4096 {
      %left = arith.subi %n, %i : index
      %count = arith.minsi %left, %c4096 : index
      %x = "tile.load"(%gm, %i, %count) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
      ... work on %x ...
    }

After:

    %first = "tile.load"(%gm, ...)
    %last = scf.for %i = %c0 to %n step %c4096 iter_args(%x = %first) -> (tensor<4096xf32>) {
      %next_i = arith.addi %i, %c4096 : index
      %more = arith.cmpi slt, %next_i, %n : index
      %ahead = arith.select %more, %next_i, %i : index
      ... %count of %ahead, and 0 where there is no more ...
      %next = "tile.load"(%gm, %ahead, %next_count) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
      ... work on %x ...
      scf.yield %next : tensor<4096xf32>
    }
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, scf

from jascend.backends.ascend.targets import TARGETS, costs
from jascend.dialect.ascendc import constant_index
from jascend.dialect.elements import element_name, type_name
from jascend.dialect.tile.common import length_of
from jascend.dialect.tile.memory import COPIED_AS

from .bounds import is_less, turns
from .builder import COMMENT, RUNS, STAGE, Builder, load_stage, mark_part, name_of
from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL, SINGLE_BUFFERS
from .registry import option, register_pass

_LOADS = ("tile.load", "tile.load_rows")
_STORES = {"tile.store": 1, "tile.store_rows": 1}  # number of the operand that is written
_TRIPS = 8  # of a loop whose bounds are not known
_REPEAT = 256  # bytes
_APIS = {
    "math.exp": "Exp", "math.log": "Ln", "math.sqrt": "Sqrt", "arith.divf": "Div", "tile.compress": "GatherMask",
    "tile.gather": "Gather", "tile.sort": "Sort32", "tile.merge": "MrgSort",
}  # fmt: skip
_BYTES = {"f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i16": 2, "i1": 0.125}


@register_pass("pipeline-loads", touches=_LOADS)
@dataclass(frozen=True)
class PipelineLoads:
    target: str = option("ascend910b", "the product whose costs decide")
    min_gain: float = option(0.05, "share of a loop's time that must be saved")

    def run(self, module: ir.Operation, remarks) -> None:
        if self.target not in TARGETS:
            emit_error(
                module, f"option 'target' of pipeline-loads must be one of {', '.join(TARGETS)}, got '{self.target}'"
            )
            raise PassFailure
        model = _Model(self.target)
        for kernel in module.regions[0].blocks[0].operations:
            attributes = kernel.operation.attributes
            if KERNEL not in attributes or SINGLE_BUFFERS in attributes:
                continue
            b = Builder(kernel.location)
            loops, _ = _survey(kernel.operation)
            done = [self.pipeline(loop, model, b, remarks) for loop in loops]
            candidates = [ahead for ahead in done if ahead is not None]
            if candidates:
                kind = "passed" if any(candidates) else "missed"
                remarks.add(
                    kernel.operation,
                    kind,
                    f"loops that load an iteration ahead: {sum(candidates)} of {len(candidates)}",
                )

    def pipeline(self, surveyed: _Loop, model: _Model, b: Builder, remarks) -> bool | None:
        """Whether the loop now loads ahead; None if it has nothing to load that way."""
        loop = surveyed.op
        if surveyed.meets or not surveyed.loads or _trips(loop) <= 1 or not turns(loop):
            return None
        body = _operations(loop.regions[0].blocks[0])
        loads = _movable(surveyed, body)
        if not loads:
            return None
        copy = sum(model.copy_cycles(load) for load, _ in loads)
        work = model.cycles(body)
        rest = work - copy
        gain = min(copy, rest) - model.control_cycles(len(loads))
        what = f"{len(loads)} load{'s' * (len(loads) > 1)} of {copy:.0f} cycles beside {rest:.0f} cycles of work"
        if gain < self.min_gain * work:
            remarks.add(loop, "missed", f"{what}: not worth loading ahead", detail=True)
            return False
        remarks.add(loop, "passed", f"{what}: loaded an iteration ahead", detail=True)
        model.known.pop(loop, None)
        with loop.location, ir.InsertionPoint(loop):
            _rewrite(b, loop, body, loads)
        return True


# -- which loads ------------------------------------------------------------------------------------------------------


@dataclass
class _Loop:
    op: ir.Operation
    loads: list[ir.Operation] = field(default_factory=list)  # those of its body itself
    written: set[ir.Value] = field(default_factory=set)  # the global memory that is stored to inside
    meets: bool = False  # whether the cores wait for each other inside


def _survey(op: ir.Operation) -> tuple[list[_Loop], _Loop]:
    """The loops in an op, inner ones first; and what of the op itself is known of a loop."""
    loops: list[_Loop] = []
    around = _Loop(op)
    for block in (block for region in op.regions for block in region.blocks):
        for view in block.operations:
            inner = view.operation
            name = inner.name
            if name in _LOADS:
                around.loads.append(inner)
            elif name in _STORES:
                around.written.add(inner.operands[_STORES[name]])
            elif name == "tile.sync_all":
                around.meets = True
            elif len(inner.regions):
                found, surveyed = _survey(inner)
                loops += found
                around.written |= surveyed.written
                around.meets |= surveyed.meets
                if name == "scf.for":
                    loops.append(surveyed)
    return loops, around


def _operations(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations]


def _movable(loop: _Loop, body: list[ir.Operation]) -> list[tuple[ir.Operation, list[ir.Operation]]]:
    """The loads that can be made before the iteration that they belong to, each with what its operands are computed by.
    One that a loop inside carries stays."""
    loads = [op for op in loop.loads if op.operands[0] not in loop.written]
    loads = [op for op in loads if not any(use.owner.operation.name == "scf.for" for use in op.results[0].uses)]
    slices = [(load, _slice(load, loop.op.regions[0].blocks[0], body)) for load in loads]
    return [(load, ops) for load, ops in slices if ops is not None]


def _slice(load: ir.Operation, block: ir.Block, body: list[ir.Operation]) -> list[ir.Operation] | None:
    """The scalar ops in a loop's body that a load's operands come from, in order; None if they hold anything else."""
    found: set[ir.Operation] = set()
    waiting = list(load.operands)
    while waiting:
        value = waiting.pop()
        owner = value.owner
        if isinstance(owner, ir.Block):
            if owner == block and value.arg_number != 0:
                return None
            continue
        owner = owner.operation
        if owner in found or owner.block != block:
            continue
        if not owner.name.startswith("arith.") and owner.name != "memref.dim":
            return None
        found.add(owner)
        waiting += owner.operands
    return [op for op in body if op in found] if found else []


# -- the model --------------------------------------------------------------------------------------------------------


class _Model:
    """Cycles of loads and of vector work, one after the other."""

    def __init__(self, target: str):
        self.costs = costs(target)
        self.sizes: dict[ir.Type, float] = {}  # bytes of tiles, by type
        self.known: dict[ir.Operation, float] = {}  # of ops with regions; a loop that is written anew is forgotten

    def copy_cycles(self, op: ir.Operation) -> float:
        tile = op.results[0] if op.name in _LOADS else op.operands[0]
        c = self.costs
        return c.read_latency + c.copy_issue + self.bytes(tile.type) / c.read * c.clock

    def control_cycles(self, loads: int) -> float:
        """What carrying the tiles adds to an iteration: a few scalar instructions and a flag."""
        return loads * (8 * self.costs.scalar + self.costs.flag)

    def cycles(self, ops: list[ir.Operation]) -> float:
        return sum(map(self.op_cycles, ops))

    def op_cycles(self, op: ir.Operation) -> float:
        c, name = self.costs, op.name
        if name.startswith(("arith.", "math.")) and not self.bytes(op.results[0].type):
            return 0.0
        if len(op.regions):
            if op not in self.known:
                blocks = (block for region in op.regions for block in region.blocks)
                inner = max((self.cycles(_operations(block)) for block in blocks), default=0.0)
                self.known[op] = _trips(op) * inner if op.name in ("scf.for", "scf.while") else inner
            return self.known[op]
        if name in _LOADS or name in _STORES:
            return self.copy_cycles(op)
        if name == "tile.extract":
            return c.flag_scalar + c.scalar_ub
        most = max((self.bytes(value.type) for values in (op.results, op.operands) for value in values), default=0.0)
        if not most:
            return 0.0
        return c.vector_start + most / _REPEAT * c.vector[_APIS.get(name, "Add")][0]

    def bytes(self, type_: ir.Type) -> float:
        """Of a tile; 0 of any other type."""
        if type_ not in self.sizes:
            is_tile = isinstance(type_, ir.RankedTensorType)
            self.sizes[type_] = type_.get_dim_size(0) * _BYTES.get(type_name(type_.element_type), 1) if is_tile else 0
        return self.sizes[type_]


def _trips(loop: ir.Operation) -> float:
    if loop.name != "scf.for":
        return _TRIPS
    first, last, step = (constant_index(value) for value in list(loop.operands)[:3])
    if None in (first, last, step):
        return _TRIPS
    return max(0, -(-(last - first) // step))


# -- the rewrite ------------------------------------------------------------------------------------------------------


def _rewrite(
    b: Builder, loop: ir.Operation, body: list[ir.Operation], movable: list[tuple[ir.Operation, list[ir.Operation]]]
) -> None:
    """Builds the loop anew before the old one; the insertion point is there."""
    loads = [load for load, _ in movable]
    first, last, step, *initial = loop.operands
    old = loop.regions[0].blocks[0]
    b.location = loop.location
    induction = old.arguments[0]

    before = _before(loop)
    runs = None if _runs(loop) else b.cmpi("slt", first, last, "any")
    ahead = [_load_of(b, load, ops, induction, first, runs) for load, ops in movable]
    if any(isinstance(result.type, ir.RankedTensorType) for op in before for result in op.results):
        known = set(before)
        _move_up(before, [op for op in _before(loop) if op not in known])
    new = scf.ForOp(first, last, step, [*initial, *ahead], loc=loop.location)
    for name in loop.attributes:
        new.operation.attributes[name] = loop.attributes[name]
    arguments = list(new.body.arguments)
    for argument, source in zip(arguments, [*old.arguments, *(load.results[0] for load in loads)]):
        argument.set_location(source.location if isinstance(source.owner, ir.Block) else source.owner.location)
    with ir.InsertionPoint(new.body):
        name = name_of(induction) or "i"
        following = b.op(arith.addi, arguments[0], step, name=f"next_{name}")
        more = b.cmpi("slt", following, last, "more")
        at = b.select(more, following, arguments[0], f"{name}_ahead")
        nexts = [_load_of(b, load, ops, induction, at, more) for load, ops in movable]
    for source, argument in zip([*old.arguments, *(load.results[0] for load in loads)], arguments):
        source.replace_all_uses_with(argument)
    yielded = list(body[-1].operands)
    for op, following in zip(body[:-1], body[1:]):
        if op in loads:
            _erase(op, following)
        else:
            new.body.append(op)
    with ir.InsertionPoint(new.body):
        scf.yield_([*yielded, *nexts], loc=loop.location)
    for before, after in zip(loop.results, new.operation.results):
        before.replace_all_uses_with(after)
    _drop_unused(new.body)
    loop.erase()


def _before(loop: ir.Operation) -> list[ir.Operation]:
    """The ops of the block of a loop that stand before it."""
    ops = _operations(loop.block)
    return ops[: ops.index(loop)]


def _move_up(earlier: list[ir.Operation], made: list[ir.Operation]) -> None:
    """Lets first loads begin beside the work before the loop: up to what they need, another load, or a loop."""
    needed = {operand.owner for op in made for operand in op.operands if not isinstance(operand.owner, ir.Block)}
    for other in reversed(earlier):
        stays = other.name in (*_LOADS, *_STORES) or other.name == "tile.sync_all" or len(other.regions)
        if stays or other in needed:
            for op in reversed(made):
                op.move_after(other)
            return
    for op in made if earlier else ():
        op.move_before(earlier[0])


def _runs(loop: ir.Operation) -> bool:
    """Whether a loop is known to run at least once."""
    if RUNS in loop.attributes:
        return True
    return is_less(*list(loop.operands)[:2])


def _load_of(
    b: Builder, load: ir.Operation, ops: list[ir.Operation], induction: ir.Value, at: ir.Value, valid: ir.Value | None
) -> ir.Value:
    """The load of the iteration at `at`; of nothing where `valid` is given and does not hold."""
    # within the row or list, even if nothing of it is there
    if valid is not None and constant_index(at) is None and not _is_select(at):
        at = b.select(valid, at, b.index(0), "first")
    values, made = {induction: at}, []
    for op in ops:
        same = _simplified(b, op, values)
        if same is not None:
            values[op.results[0]] = same
            continue
        copy = _clone(op)
        made.append(copy)
        _replace_operands(copy, values)
        values.update(zip(op.results, copy.results))
    copy = _clone(load)
    _replace_operands(copy, values)
    if _fills_its_tile(load):
        del copy.attributes["pad"]  # what nothing is loaded into, nothing reads
    if valid is not None:
        count = len(copy.operands) - 1
        with ir.InsertionPoint(copy):
            none = b.index(0)
            copy.operands[count] = b.select(valid, copy.operands[count], none, "next_count")
            made.append(copy.operands[count].owner)
    first = next((op for op in made if op.name != "arith.constant"), copy)
    mark_part(first, copy, load_stage(name_of(load.results[0])))
    return copy.results[0]


def _fills_its_tile(load: ir.Operation) -> bool:
    """Whether a load that pads has nothing to pad."""
    if "pad" not in load.attributes:
        return False
    count, length = constant_index(load.operands[2]), length_of(load.results[0])
    if load.name == "tile.load":
        _, lanes = COPIED_AS.get(element_name(load.operands[0]), ("", 1))
        return count is not None and count * lanes == length
    view = load.opview
    return view.row_length == view.pitch and count == length // view.pitch


_KNOWN = {
    "arith.addi": lambda a, b: a + b, "arith.subi": lambda a, b: a - b, "arith.muli": lambda a, b: a * b,
    "arith.minsi": min, "arith.maxsi": max,
}  # fmt: skip


def _simplified(b: Builder, op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Value | None:
    """The value of a scalar op on known numbers, or the other operand where it adds or subtracts nothing."""
    if op.name not in _KNOWN or type_name(op.results[0].type) != "index":
        return None
    x, y = (values.get(operand, operand) for operand in op.operands)
    known_x, known_y = constant_index(x), constant_index(y)
    if known_x is not None and known_y is not None:
        result = _KNOWN[op.name](known_x, known_y)
        return x if result == known_x else y if result == known_y else b.index(result)
    if op.name == "arith.addi" and known_x == 0:
        return y
    return x if op.name in ("arith.addi", "arith.subi") and known_y == 0 else None


def _is_select(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "arith.select"


def _replace_operands(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> None:
    for i, operand in enumerate(op.operands):
        if operand in values:
            op.operands[i] = values[operand]


def _drop_unused(block: ir.Block) -> None:
    """Erases scalar ops that served a load which has moved."""
    ops = _operations(block)
    following = ops[-1]
    for op in reversed(ops):
        if op.name.startswith("arith.") and not any(True for result in op.results for _ in result.uses):
            _erase(op, following)
        else:
            following = op


def _clone(op: ir.Operation) -> ir.Operation:
    """A copy, but for the comment: that tells of the stage that the op is in."""
    copy = op.clone()
    attributes = copy.attributes
    for name in (COMMENT, STAGE):
        if name in attributes:
            del attributes[name]
    return copy


def _erase(op: ir.Operation, following: ir.Operation) -> None:
    if COMMENT in op.attributes and COMMENT not in following.attributes and following.name != "scf.yield":
        for name in {COMMENT, STAGE} & set(op.attributes):
            following.attributes[name] = op.attributes[name]
    op.erase()
