"""Gives the stages of a long kernel functions of their own, so that its text can be read, and says once what it does twice.

A stage is a loop or a branch with a comment (`builder.Stage`), together with what loads its first chunk and with the flags
around it; a part is a short run of instructions that lowerings say again and again, marked by `builder.PART` on its first
op and `builder.PART_END` on its last one. A stage becomes a private function where it is long, or where there is another
one like it; so does a part that occurs more than once. Two are alike if they are the same ops with the same attributes on
operands that correspond: they share a function, whatever buffers, numbers and constants they are given. A barrier that one
of them needs, all of them have.

What all calls of a function agree in is no argument of it: buffers and constants are declared in the function, and what
the kernel, or one turn of its rows, knows at one place is marked `ascend.member`, and so is the argument.

The pass runs after `insert-sync`: a function has the flags and barriers of the place that it was taken from, and calls
change the order of nothing. A kernel that is short stays as it is.

Before:

    func.func @kernel(%in: memref<?x64xf32, "gm">) attributes {ascend.kernel} {
      ...
      %number = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) { ... } {ascend.comment = "...", ...}

After:

    func.func @kernel(%in: memref<?x64xf32, "gm">) attributes {ascend.kernel} {
      ...
      %number = call @kernel.CountAbove(%n) : (index) -> index
    }
    func.func private @kernel.CountAbove(%n: index) -> index attributes {ascend.comment = "...", ascend.stage_of = @kernel} {
      ...
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import func

from jascend.dialect.ascendc import constant_index

from .accesses import VIEW, root_of
from .builder import COMMENT, PART, PART_END, STAGE, STAGE_END, name_of, named
from .lower_to_tile import KERNEL
from .registry import option, register_pass

MEMBER, STAGE_OF, RESULTS = "ascend.member", "ascend.stage_of", "ascend.results"
_BUFFER, _CONSTANT, _CALL = "ascendc.local_tensor", "arith.constant", "func.call"
_SILENT = (_BUFFER, _CONSTANT, VIEW, "scf.yield", "scf.condition")
_BARRIER = "ascendc.pipe_barrier"
_SET, _WAIT = "ascendc.set_flag", "ascendc.wait_flag"
_PROLOGUE = (_SET, _WAIT, "ascendc.copy_in", "ascendc.copy_in_rows", _BARRIER, VIEW)
_MARKS = (STAGE, STAGE_END, PART, PART_END)
_ALIKE = 6  # lines of what is worth a function where there are two


@register_pass("outline-stages")
@dataclass(frozen=True)
class OutlineStages:
    kernel: int = option(240, "lines of text that a kernel must have")
    stage: int = option(20, "lines of text that a stage must have, if there is no other one like it")

    def run(self, module: ir.Operation, remarks) -> None:
        kernels = [op.operation for op in module.regions[0].blocks[0].operations if KERNEL in op.operation.attributes]
        for kernel in kernels:
            if _Node(kernel).size < self.kernel:
                continue
            _hoist_workspaces(kernel)
            outliner = _Outliner(kernel, self.stage)
            with module.location:
                outliner.run()
            if outliner.functions:
                calls = sum(len(function.calls) for function in outliner.functions)
                remarks.add(kernel, "passed", f"{len(outliner.functions)} functions for its stages, called at {calls} places")


@dataclass
class _Function:
    op: ir.Operation
    size: int
    stage: str  # what it is called, but for a number
    roots: dict[int, ir.Value] = field(default_factory=dict)  # what an argument is, that is one value at all calls
    calls: list[ir.Operation] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.op.attributes["sym_name"].value

    @property
    def block(self) -> ir.Block:
        return self.op.regions[0].blocks[0]


class _Node:
    """An op, with what is in its blocks; `size` is how many lines of text it takes, `shape` what it has in common with ops
    like it. The IR's own handles do not serve as keys: their hash is of what an op holds, which outlining changes."""

    __slots__ = ("op", "blocks", "size", "shape")

    def __init__(self, op: ir.Operation):
        self.op = op
        self.blocks = [[_Node(view.operation) for view in block.operations] for region in op.regions for block in region.blocks]
        self.measure()
        self.shape = hash((op.name, *map(_shapes, self.blocks)))

    def measure(self) -> None:
        self.size = (self.op.name not in _SILENT) + len(self.blocks) + sum(map(_lines, self.blocks))


