"""Stretches of a kernel's ops that can be functions (`outline-stages`): where they begin and end, which are alike.

The kernel is read once, into nodes and values. On these, stretches are put together as calls, inner ones first; the IR
changes when it is known which of them stay and what they are given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from mlir import ir

from .accesses import VIEW
from .builder import COMMENT, PART, PART_END, STAGE, STAGE_END, name_of, named

_MARKS = (STAGE, STAGE_END, PART, PART_END)
BUFFER, CONSTANT, CALL = "ascendc.local_tensor", "arith.constant", "func.call"
_SILENT = (BUFFER, CONSTANT, VIEW, "scf.yield", "scf.condition")
_BARRIER = "ascendc.pipe_barrier"
_SET, _WAIT = "ascendc.set_flag", "ascendc.wait_flag"
_PROLOGUE = (_SET, _WAIT, "ascendc.copy_in", "ascendc.copy_in_rows", _BARRIER, VIEW)


class Value:
    """A value of the kernel; `owner` is None for an argument of a block, `label` the name of a call's result."""

    __slots__ = ("handle", "owner", "users", "label")

    def __init__(self, handle: ir.Value, owner: Node | None):
        self.handle, self.owner, self.label = handle, owner, None
        self.users: set[Node] = set()

    def is_of(self, *names: str) -> bool:
        return self.owner is not None and self.owner.name in names

    @property
    def constant(self) -> ir.Attribute | None:
        """What it is, if that is known."""
        return self.owner.attributes["value"] if self.is_of(CONSTANT) else None


class Node:
    """An op, with what is in its blocks; `size` is how many lines of text it takes, `shape` what it has in common with
    ops like it."""

    __slots__ = ("op", "name", "around", "attributes", "operands", "results", "blocks", "arguments", "size", "shape")

    def __init__(self, op: ir.Operation, around: Node | None, values: dict[ir.Value, Value]):
        self.op, self.name, self.around = op, op.name, around
        self.attributes: dict[str, ir.Attribute] = dict(op.attributes.items())
        self.operands: Sequence[Value] = [values[operand] for operand in op.operands]
        for operand in self.operands:
            operand.users.add(self)
        self.blocks: Sequence[list[Node]] = ()
        self.arguments: Sequence[Value] = ()  # of all blocks
        self.size, self.shape = int(self.name not in _SILENT), hash(self.name)
        if len(op.regions):
            blocks = [block for region in op.regions for block in region.blocks]
            self.arguments = [Value(argument, None) for block in blocks for argument in block.arguments]
            values.update((argument.handle, argument) for argument in self.arguments)
            self.blocks = [[Node(view.operation, self, values) for view in block.operations] for block in blocks]
            self.measure()
            self.shape = hash((self.name, *map(shapes_of, self.blocks)))
        self.results: Sequence[Value] = [Value(result, self) for result in op.results]
        for result in self.results:
            values[result.handle] = result

    def release(self) -> None:
        """Takes apart what refers to each other when it has served, which would be left to a collection else."""
        for block in self.blocks:
            for node in block:
                node.release()
        self.around, self.operands, self.results, self.blocks = None, (), (), ()

    def measure(self) -> None:
        """Anew, where something in its blocks has become a call."""
        self.size = 1 + len(self.blocks) + sum(map(lines_of, self.blocks))

    @property
    def location(self) -> ir.Location:
        return named(None, self.op.location)

    @property
    def call(self) -> Call | None:
        """The innermost call that it is in."""
        node = self.around
        while node is not None and node.name != CALL:
            node = node.around
        return node

    def beside(self, other: Node) -> Node:
        """The node in the block of `other` that this one is in, or is."""
        node = self
        while node.around is not other.around:
            node = node.around
        return node


def shapes_of(nodes: list[Node]) -> tuple[int, ...]:
    return tuple(node.shape for node in nodes if node.name not in (_BARRIER, CONSTANT))


def lines_of(nodes: list[Node]) -> int:
    return sum(node.size for node in nodes)


def parts_of(nodes: list[Node]) -> Iterator[tuple[str, list[Node]]]:
    """The parts among the ops of a block, with their names."""
    found = None
    for node in nodes:
        if PART in node.attributes:
            found = node.attributes[PART].value, []
        if found is not None:
            found[1].append(node)
            if PART_END in node.attributes:
                yield found
                found = None


def shape_of(part: tuple[str, list[Node]]) -> int:
    return hash((part[0], shapes_of(part[1])))


