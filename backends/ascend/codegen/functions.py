"""Prints the functions of a kernel's stages (`outline-stages`): members of a class, with what they share as its data.

A buffer that one function uses is declared there. What several use is a member of the class, and so is what the kernel
knows before it begins, or at one place of its loop over rows. What differs from call to call is a parameter; a result
is returned, or assigned to parameters where there are several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from mlir import ir

from jascend.dialect.ascendc import bytes_of, space_of
from jascend.dialect.elements import element_name, type_name
from jascend.passes.builder import COMMENT, name_of
from jascend.passes.outline_stages import MEMBER, RESULTS, STAGE_OF
from jascend.passes.stretches import label_of

from .calls import STORAGE, gm_type
from .scalars import Expr, ctype, variable

if TYPE_CHECKING:
    from .kernel import Emitter

KEPT_WORKSPACE = "workspaceStart"
UNIFIED_BUFFER = "// Unified buffer, by hand: (position, byte address, elements)."
BufferKey = tuple[str, str, int, int]  # name, element, elements, address


class Function:
    """A function of the IR: its ops, which are read once, and the buffers that they use, each with what makes it the
    same as another one."""

    def __init__(self, op: ir.Operation):
        self.op, self.block = op, op.regions[0].blocks[0]
        self.ops = ops_in(self.block)
        self.buffers = list(_buffers_of(self.ops))
        given = op.attributes["arg_attrs"] if "arg_attrs" in op.attributes else ()
        self.are_members = [MEMBER in attributes for attributes in given]  # of the class, for each argument


def ops_in(block: ir.Block) -> list[ir.Operation]:
    return [view.operation for view in block.operations]


def functions_of(kernel: ir.Operation) -> dict[str, Function]:
    """The functions of a kernel's stages, by symbol."""
    name, found = kernel.attributes["sym_name"].value, {}
    for op in ops_in(kernel.block) if kernel.parent is not None else ():
        if STAGE_OF in op.attributes and op.attributes[STAGE_OF].value == name:
            found[op.attributes["sym_name"].value] = Function(op)
    return found


def _buffers_of(ops: list[ir.Operation]) -> Iterator[tuple[ir.Value, BufferKey]]:
    for op in ops:
        if op.name == "ascendc.local_tensor" and any(True for _ in op.results[0].uses):
            buffer = op.results[0]
            type_ = ir.MemRefType(buffer.type)
            element, length = type_.element_type, type_.get_dim_size(0)
            length = min(length, bytes_of(length, element))  # two 4-bit elements a byte
            hint, offset = op.attributes["name_hint"].value, op.attributes["offset"].value
            yield buffer, (hint, STORAGE[type_name(element)], length, offset)