def _shapes(nodes: list[_Node]) -> tuple[int, ...]:
    return tuple(node.shape for node in nodes if node.op.name not in (_BARRIER, _CONSTANT))


def _lines(nodes: list[_Node]) -> int:
    return sum(node.size for node in nodes)


def _parts(nodes: list[_Node]) -> Iterator[tuple[str, list[_Node]]]:
    """The parts among the ops of a block, with their names."""
    found = None
    for node in nodes:
        if PART in node.op.attributes:
            found = node.op.attributes[PART].value, []
        if found is not None:
            found[1].append(node)
            if PART_END in node.op.attributes:
                yield found
                found = None


def _shape_of(part: tuple[str, list[_Node]]) -> int:
    return hash((part[0], _shapes(part[1])))


@dataclass
class _Stretch:
    """Ops in a row, of one block: what they read from around them, and which of their values are read there."""

    ops: list[ir.Operation]
    given: list[ir.Value] = field(default_factory=list)
    places: list[tuple[ir.Operation, int, int]] = field(default_factory=list)  # op, operand, which of what it is given
    views: list[ir.Value] = field(default_factory=list)
    results: list[ir.Value] = field(default_factory=list)
    key: tuple = ()


class _Outliner:
    """Outlines the stages of one kernel, inner ones first."""

    def __init__(self, kernel: ir.Operation, least: int):
        self.kernel, self.least = kernel, least
        self.name = kernel.attributes["sym_name"].value
        self.root = _Node(kernel)
        self.alike: Counter[int] = Counter()
        self.known: dict[tuple, _Function] = {}
        self.functions: list[_Function] = []

    def run(self) -> None:
        self.survey(self.root)
        self.block(self.root.blocks[0])
        for function in reversed(self.functions):
            if len(function.calls) == 1 and function.size < self.least:
                self.undo(function)
        self.name_functions()
        for function in reversed(self.functions):  # callers before what they call
            self.settle(function)

    def survey(self, node: _Node) -> None:
        """Counts stages and parts by their shapes."""
        for nodes in node.blocks:
            self.alike.update(map(_shape_of, _parts(nodes)))
            for inner in nodes:
                if inner.blocks:
                    self.alike[inner.shape] += 1
                    self.survey(inner)

    # -- what is outlined ---------------------------------------------------------------------------------------

    def block(self, nodes: list[_Node]) -> None:
        for node in nodes:
            for inner in node.blocks:
                self.block(inner)
            if node.blocks:
                node.measure()
        for name, part in list(_parts(nodes)):
            if self.alike[_shape_of((name, part))] > 1:
                self.outline(nodes, part, name, part[-1].op.attributes[PART_END].value)
        stages = [node for node in nodes if node.blocks and COMMENT in node.op.attributes]
        if nodes is not self.root.blocks[0] or len(stages) > 1:  # one loop is what a kernel is
            for node in stages:
                self.stage(nodes, node)
        self.stretches(nodes)

    def stage(self, nodes: list[_Node], node: _Node) -> None:
        op, size = node.op, node.size
        about = op.attributes[COMMENT].value
        names = op.attributes[STAGE].value.split(",") if STAGE in op.attributes else [_called(about)]
        names = [*names, f"{names[0]}Otherwise"][:2]
        if self.alike[node.shape] > 1 and size >= _ALIKE or op.name != "scf.if" and size >= self.least:
            self.outline(nodes, _with_prologue(nodes, node), names[0], about)
        elif op.name == "scf.if":
            for inner, called in zip(node.blocks, names):
                if _lines(inner) >= self.least:
                    self.outline(inner, [each for each in inner[:-1] if each.op.name != _CONSTANT], called, about)
            node.measure()

    def stretches(self, nodes: list[_Node]) -> None:
        """Outlines stages that are no single op."""
        found: list[_Node] | None = None
        for node in list(nodes):
            if STAGE in node.op.attributes:
                found = []
            if found is None:
                continue
            found.append(node)
            if STAGE_END in node.op.attributes:
                if len(found) > 1 and _lines(found) >= self.least:
                    attributes = found[0].op.attributes
                    self.outline(nodes, found, attributes[STAGE].value.split(",")[0], attributes[COMMENT].value)
                found = None

    # -- a function and its calls -------------------------------------------------------------------------------

    def outline(self, nodes: list[_Node], chosen: list[_Node], name: str, about: str) -> None:
        """Puts a call in the place of some ops of a block, to a function that is like them."""
        if PART_END in chosen[-1].op.attributes:
            chosen = _without_views(chosen)
        ops = [node.op for node in chosen]
        stretch = _Stretch(ops)
        _describe(stretch)
        names = [label_of(value) or "result" for value in stretch.results]
        location = named(None, ops[0].location)
        outside = {result: [use for use in result.uses if _top(use.owner.operation, ops[0]) not in set(ops)]
                   for result in stretch.results}
        function = self.known.get(stretch.key)
        is_new = function is None
        if is_new:
            function = self.known[stretch.key] = self.function(stretch, name, about, names, location, _lines(chosen))
            self.functions.append(function)
        symbol = function.name
        types = [result.type for result in stretch.results]
        with ir.InsertionPoint(ops[-1]):
            label = ",".join(names) or None
            call = func.CallOp(types, symbol, stretch.given, loc=named(label, location)).operation
        for name, op in ((COMMENT, ops[0]), (STAGE, ops[0]), (STAGE_END, ops[-1]), (PART_END, ops[-1])):
            if PART_END in ops[-1].attributes and name in op.attributes:
                call.attributes[name] = op.attributes[name]
        if not is_new and PART_END not in ops[-1].attributes and about != function.op.attributes[COMMENT].value:
            call.attributes[COMMENT] = ir.StringAttr.get(about)
        function.calls.append(call)
        nodes[nodes.index(chosen[-1])] = _Node(call)
        for node in chosen[:-1]:
            nodes.remove(node)
        for result, new in zip(stretch.results, call.results):
            for use in outside[result]:
                use.owner.operands[use.operand_number] = new
        if is_new:
            self.fill(function, stretch)
        else:
            own = [view.operation for view in function.block.operations][2 * len(stretch.views) :]
            _add_barriers(list(_all(own)), list(_all(ops)))
            self.forget(ops)
            for op in reversed(ops):
                op.erase()

    def name_functions(self) -> None:
        """Functions of one name are numbered."""
        numbers: Counter[str] = Counter()
        for function in self.functions:
            numbers[function.stage] += 1
            number = numbers[function.stage]
            symbol = f"{self.name}.{function.stage}{number if number > 1 else ''}"
            function.op.attributes["sym_name"] = ir.StringAttr.get(symbol)
            for call in function.calls:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(symbol)

    def forget(self, ops: list[ir.Operation]) -> None:
        """Strikes off the calls in ops that are about to be erased."""
        gone = [op for op in _all(ops) if op.name == _CALL]
        for function in self.functions:
            if any(op.attributes["callee"].value == function.name for op in gone):
                function.calls = [call for call in function.calls if not any(call == op for op in gone)]

    def function(
        self, stretch: _Stretch, name: str, about: str, names: list[str], location: ir.Location, size: int
    ) -> _Function:
        types = [value.type for value in stretch.given], [value.type for value in stretch.results]
        with ir.InsertionPoint.after(self.functions[-1].op if self.functions else self.kernel):
            op = func.FuncOp(f"{self.name}.{len(self.known)}", types, visibility="private", loc=location).operation
        op.attributes[COMMENT] = ir.StringAttr.get(about)
        op.attributes[STAGE_OF] = ir.FlatSymbolRefAttr.get(self.name)
        op.attributes[RESULTS] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
        op.regions[0].blocks.append(*types[0], arg_locs=[_location(root_of(value)) for value in stretch.given])
        return _Function(op, size, name)

    def fill(self, function: _Function, stretch: _Stretch) -> None:
        block = function.block
        for op in stretch.ops:
            block.append(op)
        arguments = dict(zip(stretch.given, block.arguments))
        for op, place, number in stretch.places:
            op.operands[place] = block.arguments[number]
        with ir.InsertionPoint.at_block_begin(block):
            for view in stretch.views:
                offset = view.owner.operands[1].owner.clone()
                arguments[view] = view.owner.clone().results[0]
                arguments[view].owner.operands[0] = arguments[view.owner.operands[0]]
                arguments[view].owner.operands[1] = offset.results[0]
        for op in _all(stretch.ops):
            for number, operand in enumerate(op.operands):
                if operand in arguments:
                    op.operands[number] = arguments[operand]
        for name in (COMMENT, STAGE, PART):
            for op in stretch.ops:
                if name in op.attributes and (name != COMMENT or op.attributes[COMMENT] == function.op.attributes[COMMENT]):
                    del op.attributes[name]
        with ir.InsertionPoint(block):
            func.ReturnOp(stretch.results, loc=function.op.location)

    def undo(self, function: _Function) -> None:
        """Puts ops back that have turned out to be unlike any others."""
        (call,) = function.calls
        self.functions.remove(function)
        for argument, operand in zip(function.block.arguments, call.operands):
            argument.replace_all_uses_with(operand)
        *ops, end = [view.operation for view in function.block.operations]
        for result, value in zip(call.results, end.operands):
            result.replace_all_uses_with(value)
        for op in ops:
            op.move_before(call)
        about = function.op.attributes[COMMENT]
        if PART_END not in ops[-1].attributes:
            next(op for op in ops if len(op.regions)).attributes[COMMENT] = about
        call.erase()
        function.op.erase()

    # -- arguments ----------------------------------------------------------------------------------------------

    def settle(self, function: _Function) -> None:
        """Takes arguments away that are the same in all calls."""
        block = function.block
        dropped, roots = [], []
        for number, argument in enumerate(block.arguments):
            given = [call.operands[number] for call in function.calls]
            if not any(True for _ in argument.uses):
                dropped.append(number)
            elif same := _same(given):
                with ir.InsertionPoint.at_block_begin(block):
                    argument.replace_all_uses_with(same.clone().results[0])
                dropped.append(number)
            else:
                roots.append(self.member(given))
        if dropped:
            self.without(function, dropped)
        function.roots = {number: root for number, root in enumerate(roots) if root is not None}
        attributes = [ir.DictAttr.get({} if root is None else {MEMBER: ir.UnitAttr.get()}) for root in roots]
        function.op.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)

    def member(self, given: Sequence[ir.Value]) -> ir.Value | None:
        """The one value that all of these are, which the kernel has at its top or in its loop over rows; marks it there."""
        root, *others = [self.root_of_argument(value) for value in given]
        if root is None or any(other is None or other != root for other in others):
            return None
        owner = root.owner
        if isinstance(owner, ir.Block):
            return root
        around = owner.operation.parent
        if around != self.kernel and (around.parent is None or around.parent.operation != self.kernel or around.name != "scf.for"):
            return None
        if len(owner.results) > 1 or len(owner.regions) or owner.name in (_CALL, VIEW):
            return None
        owner.attributes[MEMBER] = ir.UnitAttr.get()
        return root

    def root_of_argument(self, value: ir.Value) -> ir.Value | None:
        """A value, or what it is where it is an argument of a function; None where that differs."""
        if not isinstance(value.owner, ir.Block):
            return value
        around = value.owner.owner.operation
        if around == self.kernel:
            return value
        if around.name != "func.func":
            return None
        function = next(each for each in self.functions if each.op == around)
        return function.roots.get(value.arg_number)

    def without(self, function: _Function, dropped: list[int]) -> None:
        block = function.block
        for number in reversed(dropped):
            block.erase_argument(number)
        results = [result.type for result in (function.calls[0].results)]
        type_ = ir.FunctionType.get([argument.type for argument in block.arguments], results)
        function.op.attributes["function_type"] = ir.TypeAttr.get(type_)
        for i, call in enumerate(function.calls):
            operands = [operand for number, operand in enumerate(call.operands) if number not in dropped]
            with ir.InsertionPoint(call):
                new = func.CallOp(results, function.name, operands, loc=call.location).operation
            for name in {COMMENT, *_MARKS} & set(call.attributes):
                new.attributes[name] = call.attributes[name]
            for old, result in zip(call.results, new.results):
                old.replace_all_uses_with(result)
            call.erase()
            function.calls[i] = new