class Call(Node):
    """Ops in a row, of one block, as the call that may come in their place. Its operands are what it is given, its
    results those of their values that are read around it.

    What the ops use from around them is in `sources`, by op and operand: the number of an operand of the call, or a
    value that the function has itself: a buffer, a constant, or a part of a buffer (`views`, with what the whole is).
    Every use of a nameless constant is given on its own: stretches may differ in constants. One that is known to be
    alone, unlike any others, has its buffers and constants itself. Of a buffer that it sees in several parts, which
    constants tell, it is given the whole."""

    __slots__ = ("nodes", "function", "sources", "views", "inside", "names", "place")

    def __init__(self, nodes: list[Node]):
        self.op, self.name, self.around = None, CALL, nodes[0].around
        self.nodes, self.place, self.function = nodes, nodes[0].location, None
        self.blocks, self.arguments, self.size, self.shape = [], [], 1, 0
        self.operands, self.results = [], []
        self.sources: dict[tuple[Node, int], int | Value] = {}
        self.views: dict[Value, int | Value] = {}
        self.inside: list[tuple[Node, int, Value]] = []  # where its ops use its results
        self.attributes = {}
        if PART_END in nodes[-1].attributes:
            said = [(nodes[0], COMMENT), (nodes[0], STAGE), (nodes[-1], STAGE_END), (nodes[-1], PART_END)]
            self.attributes = {name: node.attributes[name] for node, name in said if name in node.attributes}

    def describe(self, is_alone: bool) -> tuple | None:
        """Finds what it is given and its results. What it returns is equal for calls that are alike; None for one that
        is known to be alone."""
        description = _Description(self, is_alone)
        for value in self.operands:
            value.users.add(self)
        self._find_results()
        for node in self.nodes:
            node.around = self
        for result, name in zip(self.results, self.names):
            result.owner, result.label = self, name
        return None if is_alone else (*description.key, *(description.numbers[result] for result in self.results))

    @property
    def location(self) -> ir.Location:
        return self.place

    def release(self) -> None:
        for node in self.nodes:
            node.release()
        self.nodes, self.function, self.inside, self.sources, self.views = (), None, (), {}, {}
        super().release()

    def give(self, value: Value) -> int:
        self.operands.append(value)
        return len(self.operands) - 1

    def take_over(self, call: Call) -> None:
        """Has the ops of a call in its place."""
        given = {place: source for (node, place), source in self.sources.items() if node is call}
        for view, whole in call.views.items():  # a part of a part comes after it
            if whole in given:
                self.views.setdefault(view, given[whole])
                given[view] = view
        theirs = {at: given[source] for at, source in call.sources.items() if source in given}
        place = [*(node is call for node, _ in self.sources), True].index(True)
        ours = [(at, source) for at, source in self.sources.items() if at[0] is not call]
        self.sources = dict([*ours[:place], *theirs.items(), *ours[place:]])
        for node, place, result in [use for use in self.inside if use[0] is call]:
            self.inside += [(*at, result) for at, source in call.sources.items() if source == place]
        self.inside = [use for use in (*self.inside, *call.inside) if use[0] is not call and use[2] in self.results]

    def _find_results(self) -> None:
        inside = set(self.nodes)
        for result in (result for node in self.nodes if node.name != CONSTANT for result in node.results):
            outside = {user for user in result.users if user not in inside and user.beside(self) not in inside}
            if not outside:
                continue
            for user in result.users - outside:
                self.inside += [(user, place, result) for place, value in enumerate(user.operands) if value is result]
            result.users = outside
            self.results.append(result)
        self.names = [value.label or label_of(value.handle) or "result" for value in self.results]


class _Description:
    """Fills in what a call is given. The key is equal for calls that are alike, once it says which results these
    have."""

    def __init__(self, call: Call, is_alone: bool):
        self.call, self.is_alone = call, is_alone
        self.numbers: dict[Value, int] = {}
        self.taken: dict[Value, int | Value] = {}  # of what is from around
        self.constants: set[Value] = set()  # of its own
        self.following = itertools.count()
        self.key: list = []
        self.is_part = PART_END in call.nodes[-1].attributes
        self.parts: dict[Value, set[Value]] = {}
        for operand in (operand for node in call.nodes for operand in node.operands) if self.is_part else ():
            whole = whole_of(operand)
            if whole is not None:
                self.parts.setdefault(whole, set()).add(operand)
        for node in call.nodes:
            self.visit(node, True)

    def visit(self, node: Node, is_top: bool) -> None:
        if node.name == _BARRIER:
            return
        if node.name == CONSTANT:
            self.constants.add(node.results[0])
            return
        key, numbers, following = self.key, self.numbers, self.following
        used = self.use(node)
        if not self.is_alone:
            key.extend((node.name, used))
            for name, attribute in node.attributes.items():
                if name not in _MARKS and not (is_top and name == COMMENT):
                    key.append((name, attribute))
            if node.name == CALL:
                key.append(node.function)
        for argument in node.arguments:
            numbers[argument] = next(following)
        for block in node.blocks:
            key.append("{")
            for inner in block:
                self.visit(inner, False)
            key.append("}")
        for result in node.results:
            numbers[result] = next(following)
            if not self.is_alone:
                key.append(result.handle.type)

    def use(self, node: Node) -> tuple[int, ...]:
        """The operands of a node, by number."""
        used, numbers, sources = [], self.numbers, self.call.sources
        for place, value in enumerate(node.operands):
            if value not in numbers:
                if value in self.constants:
                    numbers[value] = next(self.following)
                    self.key.append(value.constant)
                elif not self.is_alone and value.is_of(CONSTANT) and name_of(value.handle) is None:
                    sources[node, place] = self.call.give(value)
                    self.key.append(value.handle.type)
                    used.append(next(self.following))
                    continue
                else:
                    self.take(value)
            used.append(numbers[value])
            if value in self.taken:
                sources[node, place] = self.taken[value]
                value.users.discard(node)
        return tuple(used)

    def take(self, value: Value) -> None:
        """Sees a value from around for the first time."""
        whole = whole_of(value)
        if self.is_alone and value.is_of(BUFFER, CONSTANT):
            self.taken[value] = value
        elif whole is not None and (not self.is_part or len(self.parts[whole]) > 1):
            if whole not in self.numbers:
                self.take(whole)
            self.call.views[value] = self.taken[whole]
            self.taken[value] = value
            self.key.append((self.numbers[whole], value.owner.operands[1].constant, value.handle.type))
        else:
            self.taken[value] = self.call.give(value)
            self.key.append(value.handle.type)
        self.numbers[value] = next(self.following)


