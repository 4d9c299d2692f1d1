"""Rewrites of one op, as functions, and the driver that applies them.

    @rewrite("ascend.moe_gating_top_k", benefit=2)
    def fold_bias(op, rewriter): ...          # the pass `fold-bias`

MLIR's greedy driver frees an op the moment it is replaced, and the bindings do not know: a handle to it points into
freed memory. So what a function asks of its `Rewriter` happens when it has returned, and the requests that would end
the process (an op erased that is still used, as many values as an op has results but of other types) are errors
instead.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir
from mlir import rewrite as mlir_rewrite

from .diagnostics import PassFailure, Remarks, emit_error, emit_exception
from .handles import guarded
from .registry import Option, PassInfo, add_pass, check_arguments, file_of, known_pass, plugin_of

_MAX_REWRITES = 100_000  # a pattern that keeps matching its own result would run for ever
_STAGES = {"tile": "tile", "ascendc": "ascendc"}  # of the root's dialect
_BY_COST = (
    Option(
        "target",
        "target",
        str,
        "",
        "rewrite only where that pays on this product by the model of cost; else wherever it can",
    ),
    Option("force", "force", bool, False, "rewrite also where it does not pay"),
    Option("any-rows", "any_rows", int, 0, "the number that stands for any number of rows; 0: all are as they are"),
)


@dataclass(frozen=True)
class Rewrite:
    """One rewrite pattern: `function(op, rewriter)` returns something false where it has rewritten the op. One that is
    decided `by_cost` happens only where it pays."""

    root: str
    function: Callable[[ir.OpView, Rewriter], Any]
    benefit: int
    by_cost: bool = False


class Rewriter:
    """What a rewrite changes the IR with. Ops are created as anywhere; they go before the op that is rewritten."""

    def __init__(self, inner: mlir_rewrite.PatternRewriter):
        self._inner: mlir_rewrite.PatternRewriter | None = inner
        self._edits: list[tuple[ir.Operation, list[ir.Value | None] | None]] = []
        self._moves: list[tuple[ir.Operation, ir.Operation]] = []
        self.remarks: list[str] = []

    @property
    def ip(self) -> ir.InsertionPoint:
        self._check_open()
        return self._inner.ip

    def replace_op(self, op: ir.Operation | ir.OpView, new: Any) -> None:
        """Replaces an op by an op with as many results, a value, or a list of values of the same types, when the
        function has returned; None in the list stands for a result that nothing uses (then)."""
        op = op.operation
        values = _values(new)
        fit = len(values) == len(op.results) and all(
            value is None or value.type == result.type for value, result in zip(values, op.results)
        )
        if not fit:
            has, given = (", ".join(str(value and value.type) for value in v) or "none" for v in (op.results, values))
            raise ValueError(f"'{op.name}' has results {has} and cannot be replaced by values {given}")
        self._note(op, values)

    def erase_op(self, op: ir.Operation | ir.OpView) -> None:
        """Erases an op that nothing uses (then), when the function has returned."""
        self._note(op.operation, None)

    def move_op_before(self, op: ir.Operation | ir.OpView, place: ir.Operation | ir.OpView) -> None:
        """Moves an op to right before another one, when the function has returned."""
        self._moves.append((op.operation, place.operation))

    def remark(self, text: str) -> None:
        """Says something of the rewrite, for `explain()`: what it takes for granted, say."""
        self.remarks.append(text)

    def close(self) -> None:
        """The end of the call that it serves: what it works with is gone."""
        self._inner = None
        self._edits, self._moves = [], []

    def _check_open(self) -> None:
        if self._inner is None:
            raise ValueError("a rewriter serves the call that it is given to, which is over")

    def _note(self, op: ir.Operation, values: list[ir.Value | None] | None) -> None:
        self._check_open()
        if any(op == other for other, _ in self._edits):
            raise ValueError(f"'{op.name}' is replaced or erased twice")
        self._edits.append((op, values))

    @property
    def replaced(self) -> dict[ir.Value, ir.Value | None]:
        """What stands for each result of the ops that are to be replaced."""
        pairs = ((op.results, values) for op, values in self._edits if values is not None)
        return {result: value for results, values in pairs for result, value in zip(results, values)}

    def commit(self) -> None:
        """Does what was asked for."""
        for op, place in self._moves:
            op.move_before(place)
        for op, values in self._edits:
            if values is not None and all(value is not None for value in values):
                self._inner.replace_op(op, values)
                continue
            for result, value in zip(op.results, values or ()):
                if value is not None:
                    result.replace_all_uses_with(value)
            if any(map(_is_used, op.results)):
                raise ValueError(f"'{op.name}' cannot be erased: its results are still used")
            self._inner.erase_op(op)

    def take_back(self) -> None:
        """Erases what was created for the edits, which are not to be."""
        waiting = [value for value in self.replaced.values() if value is not None]
        self._edits.clear()
        while waiting:
            owner = waiting.pop().owner
            if isinstance(owner, ir.Block) or any(map(_is_used, owner.operation.results)):
                continue
            waiting = [value for value in waiting if value.owner != owner] + list(owner.operation.operands)
            self._inner.erase_op(owner.operation)


def _is_used(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is not None


def _values(new: Any) -> list[ir.Value | None]:
    if isinstance(new, (ir.Operation, ir.OpView)):
        return list(new.operation.results)
    return [new] if isinstance(new, ir.Value) else list(new)


@dataclass(frozen=True)
class RewritePass:
    """Applies the rewrites of one name, the highest benefit first, until none matches."""

    name: str
    rewrites: tuple[Rewrite, ...]
    target: str = ""
    force: bool = False
    any_rows: int = 0

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        driver = _Driver(self.target, self.force, self.any_rows)
        with module.context as context:
            patterns = mlir_rewrite.RewritePatternSet()
            for pattern in self.rewrites:
                if not context.is_registered_operation(pattern.root) and not context.allow_unregistered_dialects:
                    whose = plugin_of(_file(pattern))
                    emit_error(
                        module, f"pass '{self.name}'{whose} has a rewrite of '{pattern.root}', which is no operation"
                    )
                    raise PassFailure
                patterns.add(pattern.root, functools.partial(driver.apply, pattern), pattern.benefit)
            config = mlir_rewrite.GreedyRewriteConfig()
            config.max_iterations = -1  # no limit: an op changed in place is met again in the next iteration only
            mlir_rewrite.apply_patterns_and_fold_greedily(module, patterns.freeze(), config)
        whose = plugin_of(_file(self.rewrites[0]))
        if isinstance(driver.raised, Exception):
            emit_exception(
                driver.raised_at, driver.raised, f"pass '{self.name}'{whose} failed", _file(self.rewrites[0])
            )
            raise PassFailure
        if driver.raised is not None:
            raise driver.raised
        if driver.applied >= _MAX_REWRITES:
            last, _ = driver.passed[-1]
            emit_error(last, f"'{self.name}'{whose} reaches no fixpoint: stopped after {_MAX_REWRITES} rewrites")
            raise PassFailure
        for kind, told in (("passed", driver.passed), ("analysis", driver.modelled), ("missed", driver.missed)):
            for where, text in told:
                remarks.add(where, kind, text)


def _file(pattern: Rewrite) -> str:
    return file_of(sys.modules[pattern.function.__module__])


class _Driver:
    """Calls rewrites from MLIR's greedy driver. Exceptions must not cross it: the first one stops all rewriting."""

    def __init__(self, target: str, force: bool, any_rows: int):
        self.target, self.force, self.any_rows = target, force, any_rows
        self.passed: list[tuple[ir.Location, str]] = []
        self.modelled: list[tuple[ir.Location, str]] = []
        self.missed: list[tuple[ir.Location, str]] = []
        self.raised: BaseException | None = None
        self.raised_at: ir.Location | None = None

    @property
    def applied(self) -> int:
        return len(self.passed)

    def apply(self, pattern: Rewrite, op: ir.OpView, rewriter: mlir_rewrite.PatternRewriter) -> bool:
        if self.raised is not None or self.applied >= _MAX_REWRITES:
            return True
        location, edits = op.location, Rewriter(rewriter)
        try:
            with guarded(pattern.function, op.context, op, erases=False), rewriter.ip, location:
                failed = pattern.function(op, edits)
            if not failed and pattern.by_cost and self.target:
                failed = self._does_not_pay(op, edits)
            if not failed:
                edits.commit()
        except BaseException as error:  # Ctrl-C too
            self.raised, self.raised_at = error, location
            return True
        finally:
            edits.close()
        if not failed:
            self.passed.append((location, "; ".join([f"rewrote '{pattern.root}'", *edits.remarks])))
        elif isinstance(failed, str) and (location, failed) not in self.missed:  # an op is tried more than once
            self.missed.append((location, failed))
        return bool(failed)

    def _does_not_pay(self, op: ir.OpView, edits: Rewriter) -> str | None:
        """Why a rewrite is not to be, by the model; None if it is."""
        from . import cost  # which needs what lowers operators

        with_it, without = cost.compared(op, edits.replaced, self.target, self.any_rows)
        modelled = f"modelled {with_it:.1f} us with it, {without:.1f} us without"
        if with_it > without and not self.force:
            edits.take_back()
            return f"{modelled}: it does not pay, but can be forced"
        self.modelled.append((op.location, modelled if with_it <= without else f"{modelled}; it is forced"))
        return None