def _same(given: Sequence[ir.Value]) -> ir.Operation | None:
    """The op that makes a buffer or a constant, if that is what all of these are."""
    owner = given[0].owner
    if isinstance(owner, ir.Block) or owner.name not in (_BUFFER, _CONSTANT):
        return None
    if any(value != given[0] and not _is_equal(value.owner, owner) for value in given[1:]):
        return None
    return owner.operation


def _is_equal(one: ir.Operation | ir.Block, other: ir.Operation) -> bool:
    if isinstance(one, ir.Block) or one.name != other.name or one.results[0].type != other.results[0].type:
        return False
    return all(one.attributes[name] == other.attributes[name] for name in ("name_hint", "offset", "value") if name in other.attributes)


def _hoist_workspaces(kernel: ir.Operation) -> None:
    """Moves what tells where memory is to before the first loop: all stages may need it."""
    block = kernel.regions[0].blocks[0]
    ops = [view.operation for view in block.operations]
    loop = next((op for op in ops if len(op.regions)), ops[-1])

    def move(op: ir.Operation) -> None:
        for operand in op.operands:
            if not isinstance(operand.owner, ir.Block) and loop.is_before_in_block(operand.owner.operation):
                move(operand.owner.operation)
        op.move_before(loop)

    for op in ops[ops.index(loop) :]:
        if op.name == "ascendc.workspace":
            move(op)


