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
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import func

from .accesses import VIEW, root_of
from .builder import COMMENT, PART, PART_END, STAGE, STAGE_END, name_of, named
from .lower_to_tile import KERNEL
from .registry import option, register_pass
from .stretches import (
    BUFFER, CONSTANT, MARKS, Node, Stretch, add_barriers, all_ops, describe, lines_of, parts_of, shape_of, shapes_of,
    with_prologue, without_views,
)  # fmt: skip

MEMBER, STAGE_OF, RESULTS = "ascend.member", "ascend.stage_of", "ascend.results"
_CALL = "func.call"
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
            root = Node(kernel)
            if root.size < self.kernel:
                continue
            outliner = _Outliner(root, self.stage)
            with module.location:
                outliner.run()
            if outliner.functions:
                calls = sum(len(function.calls) for function in outliner.functions)
                remarks.add(
                    kernel, "passed", f"{len(outliner.functions)} functions for its stages, called at {calls} places"
                )


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
        for function in reversed(self.functions):
            if len(function.calls) == 1 and function.size < self.least:
                self.undo(function)
        self.name_functions()
        for function in reversed(self.functions):  # callers before what they call
            self.settle(function)

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
                self.outline(nodes, part, name, part[-1].op.attributes[PART_END].value)
        stages = [node for node in nodes if node.blocks and COMMENT in node.op.attributes]
        if nodes is not self.root.blocks[0] or len(stages) > 1:  # one loop is what a kernel is
            for node in stages:
                self.stage(nodes, node)
        self.stretches(nodes)

    def stage(self, nodes: list[Node], node: Node) -> None:
        op, size = node.op, node.size
        about = op.attributes[COMMENT].value
        names = op.attributes[STAGE].value.split(",") if STAGE in op.attributes else [_called(about)]
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
            if STAGE in node.op.attributes:
                found = []
            if found is None:
                continue
            found.append(node)
            if STAGE_END in node.op.attributes:
                if len(found) > 1 and lines_of(found) >= self.least:
                    attributes = found[0].op.attributes
                    self.outline(nodes, found, attributes[STAGE].value.split(",")[0], attributes[COMMENT].value)
                found = None

    # -- a function and its calls -------------------------------------------------------------------------------

    def outline(self, nodes: list[Node], chosen: list[Node], name: str, about: str, is_alone: bool = False) -> None:
        """Puts a call in the place of some ops of a block, to a function that is like them; `is_alone` where it is known
        that no others are."""
        if PART_END in chosen[-1].op.attributes:
            chosen = without_views(chosen)
        ops = [node.op for node in chosen]
        stretch = Stretch(ops)
        describe(stretch, is_alone)
        names = [label_of(value) or "result" for value in stretch.results]
        location = named(None, ops[0].location)
        function = self.known.get(stretch.key)
        is_new = function is None
        if is_new:
            function = self.known[stretch.key] = self.function(stretch, name, about, names, location, lines_of(chosen))
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
        nodes[nodes.index(chosen[-1])] = Node(call)
        for node in chosen[:-1]:
            nodes.remove(node)
        for outside, new in zip(stretch.results.values(), call.results):
            for use in outside:
                use.owner.operands[use.operand_number] = new
        if is_new:
            self.fill(function, stretch)
        else:
            own = [view.operation for view in function.block.operations][2 * len(stretch.views) + len(stretch.copied) :]
            add_barriers(list(all_ops(own)), list(all_ops(ops)))
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
        gone = [op for op in all_ops(ops) if op.name == _CALL]
        names = {op.attributes["callee"].value for op in gone}
        for function in self.functions if names else ():
            if function.name in names:
                function.calls = [call for call in function.calls if not any(call == op for op in gone)]

    def function(
        self, stretch: Stretch, name: str, about: str, names: list[str], location: ir.Location, size: int
    ) -> _Function:
        types = [value.type for value in stretch.given], [value.type for value in stretch.results]
        with ir.InsertionPoint.after(self.functions[-1].op if self.functions else self.kernel):
            op = func.FuncOp(f"{self.name}.{len(self.known)}", types, visibility="private", loc=location).operation
        op.attributes[COMMENT] = ir.StringAttr.get(about)
        op.attributes[STAGE_OF] = ir.FlatSymbolRefAttr.get(self.name)
        op.attributes[RESULTS] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
        op.regions[0].blocks.append(*types[0], arg_locs=list(map(_location, stretch.given)))
        return _Function(op, size, name)

    def fill(self, function: _Function, stretch: Stretch) -> None:
        block = function.block
        for op in stretch.ops:
            block.append(op)
        arguments = dict(zip(stretch.given, block.arguments))
        for op, place, number in stretch.places:
            op.operands[place] = block.arguments[number]
        with ir.InsertionPoint.at_block_begin(block):
            for value in stretch.copied:
                arguments[value] = value.owner.clone().results[0]
            for view in stretch.views:
                offset = view.owner.operands[1].owner.clone()
                arguments[view] = view.owner.clone().results[0]
                arguments[view].owner.operands[0] = arguments[view.owner.operands[0]]
                arguments[view].owner.operands[1] = offset.results[0]
        for op, place, value in stretch.uses:
            op.operands[place] = arguments[value]
        for name in (COMMENT, STAGE, PART):
            for op in stretch.ops:
                if name in op.attributes and (
                    name != COMMENT or op.attributes[COMMENT] == function.op.attributes[COMMENT]
                ):
                    del op.attributes[name]
        with ir.InsertionPoint(block):
            func.ReturnOp(list(stretch.results), loc=function.op.location)

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
        start = block.operations[0]
        dropped, roots = [], []
        copies: dict[tuple, ir.Value] = {}  # of constants, each once
        for number, argument in enumerate(block.arguments):
            given = [call.operands[number] for call in function.calls]
            if not any(True for _ in argument.uses):
                dropped.append(number)
            elif same := _same(given):
                key = same.attributes.get("value"), label_of(same.results[0])
                copy = copies.get(key) if same.name == CONSTANT else None
                if copy is None:
                    with ir.InsertionPoint(start):
                        copy = copies[key] = same.clone().results[0]
                argument.replace_all_uses_with(copy)
                dropped.append(number)
            else:
                roots.append(self.member(given))
        if dropped:
            self.without(function, dropped)
        function.roots = {number: root for number, root in enumerate(roots) if root is not None}
        attributes = [ir.DictAttr.get({} if root is None else {MEMBER: ir.UnitAttr.get()}) for root in roots]
        function.op.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)

    def member(self, given: Sequence[ir.Value]) -> ir.Value | None:
        """The one value that all of these are, which the kernel has at its top or in its loop over rows; marks it
        there."""
        root, *others = [self.root_of_argument(value) for value in given]
        if root is None or any(other is None or other != root for other in others):
            return None
        owner = root.owner
        if isinstance(owner, ir.Block):
            return root
        around = owner.operation.parent
        if around != self.kernel and (
            around.parent is None or around.parent.operation != self.kernel or around.name != "scf.for"
        ):
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
            for name in {COMMENT, *MARKS} & set(call.attributes):
                new.attributes[name] = call.attributes[name]
            for old, result in zip(call.results, new.results):
                old.replace_all_uses_with(result)
            call.erase()
            function.calls[i] = new


