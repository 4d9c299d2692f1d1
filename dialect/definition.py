"""What a dialect is made from: one description, as data.

A dialect module holds a table of `Op` records. Everything else is derived from that table: the IRDL text that
registers the dialect in an upstream MLIR context (`Dialect.irdl`), the Python op classes that passes build and match
(`Dialect.classes`), the verifier (`Dialect.verify_op`) and the reference page (`Dialect.reference`).

IRDL checks operand counts, kinds of type and required attributes. Relations between shapes, dtypes and attribute
values are beyond it; an `Op` may name a Python function for those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlir import ir
from mlir._mlir_libs import _mlir as _bindings

# The kinds of type that IRDL can tell apart, each with the constraint that says so. A constraint that occurs twice in
# an IRDL operation demands the same type in both places, so every operand gets constraints of its own.
_TYPE_CONSTRAINTS: dict[str, tuple[str, ...]] = {
    "any": ("irdl.any",),
    "tensor": ('irdl.base "!builtin.tensor"',),
    "memref": ('irdl.base "!builtin.memref"',),
    "index": ("irdl.is index",),
    "i1": ("irdl.is i1",),
    "i32": ("irdl.is i32",),
    "f32": ("irdl.is f32",),
    "scalar": ("irdl.is f32", "irdl.is f16", "irdl.is bf16", "irdl.is i32", "irdl.is index"),
}
_ATTRIBUTE_CONSTRAINTS: dict[str, str] = {
    "string": 'irdl.base "#builtin.string"',
    "integer": 'irdl.base "#builtin.integer"',
    "bool": "irdl.any",  # BoolAttr is an i1 integer attribute that IRDL cannot name; `verify_op` checks it
    "float": 'irdl.base "#builtin.float"',
    "array": 'irdl.base "#builtin.array"',
    "int32 list": 'irdl.base "#builtin.dense_array"',
}
_ATTRIBUTE_CLASSES: dict[str, type] = {
    "string": ir.StringAttr,
    "integer": ir.IntegerAttr,
    "bool": ir.BoolAttr,
    "float": ir.FloatAttr,
    "array": ir.ArrayAttr,
    "int32 list": ir.DenseI32ArrayAttr,
}


class VerifyError(ValueError):
    """What a verification function raises; becomes the op's diagnostic."""


@dataclass(frozen=True)
class Operand:
    """One operand group. `role` says how a buffer operand of the `ascendc` dialect is used: "in", "out" or "inout";
    `touched` which bytes an op may touch, as ranges counted from the buffer's start on, in order; None: all of them.
    `by_row` says that the operator treats rows alike and this operand has an element or a row for each."""

    name: str
    type: str
    doc: str = ""
    optional: bool = False
    role: str = ""
    by_row: bool = False
    touched: Callable[[ir.OpView], list[tuple[int, int]]] | None = None


@dataclass(frozen=True)
class Result:
    name: str
    type: str
    doc: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str
    doc: str = ""
    optional: bool = False
    values: tuple[str, ...] = ()  # the allowed strings, where the attribute is an enumeration


