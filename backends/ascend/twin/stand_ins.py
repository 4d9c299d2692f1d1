"""Headers that a kernel's source asks for and that only CANN has, made where they are missed.

Parts of the API by name, such as "basic_api/kernel_tensor.h": the twin's API is one header. And the host's
tiling header of the older kind, given as `includes=`: the CANN build runs the host's code and writes a header with the
structs alone; here they are taken from the text, and what else the header includes and declares stays with the host.

And what is the host's in a source that launches its own kernels: the twin does not run it.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from jascend.backends.ascend.files import write_whole

from . import device_code

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_PART_OF_THE_API = re.compile(r"(basic_api|adv_api|lib)/[\w/]+\.h"
                              r"|kernel_(\w+_intf|tensor|common|type|event|struct_\w+)\.h")
_COMMENTS = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TILING = re.compile(r"BEGIN_TILING_DATA_DEF\s*\(.*?END_TILING_DATA_DEF\s*;?"
                     r"|REGISTER_TILING_DATA_CLASS\s*\([^)]*\)\s*;?"
                     r"|^[ \t]*(?:(?:static|inline)\s+)*const(?:expr)?\s[^;{}()]*=[^;{}]*;", re.DOTALL | re.MULTILINE)
_LAUNCH = re.compile(r"\b\w+\s*(?:<[^<>;{}]*>)?\s*<<<([^;{}]*?)>>>\s*\(")
_ASIDE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
                    re.DOTALL | re.MULTILINE)
# A macro in front of a function's name may be one of these.
_DEVICE = re.compile(
    r"__(aicore|global|vector|cube|mix|sim[dt]_\w+)__|\bconstexpr\b|^[^(]*\b[A-Z][A-Z0-9_]{3,}\b(?!\s*[:(<,>])"
)
_HOST_API = re.compile(r"acl(nn\w*)?/\w+\.h")


def without_host(source: Path) -> str | None:
    """A source that launches its kernels (`add<<<blocks, nullptr, stream>>>(x, y)`) without what only the host
    compiles: functions that are not declared for the device, the headers of the host's API and of the C++ library, and
    headers beside the source that need those. Lines stay where they are. None where nothing is launched."""
    text = source.read_text(errors="replace")
    if not _LAUNCH.search(text):
        return None
    changed = list(text)
    for start, end in _host_functions(_blank(text)):
        changed[start:end] = _spaces(text[start:end])
    text = _INCLUDE.sub(lambda match: "" if _is_hosts(match[1], source.parent) else match[0], "".join(changed))
    text = _LAUNCH.sub(r"twin::HostLaunches(\1)(", text)  # in what is left: it is not run either
    return f'#line 1 "{source}"\n{text}'


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _blank(text: str) -> str:
    """The text with spaces for comments, literals and directives."""
    return _ASIDE.sub(lambda match: _spaces(match[0]), text)


def _host_functions(code: str) -> Iterable[tuple[int, int]]:
    """From where to where the definitions of functions go, at the level of namespaces, that are not the device's."""
    start = at = 0
    while found := re.compile(r"[{};]").search(code, at):
        at = found.end()
        header = code[start : found.start()]
        if found[0] == "{" and not re.search(r"\bnamespace\b[^()]*$|\bextern\s*$", header):
            at = _closing(code, at)
            is_function = re.search(r"\)[^()=]*$", header) and not re.search(
                r"\b(class|struct|union|enum)\b[^()]*$", header
            )
            if is_function and not _DEVICE.search(header):
                yield start, at
        start = at


def _closing(code: str, at: int) -> int:
    """Behind the brace that closes the one before `at`."""
    depth = 1
    while depth and (found := re.compile(r"[{}]").search(code, at)):
        depth += 1 if found[0] == "{" else -1
        at = found.end()
    return at


def _is_hosts(name: str, directory: Path) -> bool:
    """Whether a header is the host's: of its API, of the C++ library's run-time part, or beside the source and in need
    of one such."""
    if _HOST_API.fullmatch(name) or name in device_code.HEADERS:
        return True
    path = directory / name
    if not path.is_file():
        return False
    text = path.read_text(errors="replace")
    return "__aicore__" not in text and any(_is_hosts(other, path.parent) for other in _INCLUDE.findall(text))


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
