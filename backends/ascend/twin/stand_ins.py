"""Headers that a kernel's source asks for and that only CANN has, made where they are missed.

Parts of the API by name, such as "basic_api/kernel_tensor.h": the twin's API is one header. And the host's
tiling header of the older kind, given as `includes=`: the CANN build runs the host's code and writes a header with the
structs alone; here they are taken from the text, and what else the header includes and declares stays with the host.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from jascend.backends.ascend.files import write_whole

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_PART_OF_THE_API = re.compile(r"(basic_api|adv_api|lib)/[\w/]+\.h"
                              r"|kernel_(\w+_intf|tensor|common|type|event|struct_\w+)\.h")
_COMMENTS = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TILING = re.compile(r"BEGIN_TILING_DATA_DEF\s*\(.*?END_TILING_DATA_DEF\s*;?"
                     r"|REGISTER_TILING_DATA_CLASS\s*\([^)]*\)\s*;?"
                     r"|^[ \t]*(?:(?:static|inline)\s+)*const(?:expr)?\s[^;{}()]*=[^;{}]*;", re.DOTALL | re.MULTILINE)


_LAUNCH = re.compile(r"\b\w+\s*(?:<[^<>;{}]*>)?\s*<<<([^;{}]*?)>>>\s*\(")


def without_launches(source: Path) -> str | None:
    """A source whose host code launches kernels (`add<<<blocks, nullptr, stream>>>(x, y)`) without that: the functions
    around stay, for the twin does not call them. None where there is no such launch."""
    text = source.read_text(errors="replace")
    changed, count = _LAUNCH.subn(r"twin::HostLaunches(\1)(", text)
    return f'#line 1 "{source}"\n{changed}' if count else None


def write(directory: Path, name: str, text: str) -> Path:
    """Writes a header, once for all that write the same."""
    path = directory / name
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return path


def api_headers(texts: Iterable[str], known: Iterable[Path], directory: Path) -> Path | None:
    """A directory with the parts of the API that `texts` include and no directory of `known` has; None without any."""
    names = {name for text in texts for name in _INCLUDE.findall(text) if _PART_OF_THE_API.fullmatch(name)}
    missing = sorted(name for name in names if not any((base / name).is_file() for base in known))
    if not missing:
        return None
    place = directory / f"api-{hashlib.sha256(repr(missing).encode()).hexdigest()[:16]}"
    for name in missing:
        write(place, name, '#pragma once\n#include "kernel_operator.h"\n')
    return place


def kernels_tiling(header: Path, directory: Path) -> Path:
    """What a kernel reads of the host's tiling header: the header itself unless it needs more of CANN than the twin
    has."""
    text = _COMMENTS.sub(lambda match: match[1] or " ", header.read_text(errors="replace"))
    if "BEGIN_TILING_DATA_DEF" not in text or set(_INCLUDE.findall(text)) <= {"register/tilingdata_base.h", "cstdint"}:
        return header
    pieces = list(dict.fromkeys(_pieces(header, set())))
    made = '#pragma once\n#include "register/tilingdata_base.h"\nnamespace optiling {\n' + "\n".join(pieces) + "\n}\n"
    return write(directory / f"tiling-{hashlib.sha256(made.encode()).hexdigest()[:16]}", header.name, made)


def _pieces(header: Path, seen: set[Path]) -> Iterable[str]:
    """Structs, their registrations and constants of a header and of those beside it that it includes, in order."""
    if header in seen:
        return
    seen.add(header)
    text = _COMMENTS.sub(lambda match: match[1] or " ", header.read_text(errors="replace"))
    for name in _INCLUDE.findall(text):
        if (header.parent / name).is_file():
            yield from _pieces((header.parent / name).resolve(), seen)
    yield from (re.sub(r"^[ \t]+", "", match[0], flags=re.MULTILINE) for match in _TILING.finditer(text))
