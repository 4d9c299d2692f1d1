"""What a host compiler accepts in a kernel and the device compiler does not.

Looks at the source as the preprocessor leaves it, so that what a macro hides is seen and what `#if` takes out is not,
and only at lines of the user's own files. Source of the rules: the guide's page on the limits of C++ in device code (no
STL, no dynamic memory, no exceptions, no virtual functions, no run-time type information, no file access); names of
`std` that public kernels use and the device compiler takes are allowed.
"""

import re
from pathlib import Path

# Names of <type_traits> are known by their form; the rest is what headers without a run-time part offer.
_TRAIT = re.compile(r"(is|has|add|remove|enable|conditional|common|integral|underlying|invoke|alignment)_\w+"
                    r"|make_(un)?signed(_t)?|\w+_constant|(true|false)_type|conditional|decay(_t)?|void_t"
                    r"|negation(_v)?|conjunction(_v)?"
                    r"|disjunction(_v)?|rank(_v)?|extent(_v)?|u?int(_fast|_least)?(8|16|32|64)_t|u?int(ptr|max)_t")
_ALLOWED = frozenset(
    "declval nullptr_t size_t ptrdiff_t byte numeric_limits integer_sequence index_sequence make_index_sequence "
    "index_sequence_for forward move initializer_list array min max abs fabs isnan isinf isfinite".split())

_VALUE = "the device has no double: use float, and a literal like 1.0f"
_MEMORY = "device code has no dynamic memory: use UB (TPipe, TBuf, LocalTensor) or an array on the stack"
_ERRORS = "device code has no exceptions: leave early, or check on the host"
_WORDS = {
    **dict.fromkeys(("double", "__float128", "_Float64", "_Float128"), _VALUE),
    **dict.fromkeys(("new", "delete", "malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign",
                     "strdup", "alloca"), _MEMORY),
    **dict.fromkeys(("throw", "try", "catch"), _ERRORS),
    "virtual": "device code has no virtual functions: use templates",
    **dict.fromkeys(("typeid", "dynamic_cast"), "device code has no run-time type information: use std::is_same"),
    **dict.fromkeys(("fopen", "fclose", "fread", "fwrite", "fprintf", "fputs", "puts", "scanf"),
                    "device code has no files or streams: use AscendC::printf"),
    "thread_local": "device code has no thread-local storage: a block is one thread, and its variables are its own",
}
# Calls of the C library; elsewhere these are names like any other.
_CALLS = frozenset("free malloc calloc realloc aligned_alloc posix_memalign strdup alloca fopen fclose fread fwrite "
                   "fprintf fputs puts scanf".split())
# After `using namespace std`. Names that kernels also use for their own are not among them.
_STD_NAMES = frozenset(
    "vector string wstring map set multimap multiset unordered_map unordered_set deque list forward_list queue stack "
    "priority_queue function unique_ptr shared_ptr weak_ptr make_unique make_shared thread mutex lock_guard future "
    "optional variant any cout cerr clog endl ostream istream ifstream ofstream stringstream runtime_error "
    "exception".split())  # fmt: skip
_DOUBLE_LITERAL = re.compile(r"(\d[\d']*\.[\d']*|\.\d+|\d[\d']*(?=[eE]))([eE][+-]?\d+)?")
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast", "numeric_limits"))
HEADERS = frozenset(
    "any chrono complex deque exception filesystem forward_list fstream future iomanip ios iosfwd iostream istream "
    "list map memory mutex new optional ostream queue random regex set sstream stack stdexcept streambuf string_view "
    "thread unordered_map unordered_set valarray variant unistd.h fcntl.h".split())

_MARKER = re.compile(r'# (\d+) "((?:\\.|[^"\\])*)"((?: \d)*)')
_TOKEN = re.compile(
    r'(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.'])*|::|[^\s\w]",
    re.DOTALL,
)


