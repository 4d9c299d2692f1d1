"""What a kernel takes and gives, for the host code around it: shapes, dtypes, and which error a wrong argument is.

A kernel is compiled for the sizes of its operator's rows and serves any number of rows: a parameter "leads" if its
leading dimension is that number. Which ones do follows from the operator's operands, back through the elementwise work
inside the kernel. What a routing gives has as many rows as its rule says. The error of a wrong argument is asked of the
operator's own rule, with an argument that is wrong in just that way; so is how many rows there may be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from jascend.dialect import ASCEND
from jascend.dialect.ascend import results_of_routing, rule_arguments, shaped
from jascend.dialect.errors import OperatorError, ParamInvalid, TilingError
from jascend.dialect.rules import Rows, Shaped
from jascend.dialect.rules.shaped import INT32_MAX
from jascend.passes.lowerings.access import CONCATENATION, SLICE, in_order, inputs

from .plan import Launch


@dataclass(frozen=True)
class Codes:
    """The CANN status (`aclnnStatus`) of an argument with a wrong dtype, rank, size, or number of rows."""

    dtype: int = ParamInvalid.code
    rank: int = ParamInvalid.code
    size: int = TilingError.code
    rows: int = ParamInvalid.code


@dataclass(frozen=True)
class Tensor:
    """A parameter."""

    name: str
    dtype: str
    dims: tuple[int | Rows, ...]
    codes: Codes = Codes()

    @property
    def leads(self) -> bool:
        return any(isinstance(dim, Rows) for dim in self.dims)

    def shape(self, rows: int) -> tuple[int, ...]:
        return tuple(dim.at(rows) if isinstance(dim, Rows) else dim for dim in self.dims)


@dataclass(frozen=True)
class Bound:
    """A number of rows, and the status of a call with fewer, or with more."""

    rows: int
    code: int

    @property
    def too_few(self) -> str:
        return "must not be empty" if self.rows == 1 else f"must have at least {self.rows} rows"

    @property
    def too_many(self) -> str:
        return f"must have at most {self.rows} rows"


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel.

    Attributes:
      inputs, outputs: in the order of the kernel's parameters.
      rows: the compiled number of rows; any other serves too where a parameter leads.
      least: how many there must be; where several, the first that does not hold counts.
      most: how many there may be; None: as many as an int32 counts.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    rows: int
    least: tuple[Bound, ...] = ()
    most: Bound | None = None

    @property
    def any_rows(self) -> bool:
        return any(tensor.leads for tensor in self.inputs)

    def check_rows(self, operator: str, rows: int) -> None:
        """Raises the error of a call with so many rows, if it is one."""
        problems = [(bound.code, bound.too_few) for bound in self.least if rows < bound.rows]
        if self.most is not None and rows > self.most.rows:
            problems.append((self.most.code, self.most.too_many))
        for code, problem in problems:
            error = ParamInvalid if code == ParamInvalid.code else TilingError
            raise error(operator, self.inputs[0].name, f"{problem}, but has {rows}")


def signature(
    kernel: ir.Operation, launch: Launch, names: Sequence[str], rows_of: int, tokens: int | None = None
) -> Signature:
    """The signature of an outlined kernel whose parameters have these names. `tokens`: of a routing of any number of
    them, how many at most; 0: no bound."""
    op = next(view for view in kernel.regions[0].blocks[0].operations if view.operation.name in ASCEND.by_name)
    rows, block, is_routing = launch.rows(rows_of), kernel.regions[0].blocks[0], tokens is not None
    if is_routing:
        leading = frozenset(i for i, type_ in enumerate(launch.operand_types) if type_.shape[:1] == (rows,))
        results = [value.shape for name, value in results_of_routing(op, rows).items() if getattr(op, name) is not None]
    else:
        leading = _leading(op)
        results = [(Rows(), *type_.shape[1:]) if leading else type_.shape for type_ in launch.types]
    probe = _Probe(op, rows, is_routing)
    names = argument_names(names)
    inputs = [
        Tensor(name, type_.dtype, (Rows(), *type_.shape[1:]) if i in leading else type_.shape, probe.codes(argument))
        for i, (name, type_, argument) in enumerate(zip(names, launch.operand_types, block.arguments))
    ]
    outputs = [
        Tensor(name, type_.dtype, tuple(shape))
        for name, type_, shape in zip(names[len(inputs) :], launch.types, results, strict=True)
    ]
    least, most = (probe.least(), probe.most()) if leading else ((), None)
    if tokens and (most is None or tokens < most.rows):
        most = Bound(tokens, TilingError.code)
    return Signature(tuple(inputs), tuple(outputs), rows, least, most)


# Names that a generated aclnn interface has for itself.
_TAKEN = ("workspace", "workspacesize", "executor", "stream")


def argument_names(names: Sequence[str]) -> list[str]:
    """Names for an operator's tensors: CANN writes them in capitals too, and some are its own."""
    chosen: list[str] = []
    for name in names:
        candidate, number = (f"{name}Tensor" if name.lower() in _TAKEN else name), 2
        while candidate.lower() in (other.lower() for other in chosen):
            candidate, number = f"{name}{number}", number + 1
        chosen.append(candidate)
    return chosen


