"""Gives the stages of a long kernel functions of their own, and one function to stages that are alike.

A stage is a loop or a branch with a comment (`builder.Stage`), together with what loads its first chunk and with the
flags around it; a part is a short run of instructions that lowerings say again and again, marked by `builder.PART` on
its first op and `builder.PART_END` on its last one. A stage becomes a private function where it is long, or where there
is another one like it; so does a part that occurs more than once. Two are alike if they are the same ops with the same
attributes on operands that correspond: they share a function, whatever buffers, numbers and constants they are given. A
barrier that one of them needs, all of them have.

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
    func.func private @kernel.CountAbove(%n: index) -> index attributes {ascend.stage_of = @kernel, ...} {
      ...
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import func

from .accesses import VIEW
from .builder import COMMENT, PART, PART_END, STAGE, STAGE_END, name_of, named
from .lower_to_tile import KERNEL
from .registry import option, register_pass
from .stretches import (
    BUFFER, CALL, CONSTANT, Call, Node, Value, add_barriers, all_nodes, label_of, lines_of, ops_of, parts_of, shape_of,
    shapes_of, with_prologue, without_views,
)  # fmt: skip

MEMBER, STAGE_OF, RESULTS = "ascend.member", "ascend.stage_of", "ascend.results"
_TELLING = ("name_hint", "offset", "value")  # attributes of buffers and constants that are one
_ALIKE = 6  # lines of what is worth a function where there are two


@register_pass("outline-stages")
@dataclass(frozen=True)
class OutlineStages:
    kernel: int = option(240, "lines of text that a kernel must have")
    stage: int = option(20, "lines of text that a stage must have, if there is no other one like it")

    def run(self, module: ir.Operation, remarks) -> None:
        kernels = [op.operation for op in module.regions[0].blocks[0].operations if KERNEL in op.operation.attributes]
        for kernel in kernels:
            _hoist_workspaces(kernel)
            root = Node(kernel, None, {})
            outliner = _Outliner(root, self.stage)
            if root.size >= self.kernel:
                with module.location:
                    outliner.run()
            root.release()
            if outliner.functions:
                calls = sum(len(function.calls) for function in outliner.functions)
                remarks.add(
                    kernel, "passed", f"{len(outliner.functions)} functions for its stages, called at {calls} places"
                )


@dataclass(eq=False)
class _Function:
    """What calls that are alike have in common; `body` is the first of them, whose ops the function gets."""

    body: Call
    stage: str  # what it is called, but for a number
    about: str
    size: int
    calls: list[Call] = field(default_factory=list)
    agreed: list[Value | None] = field(default_factory=list)  # for each operand of a call, what it is at all of them
    kept: dict[int, int] = field(default_factory=dict)  # of the operands, those that stay, with their new numbers
    op: ir.Operation | None = None

    def has_ops_of(self, call: Call) -> bool:
        """Whether the ops of a call have become its own."""
        return self.op is not None and self.body is call


class _Outliner:
    """Outlines the stages of one kernel, inner ones first."""

    def __init__(self, root: Node, least: int):
        self.root, self.kernel, self.least = root, root.op, least
        self.name = self.kernel.attributes["sym_name"].value
        self.alike: Counter[int] = Counter()
        self.branches: dict[int, int] = {}  # the shapes of the blocks of branches, by their lists of nodes
        self.known: dict[tuple, _Function] = {}
        self.functions: list[_Function] = []

    def run(self) -> None:
        self.survey(self.root)
        self.block(self.root.blocks[0])
        for function in list(self.functions):
            if len(function.calls) == 1 and function.size < self.least:
                self.undo(function)
        for function in reversed(self.functions):  # callers before what they call
            self.settle(function)
        self.write()

    def survey(self, node: Node) -> None:
        """Counts stages, branches and parts by their shapes."""
        for nodes in node.blocks:
            self.alike.update(map(shape_of, parts_of(nodes)))
            if node.name == "scf.if":
                self.branches[id(nodes)] = hash(shapes_of(nodes[:-1]))
                self.alike[self.branches[id(nodes)]] += 1
            for inner in nodes:
                if inner.blocks:
                    self.alike[inner.shape] += 1
                    self.survey(inner)

    # -- what is outlined ---------------------------------------------------------------------------------------

    def block(self, nodes: list[Node]) -> None:
        for node in nodes:
            for inner in node.blocks:
                self.block(inner)
            if node.blocks:
                node.measure()
        for name, part in list(parts_of(nodes)):
            if self.alike[shape_of((name, part))] > 1:
                self.outline(nodes, part, name, part[-1].attributes[PART_END].value)
        stages = [node for node in nodes if node.blocks and COMMENT in node.attributes]
        if nodes is not self.root.blocks[0] or len(stages) > 1:  # one loop is what a kernel is
            for node in stages:
                self.stage(nodes, node)
        self.stretches(nodes)

    def stage(self, nodes: list[Node], node: Node) -> None:
        attributes, size = node.attributes, node.size
        about = attributes[COMMENT].value
        names = attributes[STAGE].value.split(",") if STAGE in attributes else [_called(about)]
        names = [*names, f"{names[0]}Otherwise"][:2]
        is_alone = self.alike[node.shape] < 2
        if not is_alone and size >= _ALIKE or node.name != "scf.if" and size >= self.least:
            self.outline(nodes, with_prologue(nodes, node), names[0], about, is_alone)
        elif node.name == "scf.if":
            for inner, called in zip(node.blocks, names):
                if lines_of(inner) >= self.least:
                    chosen = [each for each in inner[:-1] if each.name != CONSTANT]
                    self.outline(inner, chosen, called, about, self.alike[self.branches[id(inner)]] < 2)
            node.measure()

    def stretches(self, nodes: list[Node]) -> None:
        """Outlines stages that are no single op."""
        found: list[Node] | None = None
        for node in list(nodes):
            if STAGE in node.attributes:
                found = []
            if found is None:
                continue
            found.append(node)
            if STAGE_END in node.attributes:
                if len(found) > 1 and lines_of(found) >= self.least:
                    attributes = found[0].attributes
                    self.outline(nodes, found, attributes[STAGE].value.split(",")[0], attributes[COMMENT].value)
                found = None

    # -- a function and its calls -------------------------------------------------------------------------------

    def outline(self, nodes: list[Node], chosen: list[Node], name: str, about: str, is_alone: bool = False) -> None:
        """Puts a call in the place of some ops of a block, to a function that is like them; `is_alone` where it is
        known that no others are."""
        if PART_END in chosen[-1].attributes:
            chosen = without_views(nodes, chosen)
        call = Call(chosen)
        key = call.describe(is_alone)
        function = self.known.get(key) if key is not None else None
        if function is None:
            function = _Function(call, name, about, lines_of(chosen))
            self.functions.append(function)
            if key is not None:
                self.known[key] = function
        else:
            add_barriers(function.body.nodes, chosen)
            self.forget(chosen)
            if PART_END not in call.attributes and about != function.about:
                call.attributes[COMMENT] = ir.StringAttr.get(about)
        call.function = function
        function.calls.append(call)
        nodes[nodes.index(chosen[-1])] = call
        for node in chosen[:-1]:
            nodes.remove(node)

    def forget(self, nodes: list[Node]) -> None:
        """Strikes off the calls in ops that a function has already."""
        for call in _calls(nodes):
            call.function.calls.remove(call)

    def undo(self, function: _Function) -> None:
        """Leaves ops where they are that have turned out to be unlike any others."""
        (call,) = function.calls
        self.functions.remove(function)
        if call is not function.body:
            add_barriers(call.nodes, function.body.nodes)
            for ours, theirs in zip(_calls(call.nodes), _calls(function.body.nodes)):
                ours.function.calls[ours.function.calls.index(theirs)] = ours
        around = call.around
        blocks = [around.nodes] if around.name == CALL else around.blocks
        nodes = next(nodes for nodes in blocks if call in nodes)
        place = nodes.index(call)
        nodes[place : place + 1] = call.nodes
        for node in call.nodes:
            node.around = around
            for result in node.results:
                if result.owner is call:
                    result.owner = node
        if call.call is not None:
            call.call.take_over(call)
        call.nodes = []  # they are those of the block again
        call.release()

    # -- arguments ----------------------------------------------------------------------------------------------

    def settle(self, function: _Function) -> None:
        """Finds the arguments that are the same in all calls."""
        for number in range(len(function.body.operands)):
            agreed = self.agreed([self.origin(call, number) for call in function.calls])
            function.agreed.append(agreed)
            if agreed is None or not agreed.is_of(BUFFER, CONSTANT):
                function.kept[number] = len(function.kept)

    def origin(self, node: Node, place: int) -> Value | None:
        """What an operand is, wherever its function gets it from; None where that differs."""
        value, call = node.operands[place], node.call
        source = call.sources.get((node, place)) if call is not None else None
        if isinstance(source, int):
            return call.function.agreed[source]
        return value if value.owner is not None or value in self.root.arguments else None

    def agreed(self, given: list[Value | None]) -> Value | None:
        """The buffer or the constant that all of these are, or the one value that the kernel has at its top or in its
        loop over rows, which is marked there."""
        value, *others = given
        if value is None or None in others:
            return None
        if value.is_of(BUFFER, CONSTANT):
            return value if all(other is value or _is_equal(other, value) for other in others) else None
        if any(other is not value for other in others):
            return None
        owner = value.owner
        if owner is None:
            return value
        around = owner.around
        if around is not self.root and (around.name != "scf.for" or around.around is not self.root):
            return None
        if len(owner.results) > 1 or owner.blocks or owner.name in (CALL, VIEW):
            return None
        owner.op.attributes[MEMBER] = ir.UnitAttr.get()
        return value

    # -- the IR -------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Moves what the functions have into them, inner ones first, and puts calls in its place."""
        numbers: Counter[str] = Counter()
        before = self.kernel
        for function in self.functions:
            numbers[function.stage] += 1
            number = numbers[function.stage]
            symbol = f"{self.name}.{function.stage}{number if number > 1 else ''}"
            with ir.InsertionPoint.after(before):
                before = function.op = self.function(function, symbol)
            self.fill(function)
        self.sweep()

    def function(self, function: _Function, symbol: str) -> ir.Operation:
        body = function.body
        given = [body.operands[number] for number in function.kept]
        types = [value.handle.type for value in given], [value.handle.type for value in body.results]
        op = func.FuncOp(symbol, types, visibility="private", loc=body.location).operation
        op.attributes[COMMENT] = ir.StringAttr.get(function.about)
        op.attributes[STAGE_OF] = ir.FlatSymbolRefAttr.get(self.name)
        op.attributes[RESULTS] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in body.names])
        members = [{} if function.agreed[number] is None else {MEMBER: ir.UnitAttr.get()} for number in function.kept]
        op.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in members])
        op.regions[0].blocks.append(*types[0], arg_locs=list(map(_location, given)))
        return op

    def fill(self, function: _Function) -> None:
        """Writes the calls of a function, and gives it the ops of one of them."""
        body, block = function.body, function.op.regions[0].blocks[0]
        results = [value.handle for value in body.results]
        ops = list(ops_of(body.nodes))
        for call in function.calls:
            self.write_call(call, ops if call is body else list(ops_of(call.nodes)))
        for op in ops:
            block.append(op)
            for name in (COMMENT, STAGE, PART):
                if name in op.attributes and (name != COMMENT or op.attributes[COMMENT].value == function.about):
                    del op.attributes[name]
        for node, place, result in body.inside:
            _put(node, place, results[body.results.index(result)])
        own = _Own(function)
        with ir.InsertionPoint(ops[0]):
            for (node, place), source in body.sources.items():
                if node.name != CALL or place in node.function.kept:
                    _put(node, place, own.of(source))
        with ir.InsertionPoint(block):
            func.ReturnOp(results, loc=body.location)

    def write_call(self, call: Call, ops: list[ir.Operation]) -> None:
        function = call.function
        types = [value.handle.type for value in call.results]
        given = [call.operands[number].handle for number in function.kept]
        location = named(",".join(call.names) or None, call.location)
        with ir.InsertionPoint(ops[-1]):
            call.op = func.CallOp(types, function.op.attributes["sym_name"].value, given, loc=location).operation
        if COMMENT in call.attributes:
            call.op.attributes[COMMENT] = call.attributes[COMMENT]
        for value, result in zip(call.results, call.op.results):
            value.handle.replace_all_uses_with(result)
            value.handle = result
        for op in reversed(ops) if call is not function.body else ():
            op.erase()

    def sweep(self) -> None:
        """Erases buffers, parts of them and constants that only the functions use, which have their own. A constant
        with a name is one of the file's."""
        views = [view.owner for function in self.functions for call in function.calls for view in call.views]
        still_there = [view for view in views if view.call is None or view.call.function.has_ops_of(view.call)]
        for node in [*still_there, *self.root.blocks[0]]:
            _erase_unused(node)