def problems(preprocessed: str, is_users) -> list[str]:
    """Lines `file:line: error: ...` for what the device compiler would refuse.

    Args:
        preprocessed: the compiler's `-E` output, with line markers.
        is_users: whether a path (str) is the user's, rather than the system's or the twin's.
    """
    found: dict[str, None] = {}
    scan = _Scan()
    file, line, users = "", 0, False
    lines = iter(preprocessed.splitlines())
    for text in lines:
        marker = _MARKER.match(text) if text.startswith("# ") else None
        if marker:
            entered = marker[2].replace("\\\\", "\\").replace('\\"', '"')
            if users and " 1" in marker[3] and not is_users(entered):
                name = Path(entered).name
                if name in HEADERS:
                    found[f"{file}:{line}: error: device code cannot use <{name}>: {_instead_of_header(name)}"] = None
            file, line, users = entered, int(marker[1]), is_users(entered)
            continue
        more = 0
        while _open_raw_string(text):  # it goes on over lines
            rest = next(lines, None)
            if rest is None:
                break
            text, more = f"{text}\n{rest}", more + 1
        if users:
            tokens = [match[0] for match in _TOKEN.finditer(text)]
            for i, token in enumerate(tokens):
                why = scan.problem(token, tokens[i + 1 : i + 4])
                if why:
                    found[f"{file}:{line}: error: {why}"] = None
        line += 1 + more
    return list(found)


_RAW = re.compile(r'(?:u8|[uUL])?R"([^()\\\s]{0,16})\(')
_PLAIN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')


def _open_raw_string(text: str) -> bool:
    """Whether the text ends inside a raw string."""
    at = 0
    while start := _RAW.search(text, at):
        plain = _PLAIN.search(text, at)
        if plain and plain.start() < start.start() and not _RAW.match(text, plain.start() - 1):
            at = plain.end()  # what looks like one is inside an ordinary string
            continue
        end = text.find(f'){start[1]}"', start.end())
        if end < 0:
            return True
        at = end + len(start[1]) + 2
    return False


class _Scan:
    """What is known of the tokens before."""

    def __init__(self):
        self.before = ["", "", ""]  # the last three tokens
        self.standard = {"std"}  # its names: `namespace s = std;`
        self.opened = False  # `using namespace std;`
        self.doubles: set[str] = set()  # `using Real = double;`

    def problem(self, token: str, after: list[str]) -> str | None:
        """Why the device would refuse the token, if it would."""
        why = self._why(token, [*after, "", "", ""])
        self.before = [*self.before[1:], token]
        return why

    def _why(self, token: str, after: list[str]) -> str | None:
        early, previous, last = self.before
        if last == "=" and early == "namespace" and token in self.standard:
            self.standard.add(previous)
            return None
        if token in self.standard and previous == "using" and last == "namespace":
            self.opened = True
            return None
        if last == "::" and previous in self.standard:
            if token in _ALLOWED or _TRAIT.fullmatch(token):
                return None
            return f"device code cannot use std::{token}: {_instead_of(token)}"
        if self.opened and token in _STD_NAMES and last not in (".", "::") and (previous, last) != ("-", ">"):
            declared = last not in ("", ";", "{", "}", "(", ",", "<", "const", "return", "=", "&", "*", ":", ")")
            if not declared and after[0] != "=":
                return f"device code cannot use std::{token}: {_instead_of(token)}"
        if token == "auto" and after[1] == "=" and _DOUBLE_LITERAL.fullmatch(after[2]):
            return f"'auto {after[0]} = {after[2]}' is a double in device code: {_VALUE}"
        if token in self.doubles and not self._only_named(after[0]) and last not in (".", "::"):
            return f"{token!r} is double in device code: {_VALUE}"
        if token not in _WORDS:
            return None
        if last in (".", "operator") or (last == "=" and token == "delete") or (previous, last) == ("-", ">"):
            return None
        if token in ("double", "__float128", "_Float64", "_Float128") and self._only_named(after[0]):
            if last == "=" and after[0] == ";" and early == "using":
                self.doubles.add(previous)
            return None
        if last == "::" and re.fullmatch(r"\w+|>", previous):
            return None  # a name of someone's own namespace
        if token in _CALLS and (after[0] != "(" or re.fullmatch(r"[A-Za-z_]\w*|[*&>]", last) and last != "return"):
            if after[0] not in (")", ";"):  # declared, or called with no call's parentheses
                return None
            if last not in ("=", "(", ",", "return"):
                return None  # taken as a function it is the C library's; else someone's variable
        return f"{token!r} in device code: {_WORDS[token]}"

    def _only_named(self, after: str) -> bool:
        """A type as a template argument, as in std::is_same<T, double>, or given another name."""
        _, previous, last = self.before
        return last in ("<", ",", "=") and after in (">", ",", ";") and not (last == "<" and previous in _CASTS)


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
