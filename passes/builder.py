"""Builds IR: scalars, tiles and control flow, with names that survive into the generated code.

A name rides on the op's location (`loc("mass"("model.py":12:3))`), so that every level can read it back with `name_of`.
A comment for the emitted text rides on the attribute `ascend.comment` of the op it stands before. A loop that runs at
least once, whatever its bounds look like, has the attribute `ascend.runs`. A constant without a name stands once in a
function, at its start: of the constants that lowerings ask for nine in ten are there already.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from mlir import ir
from mlir.dialects import arith, math, scf

COMMENT = "ascend.comment"
STAGE, STAGE_END = "ascend.stage", "ascend.stage_end"
PART, PART_END = "ascend.part", "ascend.part_end"
RUNS = "ascend.runs"
# Upstream's builders of these find out what needs no finding out, which takes most of the time: made at once instead.
_PLAIN = {
    getattr(arith, name): f"arith.{name}"
    for name in (
        "addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "shrsi", "shli",
        "addf", "subf", "mulf", "divf", "negf", "minimumf", "maximumf",
    )
}  # fmt: skip
_SILENT = ("arith.constant", "tensor.splat")  # what need not show in the text


def name_of(value: ir.Value) -> str | None:
    """The name a value was given, or None."""
    owner = value.owner
    return name_at(value.location if isinstance(owner, ir.Block) else owner.location)


def name_at(location: ir.Location) -> str | None:
    """The name that a location gives, or None."""
    return location.name_str if location.is_a_name() else None


def named(name: str | None, location: ir.Location) -> ir.Location:
    """`location` under a new name, or under none."""
    location = _nameless(location)
    return location if name is None else ir.Location.name(name, location)


def _nameless(location: ir.Location) -> ir.Location:
    while location.is_a_name():
        location = location.child_loc
    return location


class Stage(str):
    """The comment of a stage, with the name of its function where it gets one: `Stage("FindKth", "The k-th largest.")`.
    The two branches of a decision have a name each."""

    names: tuple[str, ...]

    def __new__(cls, name: str, about: str, *others: str) -> Stage:
        stage = super().__new__(cls, about)
        stage.names = (name, *others)
        return stage


def comment(op: ir.Operation | ir.OpView, text: str) -> None:
    """Sets the comment that the emitted text shows before `op`; a `Stage` has a name as well."""
    op.operation.attributes[COMMENT] = ir.StringAttr.get(text)
    if isinstance(text, Stage):
        op.operation.attributes[STAGE] = ir.StringAttr.get(",".join(text.names))


def mark_part(first: ir.Operation, last: ir.Operation, stage: Stage) -> None:
    """Makes the ops from `first` to `last` of a block what `Builder.part` does. One op alone is no part."""
    if first == last:
        return
    first.attributes[PART], last.attributes[PART_END] = ir.StringAttr.get(stage.names[0]), ir.StringAttr.get(stage)


def load_stage(name: str | None) -> Stage:
    """The part that loads a tile of that name."""
    name = "".join(word.capitalize() for word in (name or "tile").split("_"))
    return Stage(f"Load{name}", "From global memory; lanes that a copy leaves alone hold the padding.")


def f32_bits(value: float) -> int:
    """The bits of a float32, as a signed 32-bit integer."""
    return struct.unpack("<i", struct.pack("<f", value))[0]


def up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


def tile_type(length: int, element: ir.Type) -> ir.RankedTensorType:
    return ir.RankedTensorType.get([length], element)


class Constants:
    """The constants without a name that stand at the start of a function, which others are added to."""

    def __init__(self, entry: ir.Block):
        self.entry = entry
        self._last: ir.Operation | None = None
        self._values: dict[ir.Attribute, ir.Value] = {}
        for op in entry.operations:
            if op.operation.name != "arith.constant" or isinstance(op.value.type, ir.ShapedType):
                break  # a tile's constant becomes instructions, which need their own before them
            self._last = op.operation
            if name_of(op.result) is None:
                self._values[op.value] = op.result

    def __len__(self) -> int:
        return len(self._values)

    def get(self, attribute: ir.Attribute, location: ir.Location) -> ir.Value:
        """The value of a typed attribute."""
        value = self._values.get(attribute)
        if value is None:
            at_start = self._last is None
            point = ir.InsertionPoint.at_block_begin(self.entry) if at_start else ir.InsertionPoint.after(self._last)
            self._last = arith.ConstantOp(attribute.type, attribute, loc=location, ip=point).operation
            value = self._values[attribute] = self._last.results[0]
        return value


class Builder:
    """Creates ops of one function at the current insertion point, under one source location."""

    def __init__(self, location: ir.Location):
        self.location = location
        self.index_type = ir.IndexType.get()
        self.i32_type, self.i64_type = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
        self.f32_type = ir.F32Type.get()

    @property
    def location(self) -> ir.Location:
        return self._location

    @location.setter
    def location(self, location: ir.Location) -> None:
        self._location, self._nameless = location, _nameless(location)

    def loc(self, name: str | None = None) -> ir.Location:
        return self._nameless if name is None else ir.Location.name(name, self._nameless)

    @cached_property
    def constants(self) -> Constants:
        """Those of the function that is built."""
        block = ir.InsertionPoint.current.block
        while block.owner.operation.name != "func.func":
            block = block.owner.operation.block
        return Constants(block)

    @contextmanager
    def at(self, location: ir.Location) -> Iterator[None]:
        """Another source location for a while: that of what is being built."""
        outer, self.location = self.location, location
        try:
            yield
        finally:
            self.location = outer

    def build(self, cls, *operands, results=(), name: str | None = None, **attributes):
        """An op of one of our dialects."""
        return cls.build(*operands, results=results, loc=self.loc(name), **attributes)

    # -- scalars ------------------------------------------------------------------------------------------------

    def index(self, value: int, name: str | None = None) -> ir.Value:
        return self.constant(self.index_type, value, name)

    def i32(self, value: int) -> ir.Value:
        return self.constant(self.i32_type, value)

    def f32(self, value: float, name: str | None = None) -> ir.Value:
        return self.constant(self.f32_type, value, name)

    def constant(self, type_: ir.Type, value: float | ir.Attribute, name: str | None = None) -> ir.Value:
        """A number of a type, at the function's start, or here if it has a name; `value` may be a typed attribute."""
        if not isinstance(value, ir.Attribute):
            is_float = isinstance(type_, ir.FloatType)
            value = ir.FloatAttr.get(type_, value) if is_float else ir.IntegerAttr.get(type_, int(value))
        if name is not None:
            return arith.constant(type_, value, loc=self.loc(name))
        return self.constants.get(value, self._nameless)

    def op(self, function: Callable, *operands, name: str | None = None, **kwargs) -> ir.Value:
        """An upstream op by its builder function: `b.op(arith.addf, x, y, name="sum")`."""
        if function in _PLAIN and not kwargs:
            return self._plain(_PLAIN[function], operands, name)
        return function(*operands, loc=self.loc(name), **kwargs)

    def _plain(self, op: str, operands: Sequence[ir.Value], name: str | None, **attributes: ir.Attribute) -> ir.Value:
        """An op with one result, whose type follows from the operands."""
        made = ir.Operation.create(op, None, operands, attributes, loc=self.loc(name), infer_type=True)
        return made.results[0]

    def cmpi(self, predicate: str, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        number = ir.IntegerAttr.get(self.i64_type, int(arith.CmpIPredicate[predicate]))
        return self._plain("arith.cmpi", (a, b), name, predicate=number)

    def cmpf(self, predicate: str, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        number = ir.IntegerAttr.get(self.i64_type, int(arith.CmpFPredicate[predicate]))
        return self._plain("arith.cmpf", (a, b), name, predicate=number)

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self._plain("arith.select", (condition, a, b), name)

    def float_of_bits(self, bits: ir.Value, name: str | None = None) -> ir.Value:
        return arith.bitcast(self.f32_type, bits, loc=self.loc(name))

    def bits_of_float(self, value: ir.Value, name: str | None = None) -> ir.Value:
        return arith.bitcast(self.i32_type, value, loc=self.loc(name))

    # -- tiles --------------------------------------------------------------------------------------------------

    def splat(self, scalar: ir.Value, length: int, name: str | None = None) -> ir.Value:
        tile = tile_type(length, scalar.type)
        return ir.Operation.create("tensor.splat", [tile], [scalar], loc=self.loc(name)).results[0]

    def exp(self, x: ir.Value, name: str | None = None) -> ir.Value:
        return math.exp(x, loc=self.loc(name))

    # -- stages -------------------------------------------------------------------------------------------------

    @contextmanager
    def _made(self) -> Iterator[list[ir.Operation]]:
        """The ops that are made inside, at the end of a block, but for those that need not show in the text."""
        point, constants = ir.InsertionPoint.current, len(self.constants)
        ops = point.block.operations
        start = len(ops) - (point.ref_operation is not None)
        made: list[ir.Operation] = []
        yield made
        if point.block == self.constants.entry:
            start += len(self.constants) - constants
        inside = (ops[i].operation for i in range(start, len(ops) - (point.ref_operation is not None)))
        made += [op for op in inside if op.name not in _SILENT]

    @contextmanager
    def stage(self, about: str) -> Iterator[None]:
        """What is made inside, at the end of a block, is a stage of the emitted text, with this comment before it; a
        `Stage` is a function, if the kernel and it are long."""
        with self._made() as made:
            yield
        if made and COMMENT not in made[0].attributes:
            comment(made[0], about)
            if isinstance(about, Stage):
                made[-1].attributes[STAGE_END] = ir.UnitAttr.get()

    @contextmanager
    def part(self, stage: Stage) -> Iterator[None]:
        """What is made inside, at the end of a block, is what lowerings say again and again: a function of its own, if
        the kernel is long and has it more than once."""
        with self._made() as made:
            yield
        if made:
            mark_part(made[0], made[-1], stage)

    # -- control flow -------------------------------------------------------------------------------------------

    def for_(
        self,
        first: ir.Value,
        last: ir.Value,
        step: ir.Value,
        carried: Sequence[tuple[str, ir.Value]],
        body: Callable[..., Sequence[ir.Value]],
        *,
        induction: str,
        about: str | None = None,
        runs: bool = False,
    ) -> list[ir.Value]:
        """`scf.for` with named loop-carried values; `body(i, *values)` returns what it yields. `runs` if that is known
        to happen at least once."""
        loop = scf.ForOp(first, last, step, [value for _, value in carried], loc=self.loc())
        _name_arguments(loop.body, [induction, *(name for name, _ in carried)], self.location)
        if about is not None:
            comment(loop, about)
        if runs:
            loop.operation.attributes[RUNS] = ir.UnitAttr.get()
        with ir.InsertionPoint(loop.body):
            scf.yield_(list(body(*loop.body.arguments)), loc=self.loc())
        return list(loop.results)

    def while_(
        self,
        carried: Sequence[tuple[str, ir.Value]],
        condition: Callable[..., ir.Value],
        body: Callable[..., Sequence[ir.Value]],
        *,
        about: str | None = None,
        runs: bool = False,
    ) -> list[ir.Value]:
        """`scf.while` whose condition is scalar arithmetic over the carried values; `runs` as of `for_`."""
        types = [value.type for _, value in carried]
        names = [name for name, _ in carried]
        loop = scf.WhileOp(types, [value for _, value in carried], loc=self.loc())
        if about is not None:
            comment(loop, about)
        if runs:
            loop.operation.attributes[RUNS] = ir.UnitAttr.get()
        before = ir.Block.create_at_start(loop.operation.regions[0], types, [self.loc(n) for n in names])
        after = ir.Block.create_at_start(loop.operation.regions[1], types, [self.loc(n) for n in names])
        with ir.InsertionPoint(before):
            scf.condition(condition(*before.arguments), list(before.arguments), loc=self.loc())
        with ir.InsertionPoint(after):
            scf.yield_(list(body(*after.arguments)), loc=self.loc())
        return list(loop.operation.results)

    def if_(
        self,
        condition: ir.Value,
        names: Sequence[str],
        then: Callable[[], Sequence[ir.Value]],
        otherwise: Callable[[], Sequence[ir.Value]] | None = None,
        *,
        types: Sequence[ir.Type] = (),
        about: str | None = None,
    ) -> list[ir.Value]:
        """`scf.if`; with results, `types` gives theirs and both branches return values. The results carry the names."""
        has_else = otherwise is not None
        branch = scf.IfOp(condition, list(types), has_else=has_else, loc=self.loc(",".join(names) or None))
        if about is not None:
            comment(branch, about)
        with ir.InsertionPoint(branch.then_block):
            scf.yield_(list(then()), loc=self.loc())
        if has_else:
            with ir.InsertionPoint(branch.else_block):
                scf.yield_(list(otherwise()), loc=self.loc())
        return list(branch.results)


def _name_arguments(block: ir.Block, names: Sequence[str], location: ir.Location) -> None:
    for argument, name in zip(block.arguments, names, strict=True):
        argument.set_location(named(name, location))
