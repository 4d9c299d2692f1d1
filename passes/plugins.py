"""Plugins: passes, rewrites and operators from outside, loaded through the registries that our own go through.

A plugin is

- a Python file, or an installed module: what it registers with `rewrite`, `register_pass`, `dialect.define` and
  `lowering`;
- a `.pdll` file of patterns, or an `.mlir` file with `pdl.pattern`s or a `transform.named_sequence`: a pass named after
  the file, see `declarative`;
- the name of an entry point in the group `jascend.passes` of an installed package. Those are there without being asked
  for.

Whatever is wrong with one is a `PluginError` that names it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jascend.dialect import ASCEND

from . import registry
from .diagnostics import Diagnostic, Position, of_exception, render
from .lowerings.lowering import forget_lowerings, lowering_files, lowerings_of

_PYTHON, _DECLARATIVE = ".py", (".pdll", ".mlir")
_KINDS = "a .py, .pdll or .mlir file, an installed module, or the name of an entry point"


class PluginError(Exception):
    """A plugin that cannot be loaded; the text is a diagnostic."""

    def __init__(self, diagnostic: Diagnostic):
        super().__init__(render([diagnostic]).rstrip())
        self.diagnostic = diagnostic


@dataclass(frozen=True)
class Plugin:
    """What a plugin has registered.

    Attributes:
      name: what it was asked for by.
      files: what it is made of, the one that was asked for first.
      passes: names of its passes, in the order in which they run.
      operators: names of its operators.
    """

    name: str
    files: tuple[str, ...]
    passes: tuple[str, ...]
    operators: tuple[str, ...] = ()


def load_plugin(plugin: str | os.PathLike | types.ModuleType) -> tuple[str, ...]:
    """Loads a plugin; the names of its passes. A file that is loaded again replaces what it registered."""
    return load(plugin).passes


def load(plugin: str | os.PathLike | types.ModuleType) -> Plugin:
    """Loads a plugin.

    Args:
      plugin: a path, the name of an installed module or of an entry point, or a module.
    Raises: PluginError if it cannot be found, fails, or registers nothing."""
    if isinstance(plugin, types.ModuleType):
        return _of_module(plugin.__name__, lambda: plugin)
    if not isinstance(plugin, (str, os.PathLike)):
        raise PluginError(Diagnostic("error", f"a plugin is {_KINDS}, got {plugin!r}"))
    path, name = Path(plugin), str(plugin)
    if path.suffix == _PYTHON and path.is_file():
        return _of_file(name, str(path.resolve()))
    if path.suffix in _DECLARATIVE and path.is_file():
        from .declarative import register_file

        file = str(path.resolve())
        registry.forget_passes(file)
        return _loaded(name, file, lambda: register_file(file))
    entry = next(
        (entry for entry in importlib.metadata.entry_points(group=registry.PACKAGE) if entry.name == name), None
    )
    if entry is not None:
        return _of_module(name, entry.load)
    if re.fullmatch(r"[A-Za-z_][\w.]*", name) and not path.exists() and path.suffix not in (_PYTHON, *_DECLARATIVE):
        return _of_module(name, functools.partial(importlib.import_module, name))
    what = "" if path.suffix in (_PYTHON, *_DECLARATIVE) else f"; a plugin is {_KINDS}"
    raise PluginError(Diagnostic("error", f"cannot load plugin '{name}': no such file{what}"))


@functools.cache
def entry_points() -> tuple[Plugin, ...]:
    """The plugins of installed packages. One that cannot be loaded is a warning: somebody else's package must not take
    the tool down."""
    found = []
    for entry in importlib.metadata.entry_points(group=registry.PACKAGE):
        try:
            found.append(_of_module(entry.name, entry.load))
        except PluginError as error:
            why = error.diagnostic.message.removeprefix(f"cannot load plugin '{entry.name}': ")
            text = f"passes of entry point '{entry.name}' ({entry.value}) cannot be loaded: {why}"
            warnings.warn(text, stacklevel=2)
    return tuple(found)


def operator_files() -> list[str]:
    """The files, not ours, that define operators or their lowerings."""
    files = {*(file for _, file in ASCEND.added.values()), *lowering_files()}
    return sorted(file for file in files if not registry.is_ours(file) and os.path.isfile(file))


def fingerprint(files: Iterable[str]) -> bytes:
    """Hash of files as they are now."""
    digest = hashlib.sha256()
    for file in files:
        content = Path(file).read_bytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


# -- loading --------------------------------------------------------------------------------------------------------


def _of_file(name: str, file: str) -> Plugin:
    """Runs a Python file, unless the program has imported it anyway, or is it: an operator is there once."""
    module_name = "jascend_plugin_" + re.sub(r"\W", "_", file)
    modules = [(key, getattr(module, "__file__", None)) for key, module in list(sys.modules.items())]
    if any(key != module_name and path and os.path.realpath(path) == file for key, path in modules):
        return _loaded(name, file, lambda: None)
    spec = importlib.util.spec_from_file_location(module_name, file)

    def run() -> None:
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses and type hints look their module up
        spec.loader.exec_module(module)

    _forget(file)
    return _loaded(name, file, run)


def _of_module(name: str, load: Callable[[], Any]) -> Plugin:
    """Imports a module; of a package, what all its modules have registered."""
    try:
        value = load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # `sys.exit` too
        raise PluginError(of_exception(error, f"cannot load plugin '{name}'")) from error
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", None))
    file = getattr(module, "__file__", None)
    if file is None:
        raise PluginError(
            Diagnostic("error", f"cannot load plugin '{name}': it is no module with a file, but {value!r}")
        )
    return _loaded(name, file, lambda: None)


def _loaded(name: str, file: str, load: Callable[[], None]) -> Plugin:
    """What `load` registers for a file, and for those that belong to it."""
    known = _registered()
    try:
        load()
    except registry.BadPlugin as error:
        position = Position(file, error.line, error.column)
        raise PluginError(Diagnostic("error", f"cannot load plugin '{name}': {error}", position)) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # `sys.exit` too
        for added in _registered() - known:
            _forget(added)
        raise PluginError(of_exception(error, f"cannot load plugin '{name}'", Position(file, 1, 1), file)) from error
    own = [file, *sorted(f for f in _registered() if f != file and (f not in known or _is_within(f, file)))]
    passes = tuple(p for p in registry.registered() if registry.known_pass(p).file in own)
    operators = tuple(op for f in own for op in ASCEND.defined_by(f))
    if not passes and not operators and not any(map(lowerings_of, own)):
        raise PluginError(
            Diagnostic("error", f"plugin '{name}' registers no pass and no operator", Position(file, 1, 1))
        )
    registry.plugin_names.update(dict.fromkeys(own, name))
    return Plugin(name, tuple(dict.fromkeys([*own, *_imported_beside(file)])), passes, operators)


def _registered() -> set[str]:
    """The files, not ours, that have registered something."""
    passes = (registry.known_pass(name).file for name in registry.registered())
    files: Iterable[str] = (*passes, *(file for _, file in ASCEND.added.values()), *lowering_files())
    return {file for file in files if not registry.is_ours(file)}


def _is_within(file: str, package: str) -> bool:
    """Whether a file is a module of the package that has `package` as its `__init__.py`."""
    return os.path.basename(package) == "__init__.py" and file.startswith(os.path.join(os.path.dirname(package), ""))


def _imported_beside(file: str) -> list[str]:
    """The Python files in a plugin's directory and below that have been imported: it may consist of several."""
    directory = os.path.join(os.path.dirname(file), "")
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return sorted(f for f in files if f.startswith(directory) and f.endswith(_PYTHON) and os.path.isfile(f))


def _forget(file: str) -> None:
    registry.forget_passes(file)
    ASCEND.forget(file)
    forget_lowerings(file)