@dataclass(frozen=True)
class Op:
    """One operation. `rule` is an operator's rule for shapes and dtypes, a function of its operands as `Shaped` and of
    attributes, by name, which gives its results (`ascend` only). `verify` checks more, or all, where there is no rule;
    it looks at types, at attributes and at what `asks` returns, so that of ops alike in these one is checked. `pipe`
    names the hardware queue that runs it, `in_place` the operands whose buffer its first operand, the written one, may
    coincide with (`ascendc` only)."""

    name: str
    summary: str
    operands: Sequence[Operand] = ()
    results: Sequence[Result] = ()
    attributes: Sequence[Attribute] = ()
    description: str = ""
    verify: Callable[[ir.OpView], None] | None = None
    asks: Callable[[ir.Operation], Hashable] | None = None
    rule: Callable | None = None
    side_effects: bool = False
    pipe: str | None = None
    in_place: tuple[str, ...] = ()

    @cached_property
    def class_name(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_"))

    @cached_property
    def attribute_names(self) -> frozenset[str]:
        return frozenset(attribute.name for attribute in self.attributes)

    @cached_property
    def checked_attributes(self) -> tuple[Attribute, ...]:
        """Those of which IRDL does not know all: that they may be absent, what exactly they are, or which strings."""
        return tuple(a for a in self.attributes if a.optional or a.type in ("bool", "int32 list") or a.values)

    @cached_property
    def segmented(self) -> bool:
        """Whether the op carries `operandSegmentSizes`: with an optional operand, positions alone do not tell."""
        return any(operand.optional for operand in self.operands)

    @cached_property
    def results_segmented(self) -> bool:
        """Whether the op carries `resultSegmentSizes`."""
        return any(result.optional for result in self.results)

    def given(self, op: ir.Operation) -> Iterator[tuple[Operand, ir.Value]]:
        """The operands that an op has, with their values."""
        if not self.segmented:
            return zip(self.operands, op.operands)
        sizes = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        return zip((operand for operand, size in zip(self.operands, sizes) if size), op.operands)


@dataclass(frozen=True)
class Dialect:
    """A dialect: `ops` are its own, `added` those that `define` has added, with the file that did."""

    name: str
    summary: str
    ops: tuple[Op, ...]
    added: dict[str, tuple[Op, str]] = field(default_factory=dict, compare=False)

    @cached_property
    def by_name(self) -> dict[str, Op]:
        return {f"{self.name}.{op.name}": op for op in self.ops}

    def define(self, op: Op, file: str) -> type[ir.OpView]:
        """Adds an op, of a file that may define it again. Contexts that are made from now on know it.

        Returns: its class.
        Raises: ValueError for a name that is taken or none, and for types that IRDL does not know."""
        _check_definition(op)
        name = f"{self.name}.{op.name}"
        owner = self.added.get(op.name, (None, "this dialect"))[1]
        if name in self.by_name and owner != file:
            raise ValueError(f"operation '{name}' is already defined, by {owner}")
        cls = self._register(op, replace=True)
        self.classes[op.class_name] = cls
        self.added[op.name] = op, file
        self.by_name[name] = op
        return cls

    def defined_by(self, file: str) -> tuple[str, ...]:
        """The names of the ops that a file has added."""
        return tuple(f"{self.name}.{name}" for name, (_, owner) in self.added.items() if owner == file)

    def forget(self, file: str) -> None:
        """Takes out what a file has added. Contexts that know it keep it."""
        for name in self.defined_by(file):
            op, _ = self.added.pop(name.removeprefix(f"{self.name}."))
            del self.by_name[name], self.classes[op.class_name]

    def has_side_effects(self, op_name: str) -> bool | None:
        """Whether an op of this dialect does more than compute its results; None for an op of another dialect."""
        op = self.by_name.get(op_name)
        return None if op is None else op.side_effects

    # -- IRDL ---------------------------------------------------------------------------------------------------

    def irdl(self) -> str:
        body = "\n".join(_irdl_operation(op) for op in self.by_name.values())
        return f"irdl.dialect @{self.name} {{\n{body}}}\n"

    # -- op classes ---------------------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> dict[str, type[ir.OpView]]:
        """The op classes by class name; registered with the bindings, so that a walk yields them."""
        return {op.class_name: self._register(op) for op in self.ops}

    def _register(self, op: Op, replace: bool = False) -> type[ir.OpView]:
        return _bindings.register_operation(self._class, replace=replace)(_op_class(self.name, op))

    @cached_property
    def _class(self) -> type[ir.Dialect]:
        dialect_class = type(f"_{self.name.capitalize()}", (ir.Dialect,), {"DIALECT_NAMESPACE": self.name})
        _bindings.register_dialect(dialect_class)
        return dialect_class

    # -- verification -------------------------------------------------------------------------------------------

    def verify_op(self, op: ir.Operation, verified: set[tuple] | None = None) -> bool:
        """Checks what IRDL cannot; emits a diagnostic at the op and returns False where it fails. `verified` has what
        ops of this context looked like that have held, and is added to."""
        name = op.name
        definition = self.by_name.get(name)
        if definition is None:
            op.location.emit_error(f"'{name}' is not an op of dialect '{self.name}'")
            return False
        if definition.verify is None and not definition.checked_attributes:
            return True
        if verified is None or definition.name in self.added:  # whose verification may look at anything
            return self._holds(definition, op)
        looks = (name, *_looks(definition, op))
        if looks in verified:
            return True
        holds = self._holds(definition, op)
        if holds:
            verified.add(looks)
        return holds

    def _holds(self, definition: Op, op: ir.Operation) -> bool:
        try:
            _check_attributes(definition, op)
            if definition.verify is not None:
                definition.verify(self.classes[definition.class_name](op))
        except (ValueError, TypeError) as error:  # VerifyError, and the operators' own argument errors
            op.location.emit_error(f"'{op.name}' op {error}")
            return False
        except Exception as error:
            if definition.name not in self.added:
                raise
            where = f"its verification, in {self.added[definition.name][1]}"
            op.location.emit_error(
                f"'{op.name}' op cannot be verified: {where}, failed: {type(error).__name__}: {error}"
            )
            return False
        return True

    # -- reference page -----------------------------------------------------------------------------------------

    def reference(self) -> str:
        """The dialect's reference page, in Markdown."""
        lines = [f"# Dialect `{self.name}`", "", self.summary, ""]
        for op in self.ops:
            lines += _reference_of(self.name, op)
        return "\n".join(lines).rstrip() + "\n"


_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def _check_definition(op: Op) -> None:
    """Raises ValueError or TypeError for a definition that nothing can be made of."""
    if not isinstance(op, Op):
        raise TypeError(f"an operation is defined by an Op, got {op!r}")
    if not isinstance(op.name, str) or not _NAME.fullmatch(op.name):
        raise ValueError(f"the name of an operation is in snake case, without a dialect, got {op.name!r}")
    parts = (("operand", op.operands, _TYPE_CONSTRAINTS), ("result", op.results, _TYPE_CONSTRAINTS),
             ("attribute", op.attributes, _ATTRIBUTE_CONSTRAINTS))  # fmt: skip
    for what, members, types in parts:
        for member in members:
            if member.type not in types:
                known = ", ".join(types)
                raise ValueError(
                    f"'{op.name}': the type of {what} '{member.name}' must be one of {known}, got {member.type!r}"
                )
    names = [member.name for _, members, _ in parts for member in members]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"'{op.name}': '{twice}' is there twice among its operands, results and attributes")


