"""What a host compiler accepts in a kernel and the device compiler does not.

Looks at the source as the preprocessor leaves it, so that what a macro hides is seen and what `#if` takes out is not,
and only at lines of the user's own files. Source of the rules: the guide's page on the limits of C++ in device code (no
STL, no dynamic memory, no exceptions, no virtual functions, no run-time type information, no file access); names of
`std` that public kernels use and the device compiler takes are allowed.
"""

import re
from pathlib import Path

# Names of <type_traits> are known by their form; the rest is what headers without a run-time part offer.
_TRAIT = re.compile(r"(is|has|add|remove|make|enable|conditional|common|integral|underlying|invoke|alignment)_\w+"
                    r"|\w+_constant|(true|false)_type|conditional|decay(_t)?|void_t|negation(_v)?|conjunction(_v)?"
                    r"|disjunction(_v)?|rank(_v)?|extent(_v)?|u?int(_fast|_least)?(8|16|32|64)_t|u?int(ptr|max)_t")
_ALLOWED = frozenset(
    "declval nullptr_t size_t ptrdiff_t byte numeric_limits integer_sequence index_sequence make_index_sequence "
    "index_sequence_for forward move initializer_list array min max abs fabs isnan isinf isfinite".split())

_VALUE = "the device has no double: use float, and a literal like 1.0f"
_MEMORY = "device code has no dynamic memory: use UB (TPipe, TBuf, LocalTensor) or an array on the stack"
_ERRORS = "device code has no exceptions: leave early, or check on the host"
_WORDS = {
    "double": _VALUE,
    **dict.fromkeys(("new", "delete", "malloc", "calloc", "realloc", "free"), _MEMORY),
    **dict.fromkeys(("throw", "try", "catch"), _ERRORS),
    "virtual": "device code has no virtual functions: use templates",
    **dict.fromkeys(("typeid", "dynamic_cast"), "device code has no run-time type information: use std::is_same"),
    **dict.fromkeys(("cout", "cerr", "fopen", "fprintf"), "device code has no files or streams: use AscendC::printf"),
}
_HEADERS = frozenset(
    "any chrono complex deque exception filesystem forward_list fstream future iomanip ios iosfwd iostream istream "
    "list map memory mutex new optional ostream queue random regex set sstream stack stdexcept streambuf string_view "
    "thread unordered_map unordered_set valarray variant unistd.h fcntl.h".split())

_MARKER = re.compile(r'# (\d+) "((?:\\.|[^"\\])*)"((?: \d)*)')
_TOKEN = re.compile(
    r'(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|[A-Za-z_]\w*|\d[\w.']*|::|[^\s\w]"
)


def problems(preprocessed: str, is_users) -> list[str]:
    """Lines `file:line: error: ...` for what the device compiler would refuse.

    Args:
        preprocessed: the compiler's `-E` output, with line markers.
        is_users: whether a path (str) is the user's, rather than the system's or the twin's.
    """
    found: dict[str, None] = {}
    file, line, users = "", 0, False
    before = ["", ""]  # the two tokens before this one
    for text in preprocessed.splitlines():
        marker = _MARKER.match(text) if text.startswith("# ") else None
        if marker:
            entered = marker[2].replace("\\\\", "\\").replace('\\"', '"')
            if users and " 1" in marker[3] and not is_users(entered):
                name = Path(entered).name
                if name in _HEADERS:
                    found[f"{file}:{line}: error: device code cannot use <{name}>: {_instead_of_header(name)}"] = None
            file, line, users = entered, int(marker[1]), is_users(entered)
            continue
        if users:
            tokens = [match[0] for match in _TOKEN.finditer(text)]
            for token, after in zip(tokens, [*tokens[1:], ""]):
                why = _problem(token, before, after)
                if why:
                    found[f"{file}:{line}: error: {why}"] = None
                before = [before[1], token]
        line += 1
    return list(found)


def _problem(token: str, before: list[str], after: str) -> str | None:
    if before == ["std", "::"]:
        if token in _ALLOWED or _TRAIT.fullmatch(token):
            return None
        return f"device code cannot use std::{token}: {_instead_of(token)}"
    if token not in _WORDS or before[1] in (".", "operator") or (before[1] == "=" and token == "delete"):
        return None
    if token == "double" and before[1] in ("<", ",", "=") and after in (">", ",", ";"):
        return None  # only named, as in std::is_same<T, double>
    if before[1] in ("::", ">") and token in ("free", "new", "delete", "malloc", "calloc", "realloc"):
        return None  # a member or a name of someone's own namespace
    return f"{token!r} in device code: {_WORDS[token]}"


def _instead_of(name: str) -> str:
    if name in ("cout", "cerr", "printf", "endl", "ostream", "stringstream", "to_string"):
        return "use AscendC::printf"
    if name in ("exp", "log", "sqrt", "pow", "tanh", "erf", "sin", "cos", "floor", "ceil", "round"):
        return "use the vector API (Exp, Ln, Sqrt, Cast, ...) on a LocalTensor"
    if name in ("sort", "stable_sort", "partial_sort", "nth_element"):
        return "use Sort32 and MrgSort"
    if name in ("string", "vector", "map", "set", "unordered_map", "unordered_set", "list", "deque"):
        return "keep data in LocalTensor or in an array on the stack"
    if name in ("memcpy", "memset", "copy", "fill"):
        return "use DataCopy or Duplicate, or assign the members"
    return "of the C++ library it has type traits, fixed-width integers, numeric_limits and array"


def _instead_of_header(name: str) -> str:
    return _ERRORS if name in ("exception", "stdexcept", "new") else _instead_of(Path(name).stem.removeprefix("c"))