class Functions:
    """The functions of one kernel: each is printed when the first call of it is."""

    def __init__(self, out: Emitter, functions: dict[str, Function]):
        self.out, self.functions = out, functions
        self.names: dict[str, str] = {}
        self.texts: list[list[str]] = []
        self.members: list[str] = []
        places = Counter(key for function in functions.values() for key in {key for _, key in function.buffers})
        self.shared = {key for key, number in places.items() if number > 1}
        self.buffers: dict[BufferKey, str] = {}
        self.keeps_workspace = False

    def kept_workspace(self) -> str:
        """The workspace, for what begins in it later than the kernel does."""
        if not self.keeps_workspace:
            self.keeps_workspace = True
            self.members.append(f"GM_ADDR {KEPT_WORKSPACE}{{}};")
        return KEPT_WORKSPACE

    def declare_buffers(self, found: Iterable[tuple[ir.Value, BufferKey]], all_members: bool = False) -> None:
        """Buffers of the kernel itself, and those that several functions use, are members; of the others, each function
        declares its own."""
        local: dict[BufferKey, str] = {}
        for buffer, key in found:
            known = self.buffers if all_members or key in self.shared or key in self.buffers else local
            if key not in known:
                is_member = known is self.buffers
                known[key] = self.out.fresh(f"{key[0]}_local", member=is_member)
                text = self.out.local_tensor(known[key], key, "{}" if is_member else "()")
                if is_member:
                    self.members.append(text)
                else:
                    self.out.put(text)
            self.out.values[buffer] = variable(known[key])
        if local:
            self.out.put("")

    def call(self, op: ir.Operation) -> None:
        out = self.out
        symbol = op.attributes["callee"].value
        function = self.functions[symbol]
        if symbol not in self.names:
            self.names[symbol] = symbol.rpartition(".")[2]
            out.aside(lambda: self.function(symbol, op))
        arguments = [
            out.text(operand) for operand, is_member in zip(op.operands, function.are_members) if not is_member
        ]
        names = [name.value for name in function.op.attributes[RESULTS]]
        if len(op.results) == 1:
            value = f"{self.names[symbol]}({', '.join(arguments)})"
            result = op.results[0]
            if result in out.into:
                out.put(f"{out.into[result].text} = {value};")
                out.values[result] = out.into[result]
            else:
                out.values[result] = out.declare(ctype(result.type), label_of(result) or names[0], value)
            return
        for result, name in zip(op.results, names):
            if result not in out.into:
                out.into[result] = variable(out.fresh(label_of(result) or name))
                out.put(f"{ctype(result.type)} {out.into[result].text};")
            out.values[result] = out.into[result]
            arguments.append(out.into[result].text)
        out.put(f"{self.names[symbol]}({', '.join(arguments)});")

    def function(self, symbol: str, call: ir.Operation) -> None:
        """Prints a function. Members are what they are at the call, at any."""
        out, function = self.out, self.functions[symbol]
        parameters = []
        for argument, operand, is_member in zip(function.block.arguments, call.operands, function.are_members):
            if is_member:
                out.values[argument] = out.values[operand]
                continue
            name = out.fresh(_hint(argument))
            out.values[argument] = variable(name)
            parameters.append(f"{_type(argument)}{name}")
        *ops, end = function.ops
        names = [name.value for name in function.op.attributes[RESULTS]]
        returned = "void"
        results: list[Expr] = []
        if len(end.operands) == 1:
            returned = ctype(end.operands[0].type)
        else:
            results = [variable(out.fresh(name)) for name in names]
            out.goes_into(end, results)
            parameters += [f"{ctype(v.type)} &{r.text}" for v, r in zip(end.operands, results)]
        about = function.op.attributes[COMMENT].value
        if about:
            out.comment(about)
        out.put(f"__aicore__ inline {returned} {self.names[symbol]}({', '.join(parameters)})")
        out.put("{")
        out.depth += 1
        out.show_source(function.op)
        self.declare_buffers(function.buffers)
        for op in ops:
            out.operation(op)
        if returned != "void":
            out.put(f"return {out.text(end.operands[0])};")
        out.assign(results, [out.values[v] for v in end.operands] if results else [])
        out.depth -= 1
        out.put("}")


def _hint(value: ir.Value) -> str:
    hint = name_of(value) or "value"
    if not isinstance(value.type, ir.MemRefType):
        return hint
    return f"{hint}_{'gm' if space_of(value) == 'gm' else 'local'}"


def _type(value: ir.Value) -> str:
    if not isinstance(value.type, ir.MemRefType):
        return f"{ctype(value.type)} "
    if space_of(value) == "gm":
        return f"const GlobalTensor<{gm_type(ir.MemRefType(value.type).element_type)}> &"
    return f"const LocalTensor<{STORAGE[element_name(value)]}> &"


def class_of(
    out: Emitter, functions: Functions, name: str, struct: str, parameters: list[str], init: Callable[[], None],
    process: Callable[[], None],
) -> list[str]:  # fmt: skip
    """The class of a kernel: `init` and `process` print what its two public functions do."""
    texts = []
    for title, takes, body in (("Init", ", ".join(f"GM_ADDR {p}" for p in parameters), init), ("Process", "", process)):
        out.put(f"__aicore__ inline void {title}({takes})")
        out.put("{")
        out.depth += 1
        body()
        out.depth -= 1
        out.put("}")
        texts.append(out.taken())
    if functions.keeps_workspace:
        texts[0].insert(-1, f"        {KEPT_WORKSPACE} = workspace;")
    members = [f"const {struct} &tilingData;", *_grouped(functions.members)]
    out.put(f"__aicore__ inline explicit {name}(const {struct} &tilingData)")
    texts = [[*out.taken(), "        : tilingData(tilingData) {}"], *texts]
    private = [*functions.texts, [f"    {member}" for member in members]]
    return [
        f"class {name} {{", "public:", *_apart(texts), "", "private:", *_apart(private), "};",
    ]  # fmt: skip


def _grouped(members: list[str]) -> list[str]:
    """Members by kind: global memory, buffers, numbers."""
    memory, buffers = (
        [text for text in members if text.startswith(kind)] for kind in ("GlobalTensor<", "LocalTensor<")
    )
    numbers = [text for text in members if not text.startswith(("GlobalTensor<", "LocalTensor<"))]
    return [*memory, *([UNIFIED_BUFFER] if buffers else []), *buffers, *numbers]


def _apart(texts: list[list[str]]) -> list[str]:
    """Texts with a blank line between each two."""
    return [line for i, text in enumerate(texts) for line in ([""] if i else []) + text]