def _irdl_operation(op: Op) -> str:
    lines: list[str] = []

    def constrain(kind: str) -> str:
        """Adds fresh constraints for a kind of type; returns the SSA name that stands for it."""
        names = []
        for text in _TYPE_CONSTRAINTS[kind]:
            names.append(f"%{len(lines)}")
            lines.append(f"{names[-1]} = {text}")
        if len(names) == 1:
            return names[0]
        union = f"%{len(lines)}"
        lines.append(f"{union} = irdl.any_of({', '.join(names)})")
        return union

    operands = [f"{o.name}: {'optional ' if o.optional else ''}{constrain(o.type)}" for o in op.operands]
    results = [f"{r.name}: {'optional ' if r.optional else ''}{constrain(r.type)}" for r in op.results]
    attributes = []
    for attribute in op.attributes:
        if attribute.optional:
            continue  # IRDL knows required attributes only; `verify_op` checks the optional ones
        name = f"%{len(lines)}"
        lines.append(f"{name} = {_ATTRIBUTE_CONSTRAINTS[attribute.type]}")
        attributes.append(f'"{attribute.name}" = {name}')
    if operands:
        lines.append(f"irdl.operands({', '.join(operands)})")
    if attributes:
        lines.append(f"irdl.attributes {{{', '.join(attributes)}}}")
    if results:
        lines.append(f"irdl.results({', '.join(results)})")
    body = "".join(f"    {line}\n" for line in lines)
    return f"  irdl.operation @{op.name} {{\n{body}  }}\n"


def _op_class(dialect: str, op: Op) -> type[ir.OpView]:
    """The Python class of an op: a builder, and a property for every operand, attribute and result."""
    namespace: dict[str, object] = {
        "OPERATION_NAME": f"{dialect}.{op.name}",
        "__doc__": op.summary,
        "definition": op,
        "build": classmethod(_build),
    }
    for position, operand in enumerate(op.operands):
        namespace[operand.name] = property(_operand_getter(op, position), doc=operand.doc)
    for position, result in enumerate(op.results):
        if result.name not in namespace:
            namespace[result.name] = property(_result_getter(op, position), doc=result.doc)
    for attribute in op.attributes:
        namespace[attribute.name] = property(_attribute_getter(attribute.name), doc=attribute.doc)
    return type(op.class_name, (ir.OpView,), namespace)