# -- which arguments lead ---------------------------------------------------------------------------------------------


def _leading(op: ir.OpView) -> frozenset[int]:
    """Numbers of the kernel's arguments whose leading dimension is the rows; none for kernels of fixed shapes."""
    meanings: dict[tuple[int, int], set[bool]] = {}
    for operand in ASCEND.by_name[op.operation.name].operands:
        value = getattr(op, operand.name)
        for dim in range(ir.RankedTensorType(value.type).rank if value is not None else 0):
            is_rows = dim == 0 and operand.by_row
            for *place, whole in _places(value, dim):
                meanings.setdefault(tuple(place), set()).add(is_rows and whole)
    for view in op.operation.block.operations:
        if view.operation.name == SLICE:  # what reads some of the rows does not serve any number of them
            sizes = [ir.RankedTensorType(v.type).shape[:1] for v in (view.operands[0], view.results[0])]
            for *place, _ in _places(view.operands[0], 0) if sizes[0] != sizes[1] else ():
                meanings.setdefault(tuple(place), set()).add(False)
    rows = {place for place, found in meanings.items() if True in found}
    if any(dim > 0 or len(meanings[argument, dim]) > 1 for argument, dim in rows):
        return frozenset()  # the rows are not (only) a leading dimension
    return frozenset(argument for argument, _ in rows)


def _places(value: ir.Value, dim: int) -> Iterator[tuple[int, int, bool]]:
    """The dimensions of arguments, as (argument, dimension), that run along with a dimension of a value; and whether
    all of one does."""
    for source, place, whole in in_order((value, dim, True), lambda found: _sources(*found)):
        if isinstance(source.owner, ir.Block):
            yield ir.BlockArgument(source).arg_number, place, whole


