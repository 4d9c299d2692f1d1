"""Where passes are registered and found.

A pass is one file: a module docstring with the reasoning and the IR before and after, and a frozen dataclass whose
fields are the options.

    @register_pass("allocate-ub")
    @dataclass(frozen=True)
    class AllocateUb:
        capacity: int = option(196608, "bytes of unified buffer")

        def run(self, module: ir.Operation, remarks: Remarks) -> None: ...

A rewrite of one op is a function; it becomes a pass that applies it wherever it matches.

    @rewrite("ascend.moe_gating_top_k", benefit=2)
    def fold_bias(op, rewriter): ...          # the pass `fold-bias`

Modules are imported when a pass of theirs is asked for: `allocate-ub` lives in `jascend/passes/allocate_ub.py`, in a
file given as plugin, or in a module that an installed package names in the entry-point group `jascend.passes`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import re
import sys
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlir import ir
from mlir import rewrite as mlir_rewrite

from .diagnostics import Diagnostic, PassFailure, Position, Remarks, emit_error, of_exception, render

PACKAGE = "jascend.passes"
_KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_REWRITES = 100_000  # a pattern that keeps matching its own result would run for ever


class PluginError(Exception):
    """A plugin file that cannot be loaded; the text is a diagnostic."""

    def __init__(self, diagnostic: Diagnostic):
        super().__init__(render([diagnostic]).rstrip())
        self.diagnostic = diagnostic


@dataclass(frozen=True)
class Option:
    name: str  # as written in a pipeline: kebab case
    field: str
    type: type
    default: Any
    doc: str

    def parse(self, text: str) -> Any:
        if self.type is bool:
            if text not in ("true", "false"):
                raise ValueError(f"option '{self.name}' expects true or false, got '{text}'")
            return text == "true"
        try:
            return self.type(text)
        except ValueError:
            kind = {int: "an integer", float: "a number"}[self.type]
            raise ValueError(f"option '{self.name}' expects {kind}, got '{text}'") from None


@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass: its flag, its documentation, its options, and how to make one. `touches` are the ops that it
    makes or changes, where it leaves all others as they are: only those of ours among them are verified anew."""

    name: str
    file: str
    doc: str
    options: tuple[Option, ...]
    factory: Callable[..., Any]
    touches: tuple[str, ...] | None = None

    @property
    def summary(self) -> str:
        return self.doc.strip().partition("\n")[0]

    def make(self, options: Mapping[str, str]) -> Any:
        """The pass with options given as text. Raises ValueError for an unknown option or a bad value."""
        known = {option.name: option for option in self.options}
        values = {}
        for name, text in options.items():
            option = known.get(name.replace("_", "-"))
            if option is None:
                allowed = ", ".join(known) or "it has none"
                raise ValueError(f"pass '{self.name}' has no option '{name}' (options: {allowed})")
            values[option.field] = option.parse(text)
        return self.factory(**values)


_passes: dict[str, PassInfo] = {}


def option(default: int | str | bool | float, doc: str) -> Any:
    """A dataclass field that is an option of a pass."""
    return field(default=default, metadata={"doc": doc})


def register_pass(name: str, *, touches: tuple[str, ...] | None = None) -> Callable[[type], type]:
    """Class decorator: makes a frozen dataclass with a method `run(module, remarks)` the pass `name`; `touches` as in
    `PassInfo`."""

    def register(cls: type) -> type:
        if not (dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen):
            raise TypeError(f"pass '{name}': {cls.__name__} must be a frozen dataclass")
        if not callable(getattr(cls, "run", None)):
            raise TypeError(f"pass '{name}': {cls.__name__} has no method run(module, remarks)")
        module = sys.modules[cls.__module__]
        _add(PassInfo(name, _file_of(module), module.__doc__ or "", _options(name, cls), cls, touches))
        cls.name = name
        return cls

    return register


def _options(pass_name: str, cls: type) -> tuple[Option, ...]:
    types = typing.get_type_hints(cls)
    options = []
    for entry in dataclasses.fields(cls):
        if types[entry.name] not in (int, str, bool, float):
            raise TypeError(f"pass '{pass_name}': option '{entry.name}' must be an int, str, bool or float")
        if entry.default is dataclasses.MISSING:
            raise TypeError(f"pass '{pass_name}': option '{entry.name}' needs a default")
        kebab = entry.name.replace("_", "-")
        options.append(Option(kebab, entry.name, types[entry.name], entry.default, entry.metadata.get("doc", "")))
    return tuple(options)


def _add(info: PassInfo) -> None:
    if not _KEBAB.fullmatch(info.name):
        raise ValueError(f"a pass name is in kebab case, got '{info.name}'")
    known = _passes.get(info.name)
    if known is not None and known.file != info.file:
        raise ValueError(f"pass '{info.name}' of {info.file} is already registered by {known.file}")
    _passes[info.name] = info


def _file_of(module: Any) -> str:
    return getattr(module, "__file__", None) or module.__name__


# -- rewrites -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rewrite:
    """One rewrite pattern: `function(op, rewriter)` returns something false where it has rewritten the op."""

    root: str
    function: Callable[[ir.OpView, mlir_rewrite.PatternRewriter], Any]
    benefit: int