def _build(cls, *operands: ir.Value | None, results: Sequence[ir.Type | None] = (), loc=None, ip=None, **attributes):
    """Creates the op at the insertion point. Operands and result types in the definition's order, None where an
    optional one is absent; attributes as MLIR attributes or Python str, bool, int, float and tuples of int."""
    definition: Op = cls.definition
    if len(operands) != len(definition.operands):
        expected = ", ".join(operand.name for operand in definition.operands)
        raise TypeError(
            f"{cls.OPERATION_NAME} takes {len(definition.operands)} operands ({expected}), got {len(operands)}"
        )
    named: dict[str, ir.Attribute] = {}
    if attributes:
        if not definition.attribute_names.issuperset(attributes):
            known, unknown = sorted(definition.attribute_names), sorted(set(attributes) - definition.attribute_names)
            raise TypeError(f"{cls.OPERATION_NAME} has no attribute {', '.join(unknown)}; it has {known}")
        named = {name: _attribute(value) for name, value in attributes.items() if value is not None}
    if definition.segmented:
        named["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([int(value is not None) for value in operands])
        operands = [value for value in operands if value is not None]
    if definition.results_segmented:
        named["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get([int(type_ is not None) for type_ in results])
        results = [type_ for type_ in results if type_ is not None]
    return cls(ir.Operation.create(cls.OPERATION_NAME, results, operands, named, loc=loc, ip=ip))


_ATTRIBUTES: dict[type, Callable[[Any], ir.Attribute]] = {
    str: ir.StringAttr.get,
    bool: ir.BoolAttr.get,
    int: lambda value: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value),
    float: lambda value: ir.FloatAttr.get(ir.F32Type.get(), value),
    tuple: ir.DenseI32ArrayAttr.get,
}


def _attribute(value: object) -> ir.Attribute:
    if isinstance(value, ir.Attribute):
        return value
    for type_ in type(value).__mro__:
        if type_ in _ATTRIBUTES:
            return _ATTRIBUTES[type_](value)
    raise TypeError(f"no MLIR attribute for {value!r}")


def _operand_getter(op: Op, position: int):
    if not op.segmented:
        return lambda self: self.operation.operands[position]

    def get(self):
        sizes = ir.DenseI32ArrayAttr(self.operation.attributes["operandSegmentSizes"])
        if not sizes[position]:
            return None
        return self.operation.operands[sum(sizes[i] for i in range(position))]

    return get


def _result_getter(op: Op, position: int):
    if not op.results_segmented:
        return lambda self: self.operation.results[position]

    def get(self):
        sizes = ir.DenseI32ArrayAttr(self.operation.attributes["resultSegmentSizes"])
        if not sizes[position]:
            return None
        return self.operation.results[sum(sizes[i] for i in range(position))]

    return get


def _attribute_getter(name: str):
    def get(self):
        value = self.operation.attributes.get(name)
        if value is None:
            return None
        return tuple(value) if isinstance(value, ir.DenseI32ArrayAttr) else value.value

    return get


def _looks(definition: Op, op: ir.Operation) -> list[Hashable]:
    """What verification looks at."""
    seen: list[Hashable] = []
    if definition.operands:
        seen += [value.type for value in op.operands]
    if definition.results:
        seen += op.results.types
    if definition.attributes or definition.segmented:
        seen += op.attributes.items()
    if definition.asks is not None:
        seen.append(definition.asks(op))
    return seen


def _check_attributes(definition: Op, op: ir.Operation) -> None:
    attributes = op.attributes
    for attribute in definition.checked_attributes:
        value = attributes.get(attribute.name)
        if value is None:
            if not attribute.optional:
                raise VerifyError(f"requires attribute '{attribute.name}'")
            continue
        if not isinstance(value, _ATTRIBUTE_CLASSES[attribute.type]):
            article = "an" if attribute.type[0] in "ai" else "a"
            raise VerifyError(f"attribute '{attribute.name}' must be {article} {attribute.type} attribute, got {value}")
        if attribute.values and value.value not in attribute.values:
            allowed = ", ".join(f'"{name}"' for name in attribute.values)
            raise VerifyError(f"attribute '{attribute.name}' must be one of {allowed}, got {value}")


def _reference_of(dialect: str, op: Op) -> list[str]:
    lines = [f"## `{dialect}.{op.name}`", "", op.summary, ""]
    if op.description:
        lines += [op.description, ""]
    rows = [("operand", o.name, o.type + (" (optional)" if o.optional else ""), o.doc) for o in op.operands]
    rows += [("attribute", a.name, _attribute_type(a), a.doc) for a in op.attributes]
    rows += [("result", r.name, r.type + (" (optional)" if r.optional else ""), r.doc) for r in op.results]
    if rows:
        lines += ["| | name | type | meaning |", "|---|---|---|---|"]
        lines += [f"| {kind} | `{name}` | {type_} | {doc} |" for kind, name, type_, doc in rows]
        lines.append("")
    facts = []
    if op.pipe:
        facts.append(f"Runs on pipe {op.pipe}.")
    facts.append("Has side effects." if op.side_effects else "Pure.")
    return [*lines, " ".join(facts), ""]


def _attribute_type(attribute: Attribute) -> str:
    kind = attribute.type + (" (optional)" if attribute.optional else "")
    if attribute.values:
        kind += ": " + ", ".join(f'`"{name}"`' for name in attribute.values)
    return kind