def whole_of(value: Value) -> Value | None:
    """The buffer that a value is a part of, from a constant place on."""
    if not value.is_of(VIEW) or value.owner.operands[1].constant is None:
        return None
    return value.owner.operands[0]


def with_prologue(nodes: list[Node], node: Node) -> list[Node]:
    """A loop with what loads its first chunk, and with the flags that are set before it for its first turn and waited
    for after its last one. Scalars that only these read come along, others stay in front of them."""
    start = end = nodes.index(node)
    while nodes[end + 1].name == _WAIT:
        end += 1
    stretch = nodes[start : end + 1]
    inside = set(stretch)
    for before in reversed(nodes[:start]):
        if before.name not in _PROLOGUE and PART_END not in before.attributes:
            if before.name == CONSTANT:
                continue
            if not before.name.startswith("arith."):
                break
            if any(user.beside(node) not in inside for result in before.results for user in result.users):
                continue
        stretch.insert(0, before)
        inside.add(before)
    return _balanced(stretch, node)


def without_views(nodes: list[Node], chosen: list[Node]) -> list[Node]:
    """Moves parts of buffers that are around the ops to before them: they are what these are given."""
    moved = [node for node in chosen if node.results and whole_of(node.results[0]) is not None]
    if not moved:
        return chosen
    rest = [node for node in chosen if node not in moved]
    first = next(node for node in rest if node.name != CONSTANT)
    before = next(ops_of([first]))
    for node in moved:
        offset = node.operands[1]
        if offset.owner in rest:  # it needs one of its own
            offset.users.discard(node)
            with ir.InsertionPoint(before):
                node.operands[1] = Node(offset.owner.op.clone(), node.around, {}).results[0]
            node.op.operands[1] = node.operands[1].handle
            nodes.insert(nodes.index(first), node.operands[1].owner)
        node.op.move_before(before)
        nodes.remove(node)
        nodes.insert(nodes.index(first), node)
    return rest


def _balanced(stretch: list[Node], node: Node) -> list[Node]:
    """The part of a stretch around a loop whose flags are set and waited for in it."""
    start, end, loop = 0, len(stretch), stretch.index(node)
    pending: dict[tuple[str, int], list[int]] = {}
    for i, each in enumerate(stretch):
        if each.name not in (_SET, _WAIT):
            continue
        flag = pending.setdefault((each.attributes["event"].value, each.attributes["event_id"].value), [])
        if each.name == _SET:
            flag.append(i)
        elif flag:
            flag.pop()
        elif i < loop:
            start = i + 1
        else:
            end = i
            break
    start = max([start, *(i + 1 for places in pending.values() for i in places)])
    while stretch[start].name == _BARRIER:
        start += 1
    return stretch[start:end]


def add_barriers(ours: list[Node], theirs: list[Node]) -> None:
    """Adds to ops the barriers that others, which are like them, have and they have not."""
    place = 0
    for other in theirs:
        if other.name == CONSTANT:
            continue
        while place < len(ours) and (ours[place].name == CONSTANT or ours[place].name == _BARRIER != other.name):
            place += 1
        if other.name == _BARRIER and (place == len(ours) or ours[place].name != _BARRIER):
            following = next(ops_of(ours[place:]), None)
            point = ir.InsertionPoint(following) if following else ir.InsertionPoint.after([*ops_of(ours)][-1])
            with point:
                ours.insert(place, Node(other.op.clone(), ours[0].around, {}))
        for blocks in zip(ours[place].blocks, other.blocks):
            add_barriers(*blocks)
        place += 1


def ops_of(nodes: list[Node]) -> Iterator[ir.Operation]:
    """The ops that stand in the IR for nodes: a call stands there once its function has been written, except one that
    nothing calls any more."""
    for node in nodes:
        if node.op is not None:
            yield node.op
        elif not node.function.has_ops_of(node):
            yield from ops_of(node.nodes)


def all_nodes(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for block in node.blocks:
            yield from all_nodes(block)


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