def _called(about: str) -> str:
    """A function's name from a comment."""
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[a-z]+", about.lower().partition(".")[0])[:6])


def label_of(value: ir.Value) -> str | None:
    """The name of a value. The results of a branch or of a call have theirs in one, those of a loop are what it carries."""
    name, owner = name_of(value), value.owner
    if isinstance(owner, ir.Block) or len(owner.results) == 1 and owner.name not in ("scf.for", "scf.while"):
        return name
    number = next(i for i, result in enumerate(owner.results) if result == value)
    if owner.name in ("scf.for", "scf.while"):
        return name_of(owner.regions[0].blocks[0].arguments[number + (owner.name == "scf.for")])
    return name.split(",")[number] if name and name.count(",") == len(owner.results) - 1 else None


def _location(value: ir.Value) -> ir.Location:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return value.location
    return named(owner.attributes["name_hint"].value if "name_hint" in owner.attributes else label_of(value), owner.location)


def _all(ops: Sequence[ir.Operation]) -> Iterator[ir.Operation]:
    for op in ops:
        yield op
        for region in op.regions:
            for block in region.blocks:
                yield from _all([view.operation for view in block.operations])


def _top(op: ir.Operation, beside: ir.Operation) -> ir.Operation | None:
    """The op in the block of `beside` that an op is in, or is."""
    block = beside.block
    while op is not None and op.block != block:
        op = op.parent.operation if op.parent is not None and op.parent.name != "builtin.module" else None
    return op