@dataclass(frozen=True)
class RewritePass:
    """Applies the rewrites of one name, the highest benefit first, until none matches."""

    name: str
    rewrites: tuple[Rewrite, ...]

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        driver = _Driver(self.name, remarks)
        with module.context:
            patterns = mlir_rewrite.RewritePatternSet()
            for pattern in self.rewrites:
                patterns.add(pattern.root, functools.partial(driver.apply, pattern), pattern.benefit)
            config = mlir_rewrite.GreedyRewriteConfig()
            config.max_iterations = -1  # no limit: an op changed in place is met again in the next iteration only
            mlir_rewrite.apply_patterns_and_fold_greedily(module, patterns.freeze(), config)
        for where, reason in driver.missed:
            remarks.add(where, "missed", reason)
        if driver.raised is not None:
            raise driver.raised
        if driver.applied >= _MAX_REWRITES:
            emit_error(module, f"'{self.name}' reaches no fixpoint: stopped after {_MAX_REWRITES} rewrites")
            raise PassFailure


class _Driver:
    """Calls rewrites from MLIR's greedy driver. Exceptions must not cross it: the first one stops all rewriting."""

    def __init__(self, name: str, remarks: Remarks):
        self.name, self.remarks = name, remarks
        self.applied = 0
        self.missed: list[tuple[ir.Location, str]] = []
        self.raised: BaseException | None = None

    def apply(self, pattern: Rewrite, op: ir.OpView, rewriter: mlir_rewrite.PatternRewriter) -> bool:
        if self.raised is not None or self.applied >= _MAX_REWRITES:
            return True
        location = op.location
        try:
            with rewriter.ip, location:
                failed = pattern.function(op, rewriter)
        except BaseException as error:  # Ctrl-C too
            self.raised = error
            return True
        if not failed:
            self.applied += 1
            self.remarks.add(location, "passed", f"rewrote '{pattern.root}'")
        elif isinstance(failed, str) and (location, failed) not in self.missed:  # an op is tried more than once
            self.missed.append((location, failed))
        return bool(failed)


def rewrite(root: str, benefit: int = 1, *, pass_name: str | None = None) -> Callable[[Callable], Callable]:
    """Function decorator: makes `function(op, rewriter)` a rewrite of the op named `root`, and a pass of it.

    The pass is called after the function, in kebab case, or `pass_name`; rewrites of one file with the same name form
    one pass, and the higher benefit is tried first. As in the MLIR bindings, a function that returns a true value has
    not matched and must not have changed anything; a string is the reason, and becomes a remark. Ops it creates go
    before `op` and get its location. Note that `rewriter.erase_op` takes an `ir.Operation`: `op.operation`."""

    def register(function: Callable) -> Callable:
        name = pass_name or function.__name__.strip("_").replace("_", "-").lower()
        module = sys.modules[function.__module__]
        known = _passes.get(name)
        earlier = known.factory.rewrites if known and isinstance(known.factory, _RewriteFactory) else ()
        factory = _RewriteFactory(name, (*earlier, Rewrite(root, function, benefit)))
        docs = [function.__doc__, module.__doc__]
        if pass_name:  # a pass of several rewrites is described by its file, as others are
            docs.reverse()
        doc = docs[0] or docs[1] or f"Rewrites {root}."
        _add(PassInfo(name, _file_of(module), doc, (), factory))
        return function

    return register


@dataclass(frozen=True)
class _RewriteFactory:
    name: str
    rewrites: tuple[Rewrite, ...]

    def __call__(self) -> RewritePass:
        return RewritePass(self.name, self.rewrites)


# -- finding --------------------------------------------------------------------------------------------------------


def find_pass(name: str) -> PassInfo | None:
    """The pass called `name`, importing what may hold it; None if it is not one of ours or of a plugin."""
    if name not in _passes and _KEBAB.fullmatch(name):
        module = f"{PACKAGE}.{name.replace('-', '_')}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
    if name not in _passes:
        _load_entry_points()
    return _passes.get(name)


def all_passes() -> dict[str, PassInfo]:
    """Every pass there is, by name."""
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{PACKAGE}.{module.name}")
    _load_entry_points()
    return dict(sorted(_passes.items()))


@functools.cache
def _load_entry_points() -> None:
    for entry in importlib.metadata.entry_points(group=PACKAGE):
        try:
            entry.load()
        except Exception as error:  # somebody else's package must not take the tool down
            where = f"entry point '{entry.name}' ({entry.value})"
            warnings.warn(f"passes of {where} cannot be loaded: {error}", stacklevel=2)


def load_plugin(path: str | Path) -> tuple[str, ...]:
    """Runs a Python file that registers passes; returns their names. Loading it again replaces them.

    Raises PluginError if the file cannot be read, fails, or registers nothing."""
    file = str(Path(path).resolve())
    module_name = "jascend_plugin_" + re.sub(r"\W", "_", file)
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or not Path(file).is_file():
        raise PluginError(Diagnostic("error", f"cannot load plugin '{path}': no such Python file"))
    _forget(file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and type hints look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        _forget(file)
        raise PluginError(of_exception(error, f"cannot load plugin '{path}'", Position(file, 1, 1), file)) from error
    names = tuple(name for name, info in _passes.items() if info.file == file)
    if not names:
        raise PluginError(Diagnostic("error", f"plugin '{path}' registers no pass", Position(file, 1, 1)))
    return names


def _forget(file: str) -> None:
    for name in [name for name, info in _passes.items() if info.file == file]:
        del _passes[name]