def rewrite(
    root: str, benefit: int = 1, *, pass_name: str | None = None, stage: str | None = None, by_cost: bool = False
) -> Callable[[Callable], Callable]:
    """Function decorator: makes `function(op, rewriter)` a rewrite of the op named `root`, and a pass of it.

    The pass is called after the function, in kebab case, or `pass_name`; rewrites of one file with the same name form
    one pass, and the higher benefit is tried first. As in the MLIR bindings, a function that returns a true value has
    not matched and must not have changed anything; a string is the reason, and becomes a remark. Ops it creates go
    before `op` and get its location. `stage`: as of `register_pass`, by default that of the root's dialect. With
    `by_cost`, `jascend.compile` keeps what it has done at an op only where that pays by the model of cost, or where the
    pass is forced: each op is decided by itself.

    Raises TypeError or ValueError for a root that is no op's name, a benefit out of 0 to 65535,
    or another signature."""
    if not isinstance(root, str) or "." not in root:
        raise TypeError(f"rewrite takes the name of an operation, such as 'ascend.sort', got {root!r}")
    if not isinstance(benefit, int) or not 0 <= benefit < 1 << 16:
        raise ValueError(f"the benefit of a rewrite is an integer from 0 to 65535, got {benefit!r}")

    def register(function: Callable) -> Callable:
        check_arguments(function, f"rewrite of '{root}'", ("op", "rewriter"))
        name = pass_name or function.__name__.strip("_").replace("_", "-").lower()
        module = sys.modules[function.__module__]
        known = known_pass(name)
        earlier: Sequence[Rewrite] = (
            known.factory.rewrites if known and isinstance(known.factory, _RewriteFactory) else ()
        )
        factory = _RewriteFactory(name, (*earlier, Rewrite(root, function, benefit, by_cost)))
        docs = [function.__doc__, module.__doc__]
        if pass_name:  # a pass of several rewrites is described by its file, as others are
            docs.reverse()
        doc = inspect.cleandoc(docs[0] or docs[1] or f"Rewrites {root}.")
        where = stage or _STAGES.get(root.partition(".")[0], "graph")
        options = _BY_COST if any(each.by_cost for each in factory.rewrites) else ()
        add_pass(PassInfo(name, file_of(module), doc, options, factory, stage=where))
        return function

    return register


@dataclass(frozen=True)
class _RewriteFactory:
    name: str
    rewrites: tuple[Rewrite, ...]

    def __call__(self, **options: str | bool | int) -> RewritePass:
        return RewritePass(self.name, self.rewrites, **options)