def _with_prologue(nodes: list[_Node], node: _Node) -> list[_Node]:
    """A loop with what loads its first chunk, and with the flags that are set before it for its first turn and waited for
    after its last one. Scalars that only these read come along, others stay in front of them."""
    start = end = nodes.index(node)
    waited = 0
    while nodes[end + 1].op.name == _WAIT:
        end, waited = end + 1, waited + 1
    stretch = nodes[start : end + 1]
    for before in reversed(nodes[:start]):
        if before.op.name in _PROLOGUE or PART_END in before.op.attributes:
            stretch.insert(0, before)
        elif _is_scalar(before.op):
            inside = {each.op for each in stretch}
            users = (_top(use.owner.operation, node.op) for result in before.op.results for use in result.uses)
            if all(user in inside for user in users):
                stretch.insert(0, before)
        elif before.op.name != _CONSTANT:
            break
    return _balanced(stretch, node)


def _without_views(chosen: list[_Node]) -> list[_Node]:
    """Moves parts of buffers that are around the ops to before them: they are what these are given."""
    moved = [node for node in chosen if node.op.name == VIEW and constant_index(node.op.operands[1]) is not None]
    if not moved:
        return chosen
    first = next(node.op for node in chosen if node not in moved and node.op.name != _CONSTANT)
    for node in moved:
        with ir.InsertionPoint(first):
            node.op.operands[1] = node.op.operands[1].owner.clone().results[0]
        node.op.move_before(first)
    return [node for node in chosen if node not in moved]