def _sources(value: ir.Value, dim: int, whole: bool) -> Iterator[tuple[ir.Value, int, bool]]:
    """The same of what a value is computed from at once; `whole`: whether all of the value's dimension does."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return
    if owner.name == SLICE:
        (source,) = owner.operands
        sizes = [ir.RankedTensorType(v.type).shape[dim] for v in (source, value)]
        yield source, dim, whole and sizes[0] == sizes[1]
    elif owner.name == CONCATENATION:
        yield from ((operand, dim, whole) for operand in owner.operands)
    elif owner.name == "linalg.generic":
        maps = [attribute.value for attribute in owner.attributes["indexing_maps"]]
        dim = ir.AffineDimExpr(maps[-1].results[dim]).position  # of the iteration: a reduction has more
        for source, affine in zip(inputs(owner), maps):
            for position, expression in enumerate(affine.results):
                if isinstance(expression, ir.AffineDimExpr) and expression.position == dim:
                    yield source, position, whole
    elif owner.name == "tensor.cast":
        yield owner.operands[0], dim, whole
    elif owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        source = owner.operands[0]
        before, after = (list(ir.RankedTensorType(v.type).shape) for v in (source, value))
        for number, group in enumerate(owner.attributes["reassociation"]):
            group = [index.value for index in group]
            if owner.name == "tensor.collapse_shape" and number == dim:
                yield source, max(group, key=lambda d: before[d] != 1), whole
            elif owner.name == "tensor.expand_shape" and dim == max(group, key=lambda d: after[d] != 1, default=None):
                yield source, number, whole


# -- which error a wrong argument is ----------------------------------------------------------------------------------


class _Probe:
    """Calls the rule of an operator with its operands as they are, but for one, or with other numbers of rows."""

    def __init__(self, op: ir.OpView, rows: int, is_routing: bool):
        definition = ASCEND.by_name[op.operation.name]
        self.rule, self.rows = definition.rule, rows
        self.values = {operand.name: getattr(op, operand.name) for operand in definition.operands}
        self.operands = {name: shaped(value) for name, value in self.values.items()}
        self.attributes = rule_arguments(op)[1] if self.rule is not None else {}
        self.row_wise = {operand.name for operand in definition.operands if operand.by_row}
        if is_routing:
            self.row_wise = {
                name for name, operand in self.operands.items() if operand and operand.shape[:1] == (rows,)
            }

    def status(self, **changed: Shaped) -> int | None:
        if self.rule is None:
            return None
        try:
            self.rule(**{**self.operands, **changed}, **self.attributes)
        except OperatorError as error:
            return error.code
        return None

    def codes(self, argument: ir.Value) -> Codes:
        """The codes for an argument that is an operand; what feeds the work before one is no concern of the rule."""
        name = next((name for name, value in self.values.items() if value is not None and value == argument), None)
        if name is None:
            return Codes()
        operand = self.operands[name]
        wrong = Codes(
            dtype=self.status(**{name: operand._replace(dtype="complex64")}),
            rank=self.status(**{name: operand._replace(shape=(*operand.shape, 2))}),
            size=self.status(**{name: operand._replace(shape=(*operand.shape[:-1], operand.shape[-1] + 1))}),
            rows=self.status(**{name: operand._replace(shape=(operand.shape[0] + 1, *operand.shape[1:]))}),
        )
        # A size that the operator would take, but the kernel was not compiled for, is one that tiling refuses.
        codes = {field: code for field, code in vars(wrong).items() if code is not None}
        if len(operand.shape) == 1 and name in self.row_wise:
            codes.pop("size", None)
        return Codes(**codes)

    def least(self) -> tuple[Bound, ...]:
        """Up to which numbers of rows the rule refuses them, status by status."""
        bounds, rows = [], 0
        while rows < self.rows and (code := self.of_rows(rows)) is not None:
            rows += bisect_left(range(rows, self.rows), True, key=lambda rows: self.of_rows(rows) != code)
            bounds.append(Bound(rows, code))
        return tuple(bounds)

    def most(self) -> Bound | None:
        """The most rows that the rule takes; None where it does not say."""
        code, beyond = self.of_rows(INT32_MAX), range(self.rows, INT32_MAX + 1)
        if code is None:
            return None
        return Bound(self.rows + bisect_left(beyond, True, key=lambda rows: self.of_rows(rows) is not None) - 1, code)

    def of_rows(self, rows: int) -> int | None:
        """The status of a call with so many rows."""
        return self.status(**{
            name: operand._replace(shape=(rows, *operand.shape[1:]))
            for name, operand in self.operands.items()
            if operand is not None and name in self.row_wise
        })  # fmt: skip