class _Own:
    """The buffers and constants that a function has itself, which it gets as they are asked for, at its start."""

    def __init__(self, function: _Function):
        self.function = function
        arguments = function.op.regions[0].blocks[0].arguments
        self.values: dict[int | Value, ir.Value] = dict(zip(function.kept, arguments))
        self.constants: dict[tuple, ir.Value] = {}

    def of(self, source: int | Value) -> ir.Value:
        """What a source of its body is in the function."""
        found = self.values.get(source)
        if found is None:
            found = self.values[source] = self.make(source)
        return found

    def make(self, source: int | Value) -> ir.Value:
        views = self.function.body.views
        if isinstance(source, int):
            return self.copy(self.function.agreed[source])
        if source not in views:
            return self.copy(source)
        buffer, offset = self.of(views[source]), self.copy(source.owner.operands[1])
        view = self.copy(source)
        view.owner.operands[0], view.owner.operands[1] = buffer, offset
        return view

    def copy(self, value: Value) -> ir.Value:
        if value.constant is None:
            return value.owner.op.clone().results[0]
        key = (value.constant, name_of(value.handle))
        if key not in self.constants:
            self.constants[key] = value.owner.op.clone().results[0]
        return self.constants[key]


def _put(node: Node, place: int, value: ir.Value) -> None:
    """Makes a value an operand in the IR."""
    node.op.operands[node.function.kept[place] if node.name == CALL else place] = value


def _erase_unused(node: Node) -> None:
    if node.op is None or node.name not in (VIEW, BUFFER, CONSTANT) or any(True for _ in node.op.results[0].uses):
        return
    if node.name == CONSTANT and name_of(node.op.results[0]) is not None:
        return
    node.op.erase()
    node.op = None
    for operand in node.operands:
        if operand.owner is not None:
            _erase_unused(operand.owner)


def _calls(nodes: list[Node]) -> list[Call]:
    return [node for node in all_nodes(nodes) if node.name == CALL]


def _is_equal(one: Value, other: Value) -> bool:
    if one.owner is None or one.owner.name != other.owner.name or one.handle.type != other.handle.type:
        return False
    return all(one.owner.attributes.get(name) == other.owner.attributes.get(name) for name in _TELLING)


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


def _location(value: Value) -> ir.Location:
    while value.is_of(VIEW):
        value = value.owner.operands[0]
    if value.owner is None:
        return value.handle.location
    location = value.handle.owner.location
    if value.is_of(CONSTANT):
        return location
    hint = value.owner.attributes.get("name_hint")
    return named(hint.value if hint is not None else value.label or label_of(value.handle), location)