def _balanced(stretch: list[_Node], node: _Node) -> list[_Node]:
    """The part of a stretch around a loop whose flags are set and waited for in it."""
    start, end, loop = 0, len(stretch), stretch.index(node)
    pending: dict[tuple[str, int], list[int]] = {}
    for i, each in enumerate(stretch):
        if each.op.name not in (_SET, _WAIT):
            continue
        flag = pending.setdefault((each.op.attributes["event"].value, each.op.attributes["event_id"].value), [])
        if each.op.name == _SET:
            flag.append(i)
        elif flag:
            flag.pop()
        elif i < loop:
            start = i + 1
        else:
            end = i
            break
    start = max([start, *(i + 1 for places in pending.values() for i in places)])
    while stretch[start].op.name == _BARRIER:
        start += 1
    return stretch[start:end]


def _is_scalar(op: ir.Operation) -> bool:
    return op.name.startswith("arith.") and op.name != _CONSTANT


def _describe(stretch: _Stretch) -> None:
    """Fills in what a stretch is given, its results, and its key. Every use of a constant from around it is given on its own:
    stretches may differ in constants. Of a buffer that it sees in several parts, which constants tell, it is given the
    whole."""
    numbers: dict[ir.Value, int] = {}
    following = itertools.count()
    key: list = []
    inside = set(stretch.ops)
    first = stretch.ops[0]
    parts: dict[ir.Value, list[ir.Value]] = {}
    is_part = PART_END in stretch.ops[-1].attributes
    constants: set[ir.Value] = set()

    def number(op: ir.Operation, place: int, value: ir.Value) -> int:
        if value in numbers:
            return numbers[value]
        owner = value.owner
        if value in constants:
            key.append(owner.attributes["value"])
        elif not isinstance(owner, ir.Block) and owner.name == _CONSTANT:
            stretch.places.append((op, place, len(stretch.given)))
            stretch.given.append(value)
            key.append(value.type)
            return next(following)
        elif (whole := _whole(value)) is not None and (not is_part or len(parts[whole]) > 1):
            key.append((number(op, place, whole), owner.operands[1].owner.attributes["value"], value.type))
            stretch.views.append(value)
        else:
            stretch.given.append(value)
            key.append(value.type)
        numbers[value] = next(following)
        return numbers[value]

    def look(op: ir.Operation) -> None:
        for operand in op.operands:
            whole = _whole(operand)
            if whole is not None and operand not in (seen := parts.setdefault(whole, [])):
                seen.append(operand)

    def visit(op: ir.Operation, top: bool) -> None:
        if op.name == _BARRIER:
            return
        if op.name == _CONSTANT:
            constants.add(op.results[0])
            return
        key.append(op.name)
        for name in op.attributes:
            if name not in (COMMENT, *_MARKS) or name == COMMENT and not top:
                key.append((name, op.attributes[name]))
        key.append(tuple(number(op, place, operand) for place, operand in enumerate(op.operands)))
        for region in op.regions:
            for block in region.blocks:
                key.append("{")
                for argument in block.arguments:
                    numbers[argument] = next(following)
                for view in block.operations:
                    visit(view.operation, False)
                key.append("}")
        for result in op.results:
            numbers[result] = next(following)
            key.append(result.type)

    if is_part:
        for op in stretch.ops:
            look(op)
    for op in stretch.ops:
        visit(op, True)
        for result in op.results if op.name != _CONSTANT else ():
            if any(_top(use.owner.operation, first) not in inside for use in result.uses):
                stretch.results.append(result)
                key.append(("result", numbers[result]))
    stretch.key = tuple(key)


def _add_barriers(ours: list[ir.Operation], theirs: list[ir.Operation]) -> None:
    """Adds to ops the barriers that others, which are like them, have and they have not."""
    place = 0
    ours, theirs = ([op for op in ops if op.name != _CONSTANT] for ops in (ours, theirs))
    for other in theirs:
        while ours[place].name == _BARRIER and other.name != _BARRIER:
            place += 1
        if other.name == _BARRIER and ours[place].name != _BARRIER:
            with ir.InsertionPoint(ours[place]):
                other.clone()
        else:
            place += 1


def _whole(value: ir.Value) -> ir.Value | None:
    """The buffer that a value is a part of, from a constant place on."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != VIEW or constant_index(owner.operands[1]) is None:
        return None
    return owner.operands[0]
