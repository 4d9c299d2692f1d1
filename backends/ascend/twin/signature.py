"""How a kernel's source declares its entry, and so how it is launched."""

import ctypes
import re
from dataclasses import dataclass
from pathlib import Path

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"((?:\w+::)*)(\w+)\s*(<[\w\s,:<>*+.'-]*>)?")
_POINTER = re.compile(r"(GM_ADDR\b|(const\s+)?(__gm__\s+)?(const\s+)?[\w:<>]+\s*\*|__gm__)")
_MIX = re.compile(r"__mix__\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")


@dataclass(frozen=True)
class Signature:
    """An entry as its source spells it.

    Attributes:
        plain: declared extern "C", so that it can be looked up by its name.
        qualifiers: what stands before its name.
        parameters: the text of each.
    """

    plain: bool
    qualifiers: str
    parameters: tuple[str, ...]

    @property
    def by_value(self) -> list[str]:
        """The parameters that are no pointers."""
        return [p for p in self.parameters if not _POINTER.match(p)]

    @property
    def vector_only(self) -> bool:
        """Declared __vector__: without the scheduler that blocks meet through."""
        return "__vector__" in self.qualifiers

    def needs_cube(self) -> bool:
        mix = _MIX.search(self.qualifiers)
        return "__cube__" in self.qualifiers or (mix is not None and mix[1] != "0")

    def direct(self, arguments: int) -> bool:
        """Whether a launch of so many arguments gives all, and not the two that framework kernels end with."""
        if self.by_value or self.vector_only or _MIX.search(self.qualifiers):
            return True
        return len(self.parameters) == arguments


def valid(entry: str) -> bool:
    """Whether it is a kernel's name: in a namespace or not, with template arguments or not."""
    return _NAME.fullmatch(entry) is not None


def signature(source: Path, entry: str) -> Signature | None:
    """None where the source does not declare it in so many words: a macro does, or another file."""
    text = _COMMENTS.sub(" ", source.read_text(errors="replace"))
    name = _NAME.fullmatch(entry)
    if name is None:
        return None
    words = r"__\w+__\s*(?:\([^()]*\)\s*)?|\b(?:void|inline|static)\b\s*"
    match = re.search(rf'(?P<before>(extern\s+"C"\s+)?(?:{words})*)\b{re.escape(name[2])}\s*'
                      rf"\((?P<parameters>[^()]*)\)\s*\{{", text)  # fmt: skip
    if not match or "__global__" not in match["before"]:
        return None
    # extern "C" { ... } around it counts too.
    opened = re.findall(r'extern\s+"C"\s*\{', text[: match.start()])
    plain = (match[2] is not None or bool(opened)) and name[3] is None and not name[1]
    parts = (part.strip() for part in _split(match["parameters"]))
    return Signature(plain, match["before"], tuple(part for part in parts if part and part != "void"))


def _split(parameters: str) -> list[str]:
    """At commas outside template arguments."""
    parts, depth = [""], 0
    for c in parameters:
        depth += (c == "<") - (c == ">")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


class DirectObject:
    """A shared object with the entry behind TWIN_DIRECT (direct.h)."""

    def __init__(self, path: Path):
        self._library = ctypes.CDLL(str(path))
        count = self._library.twin_direct_count()
        kinds, sizes = ctypes.create_string_buffer(count + 1), (ctypes.c_uint32 * max(count, 1))()
        self._library.twin_direct_describe(kinds, sizes)
        letters = kinds.raw[:count].decode()
        self.parameters = [None if kind == "p" else (kind, size) for kind, size in zip(letters, sizes)]

    @property
    def call(self) -> int:
        return ctypes.cast(self._library.twin_direct_call, ctypes.c_void_p).value


def wrapper(entry: str, vector_only: bool) -> str:
    """What is compiled after the source, so that the entry can be called with any parameters."""
    return f'#include "twin/direct.h"\nTWIN_DIRECT({_protected(entry)}, {str(vector_only).lower()})\n'


def _protected(entry: str) -> str:
    return f"({entry})" if "," in entry else entry