def _same(given: Sequence[ir.Value]) -> ir.Operation | None:
    """The op that makes a buffer or a constant, if that is what all of these are."""
    owner = given[0].owner
    if isinstance(owner, ir.Block) or owner.name not in (BUFFER, CONSTANT):
        return None
    if any(value != given[0] and not _is_equal(value.owner, owner) for value in given[1:]):
        return None
    return owner.operation


def _is_equal(one: ir.Operation | ir.Block, other: ir.Operation) -> bool:
    if isinstance(one, ir.Block) or one.name != other.name or one.results[0].type != other.results[0].type:
        return False
    return all(one.attributes.get(name) == other.attributes.get(name) for name in _TELLING)


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
    """The name of a value. The results of a branch or of a call have theirs in one, those of a loop are what it
    carries."""
    name, owner = name_of(value), value.owner
    if isinstance(owner, ir.Block) or len(owner.results) == 1 and owner.name not in ("scf.for", "scf.while"):
        return name
    number = next(i for i, result in enumerate(owner.results) if result == value)
    if owner.name in ("scf.for", "scf.while"):
        return name_of(owner.regions[0].blocks[0].arguments[number + (owner.name == "scf.for")])
    return name.split(",")[number] if name and name.count(",") == len(owner.results) - 1 else None


def _location(value: ir.Value) -> ir.Location:
    value = root_of(value)
    owner = value.owner
    if isinstance(owner, ir.Block):
        return value.location
    if owner.name == CONSTANT:
        return owner.location
    return named(
        owner.attributes["name_hint"].value if "name_hint" in owner.attributes else label_of(value), owner.location
    )
