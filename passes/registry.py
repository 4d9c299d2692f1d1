"""Where passes are registered and found.

A pass is one file: a module docstring with the reasoning and the IR before and after, and a frozen dataclass whose
fields are the options.

    @register_pass("allocate-ub")
    @dataclass(frozen=True)
    class AllocateUb:
        capacity: int = option(196608, "bytes of unified buffer")

        def run(self, module: ir.Operation, remarks: Remarks) -> None: ...

A rewrite of one op is a function, see `rewriting`. Modules are imported when a pass of theirs is asked for:
`allocate-ub` lives in `jascend/passes/allocate_ub.py`, or in a plugin, see `plugins`.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PACKAGE = "jascend.passes"
STAGES = ("graph", "tile", "ascendc")
_KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


class BadPlugin(Exception):
    """What is wrong with a plugin, and where in it: line and column."""

    def __init__(self, message: str, line: int = 1, column: int = 1):
        super().__init__(message)
        self.line, self.column = line, column


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
    """What is known of a pass: its flag, its documentation, its options, and how to make one. `touches` are the ops
    that it makes or changes, where it leaves all others as they are: only those of ours among them are verified anew.
    `stage` is the level on which `jascend.compile` runs it if it is a plugin's."""

    name: str
    file: str
    doc: str
    options: tuple[Option, ...]
    factory: Callable[..., Any]
    touches: tuple[str, ...] | None = None
    stage: str = "graph"

    @property
    def by_cost(self) -> bool:
        """Whether it can be decided by the model of cost for a product, and forced."""
        return {"target", "force", "any-rows"} <= {option.name for option in self.options}

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


def register_pass(
    name: str, *, stage: str = "graph", touches: tuple[str, ...] | None = None
) -> Callable[[type], type]:
    """Class decorator: makes a frozen dataclass with a method `run(module, remarks)` the pass `name`; `touches` as
    in `PassInfo`.

    `stage` says when `jascend.compile` runs it if a plugin registers it: "graph", on the imported graph, before our
    fusions; "tile", on kernels of tiles, before loads are pipelined; "ascendc", before buffers get addresses."""

    def register(cls: type) -> type:
        if not (dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen):
            raise TypeError(f"pass '{name}': {cls.__name__} must be a frozen dataclass")
        if not callable(getattr(cls, "run", None)):
            raise TypeError(f"pass '{name}': {cls.__name__} has no method run(module, remarks)")
        check_arguments(cls.run, f"pass '{name}': {cls.__name__}.run", ("self", "module", "remarks"))
        module = sys.modules[cls.__module__]
        doc = _doc_of(cls, module)
        add_pass(PassInfo(name, file_of(module), doc, _options(name, cls), cls, touches, stage))
        cls.name = name
        return cls

    return register


def _doc_of(cls: type, module: Any) -> str:
    """Of a plugin, whose file may hold several passes, the class's documentation; else, and without it, the file's."""
    own = cls.__doc__ or ""
    generated = own.startswith(f"{cls.__name__}(")  # by `dataclass`
    return inspect.cleandoc((own if own and not generated and not is_ours(file_of(module)) else module.__doc__) or "")


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


def check_arguments(function: Callable, what: str, wanted: tuple[str, ...]) -> None:
    """Raises TypeError unless a function can be called with so many arguments."""
    if not callable(function):
        raise TypeError(f"{what} must be a function of ({', '.join(wanted)}), got {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise TypeError(f"{what} must be a plain function: a call of {function.__name__} would only prepare its work")
    try:
        inspect.signature(function).bind(*wanted)
    except TypeError as error:
        signature = f"{function.__name__}{inspect.signature(function)}"
        raise TypeError(f"{what} must take ({', '.join(wanted)}), got {signature}: {error}") from None


def add_pass(info: PassInfo) -> None:
    """Makes a pass known. Raises ValueError for a name that is taken, or is none, and for an unknown stage."""
    if not _KEBAB.fullmatch(info.name):
        raise ValueError(f"a pass name is in kebab case, got '{info.name}'")
    if info.stage not in STAGES:
        raise ValueError(f"pass '{info.name}': the stage must be one of {', '.join(STAGES)}, got {info.stage!r}")
    known = _passes.get(info.name)
    if known is not None and known.file != info.file:
        raise ValueError(f"pass '{info.name}' of {info.file} is already registered by {known.file}")
    _passes[info.name] = info


def known_pass(name: str) -> PassInfo | None:
    """The pass called `name`, if what registers it has been imported."""
    return _passes.get(name)


def registered() -> tuple[str, ...]:
    """The passes that are known by now, in the order in which they were registered."""
    return tuple(_passes)


def passes_of(file: str) -> tuple[str, ...]:
    """The passes that a file has registered, in order."""
    return tuple(name for name, info in _passes.items() if info.file == file)


def forget_passes(file: str) -> None:
    for name in passes_of(file):
        del _passes[name]


def file_of(module: Any) -> str:
    return getattr(module, "__file__", None) or module.__name__


def is_ours(file: str) -> bool:
    """Whether a file is one of this package's."""
    return os.path.abspath(file).startswith(_DIRECTORY)


plugin_names: dict[str, str] = {}  # what each plugin was asked for by, by its files


def plugin_of(file: str) -> str:
    """" of plugin 'my_fusion.py'", for messages about what a file has registered; nothing for what no plugin has."""
    return f" of plugin '{plugin_names[file]}'" if file in plugin_names else ""


# -- finding --------------------------------------------------------------------------------------------------------


def find_pass(name: str) -> PassInfo | None:
    """The pass called `name`, importing what may hold it; None if it is not one of ours or of a plugin."""
    if name not in _passes and _KEBAB.fullmatch(name):
        module = f"{PACKAGE}.{name.replace('-', '_')}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
    if name not in _passes:
        from .plugins import entry_points  # plugins need the registry

        entry_points()
    return _passes.get(name)


def all_passes() -> dict[str, PassInfo]:
    """Every pass there is, by name."""
    from .plugins import entry_points

    package = importlib.import_module(PACKAGE)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{PACKAGE}.{module.name}")
    entry_points()
    return dict(sorted(_passes.items()))
