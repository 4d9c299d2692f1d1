"""Compiled programs on disk, by content.

The name of an entry is a hash of all that decides the result: the module's text, the target, the plugins' contents and
those of operators from outside, the sources of the compiler itself and the version of MLIR. An entry is written under a
temporary name and renamed, so processes that compile the same program at the same time each leave a complete one. It
starts with a hash of the rest: one that was cut short or changed is compiled anew.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Callable, Collection, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import jascend.dialect
import jascend.passes
from jascend.passes.plugins import Plugin, fingerprint, operator_files

from .files import cache_directory, write_whole

_DIGEST = 32  # bytes
_MLIR = "xtc-mlir-python-bindings"


def compiled(
    text: str,
    target: str,
    name: str,
    plugins: Sequence[Plugin],
    build: Callable[[], Any],
    forbid: Collection[str] = (),
    force: Collection[str] = (),
    any_rows: tuple[int, int] = (0, 0),
) -> Any:
    """What `build()` makes of a module's text; from disk, where an equal one was made before."""
    entry = cache_directory() / "programs" / key(text, target, name, plugins, forbid, force, any_rows)
    found = _read(entry)
    if found is None:
        found = build()
        _write(entry, found)
    return found


def key(
    text: str,
    target: str,
    name: str,
    plugins: Sequence[Plugin],
    forbid: Collection[str] = (),
    force: Collection[str] = (),
    any_rows: tuple[int, int] = (0, 0),
) -> str:
    digest = hashlib.sha256()
    passes = [p for each in plugins for p in each.passes]
    names = (_compiler(), target, name, *map(str, any_rows), *sorted(forbid), "", *sorted(force), "", *passes)
    sources = [fingerprint(each.files) for each in plugins]
    for part in (*map(str.encode, names), *sources, fingerprint(operator_files()), text.encode()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


@functools.cache
def _compiler() -> str:
    """Hash of the compiler's sources, and of its figures, as this process has them."""
    digest = hashlib.sha256()
    backend = Path(__file__).parent
    roots = [Path(jascend.dialect.__file__).parent, Path(jascend.passes.__file__).parent, backend / "codegen"]
    for root in roots:
        for path in sorted((*root.rglob("*.py"), *root.rglob("*.json"))):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    for path in sorted(backend.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    try:
        digest.update(metadata.version(_MLIR).encode())
    except metadata.PackageNotFoundError:  # another provider of the bindings
        pass
    return digest.hexdigest()


def _read(entry: Path) -> Any | None:
    try:
        data = entry.read_bytes()
    except OSError:
        return None
    head, body = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(body).digest() != head:
        return None
    return pickle.loads(body)


def _write(entry: Path, value: Any) -> None:
    """A directory that cannot be written to is no error: the next process compiles again."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_whole(entry, hashlib.sha256(body).digest() + body)
    except OSError:
        pass
