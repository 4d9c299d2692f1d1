"""Finding the C++ compiler, and shared objects cached by content.

A cache entry's name is a hash of everything that decides the result: the source's path (findings show it) and content,
the contents of what it includes, the flags, the compiler and its version. An entry is written under a temporary name
and renamed, so that processes that build the same thing at the same time each end with a complete file.
"""

import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from jascend.backends.ascend.files import cache_directory, write_whole
from jascend.backends.ascend.twin import device_code, stand_ins

INCLUDE = Path(__file__).parent / "include"

# No contraction, so that a * b + c rounds twice, as two instructions do. Hidden visibility keeps two kernels' copies of
# one template apart. Stack probes make a kernel that runs out of stack fault instead of writing to whatever lies below.
FLAGS = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
         "-fno-strict-aliasing", "-fstack-clash-protection", "-Wno-attributes", "-Wno-unknown-pragmas")
# Loops over lanes are what takes time in a run: once they are vectorised, the rest of -O3 makes builds longer and runs
# no shorter. A kernel's own code is not optimized at all (`__aicore__` in macros.h).
OPTIMIZATION = {"gcc": ("-O1", "-ftree-vectorize", "-fvect-cost-model=dynamic"), "clang": ("-O3",)}
# The runtime has few such loops: -Og builds it in two thirds of the time, and a checked run takes a third longer.
RUNTIME_OPTIMIZATION = {"gcc": ("-Og",), "clang": ("-O1",)}
LINK = ("-shared",) + (("-undefined", "dynamic_lookup") if platform.system() == "Darwin" else ())


# half, uint32_t and the qualifiers are part of the device's language: they need no header there.
_LANGUAGE = "twin/scalar.h"
_API = "kernel_operator.h"


class CompilerNotFound(RuntimeError):
    """There is no C++17 compiler to build kernels with."""


class CompileError(RuntimeError):
    """A source does not compile, here or on the device; the text has `file:line: error:` lines."""


def compiler() -> list[str]:
    """The command of the C++ compiler: $CXX, else g++, else clang++. Raises CompilerNotFound."""
    chosen = os.environ.get("CXX")
    for candidate in [chosen] if chosen else ["g++", "clang++"]:
        command = shlex.split(candidate)
        path = shutil.which(command[0])
        if path:
            return [path, *command[1:]]
    looked = f"CXX={chosen!r}" if chosen else "$CXX (not set), g++ and clang++"
    raise CompilerNotFound(
        f"no C++ compiler: looked for {looked} on PATH={os.environ.get('PATH', '')!r}. Kernels run on the CPU through "
        "one that knows C++17. Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; macOS: xcode-select "
        "--install; conda: conda install cxx-compiler. Or set CXX."
    )


@functools.lru_cache(maxsize=8)
def _version(path: str, stamp: int) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout


def compiler_identity(command: list[str]) -> str:
    path = Path(command[0]).resolve()
    return " ".join(command) + "\n" + _version(str(path), path.stat().st_mtime_ns)


def _family() -> str:
    _, _, version = compiler_identity(compiler()).partition("\n")
    return "clang" if "clang" in version else "gcc"


def flags(optimization: dict[str, tuple[str, ...]]) -> list[str]:
    """What the compiler at hand takes kernels or the runtime with."""
    return [*FLAGS, *optimization[_family()]]


@functools.lru_cache(maxsize=4)
def _digest_of_tree(root: Path, stamp: tuple) -> str:
    digest = hashlib.sha256()
    for name, _ in stamp:
        digest.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return digest.hexdigest()


def headers_digest() -> str:
    """Hash of the twin's own headers."""
    files = sorted(path for path in INCLUDE.rglob("*.h"))
    stamp = tuple((str(path.relative_to(INCLUDE)), (path.stat().st_mtime_ns, path.stat().st_size)) for path in files)
    return _digest_of_tree(INCLUDE, stamp)


_INCLUDE_LINE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def included_files(source: Path, include_dirs: tuple[Path, ...]) -> list[Path]:
    """The files that `source` includes, directly or not, and that the compiler would find beside the includer or in
    `include_dirs`. Conditional includes count as included: a file too many only makes the key stricter."""
    found: dict[Path, None] = {}
    pending = [source]
    while pending:
        current = pending.pop()
        for match in _INCLUDE_LINE.finditer(current.read_bytes()):
            name = os.fsdecode(match[1] or match[2])
            for base in (current.parent, *include_dirs):
                path = (base / name).resolve()
                if path.is_file():
                    if path not in found:
                        found[path] = None
                        pending.append(path)
                    break
    return sorted(found)


_PYTHON_LINE = re.compile(r"\s*// (\S+\.py:\d+)\s*$")
_FUNCTION = re.compile(r'extern "C"|\s*__aicore__ inline ')


def python_line(file: str, line: int) -> str:
    """The last comment `// file.py:line` above a line of a source in its function, or "" where there is none."""
    try:
        lines = Path(file).read_text(errors="replace").splitlines()[:line]
    except OSError:
        return ""
    for text in reversed(lines):
        if match := _PYTHON_LINE.match(text):
            return match[1]
        if _FUNCTION.match(text):
            break
    return ""


def _with_python_lines(text: str) -> str:
    """A compiler's diagnostics, each with the line of Python that its line comes from."""

    def place(match: re.Match) -> str:
        python = python_line(match[1], int(match[2]))
        return f"{match[0]} ({python})" if python else match[0]

    return re.sub(r"^([^\s:]+):(\d+)(?::\d+)?(?=: (?:fatal )?(?:error|warning)\b)", place, text, flags=re.MULTILINE)


def _run(command: list[str], what: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise CompileError(f"{what} does not compile:\n{_with_python_lines(result.stderr or result.stdout)}")
    return result.stdout


def compile_shared(key: str, stem: str, arguments: list[str], what: str) -> Path:
    """The shared object for `key`, built with the compiler's `arguments` unless the cache has it."""
    target = _shared(key, stem)
    if not target.exists():
        _write(target, [*arguments, *LINK], what)
    return target


def _shared(key: str, stem: str) -> Path:
    return cache_directory() / "twin" / f"{stem}-{key[:32]}.so"


def _write(target: Path, arguments: list[str], what: str) -> None:
    """What the compiler makes with `arguments`, as a whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    try:
        _run([*compiler(), *arguments, "-o", temporary], what)
        os.chmod(temporary, 0o755)
        os.replace(temporary, target)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def abi_name() -> str:
    """Name of the inline namespace that keeps different versions of the runtime in one process apart."""
    identity = headers_digest() + compiler_identity(compiler())
    return "v" + hashlib.sha256(identity.encode()).hexdigest()[:16]


def _runtime_key() -> str:
    return hashlib.sha256(f"{abi_name()}\n{flags(RUNTIME_OPTIMIZATION)}\n{LINK}".encode()).hexdigest()


def runtime_object() -> Path:
    """The runtime as a shared object."""
    source = _kept('#include "twin/runtime/runtime.h"\n', ".cpp")
    options = ["-pthread", "-D__NPU_ARCH__=2201", f"-DTWIN_ABI={abi_name()}", f"-I{INCLUDE}"]
    return compile_shared(
        _runtime_key(), "runtime", [*flags(RUNTIME_OPTIMIZATION), *options, str(source)], "the twin's runtime"
    )


_API_FIRST = re.compile(rb'(?:\s|//[^\n]*\n|/\*.*?\*/)*#[ \t]*include[ \t]*["<]kernel_operator\.h[">]', re.DOTALL)


def _precompiled(options: list[str]) -> Path | None:
    """The API's headers, that g++ has read already: a third of the time of a short kernel's build. None where there is
    no such thing; and for the first kernel in a cache, which would wait for it longer than it gains."""
    if _family() != "gcc" or not _shared(_runtime_key(), "runtime").exists():
        return None
    text = f'#include "{INCLUDE / _LANGUAGE}"\n#include "{INCLUDE / _API}"\n'
    key = hashlib.sha256("\0".join([compiler_identity(compiler()), *options, text]).encode()).hexdigest()
    header = cache_directory() / "twin" / f"api-{key[:32]}.h"
    made = header.with_name(f"{header.name}.gch")
    try:
        if not made.exists():
            write_whole(header, text)
            _write(made, [*options, f"-I{INCLUDE}", "-x", "c++-header", str(header)], "the API's header")
    except CompileError:
        return None
    return header


def follow_calls(text: str, names: tuple[str, ...]) -> str:
    """The source, perhaps after a `#line`, with a note to the runtime around each statement that calls one of the
    functions. Lines stay where they are."""
    call = re.compile(rf"(?<=[;{{}}\n])([ \t]+)((?:{'|'.join(map(re.escape, names))})(?:<[^;(){{}}]*>)?\()")
    out, at = [], 0
    for match in call.finditer(text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        if match.start() < at or not re.match(r"\s*;", text[end:]):
            continue
        line = text.count("\n", 0, match.start(2)) + (0 if text.startswith("#line") else 1)
        statement = text[match.start(2) : end]
        out += [text[at : match.start(2)], f"(twin::CalledFrom({line}), {statement}, twin::CalledFrom(0))"]
        at = end
    return "".join(out) + text[at:]


def _kept(text: str, suffix: str) -> Path:
    """A file in the cache with that content."""
    path = cache_directory() / "twin" / f"text-{hashlib.sha256(text.encode()).hexdigest()[:24]}{suffix}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return path


def kernel_object(source: Path, include_dirs: tuple[Path, ...], includes: tuple[Path, ...], defines: dict[str, str],
                  arch: int, after: str = "", follow: tuple[str, ...] = ()) -> Path:
    """A kernel's source as a shared object that needs the runtime loaded; `includes` are read before the source, and
    the code `after` after it; calls of the functions in `follow` are known to the runtime."""
    abi = abi_name()
    options = [*flags(OPTIMIZATION), f"-D__NPU_ARCH__={arch}", f"-DTWIN_ABI={abi}"]
    options += [f"-D{name}" if value is None or value == "" else f"-D{name}={value}" for name, value in defines.items()]
    files = kernel_files(source, include_dirs, includes)
    digest = hashlib.sha256(
        "\0".join([abi, *options, *LINK, *map(str, includes), str(source), after, *follow]).encode()
    )
    for path in files:
        digest.update(b"\0" + str(path).encode() + b"\0" + path.read_bytes())
    known = (INCLUDE, *include_dirs, *(path.parent for path in files))
    texts = (path.read_text(errors="replace") for path in files)
    parts = stand_ins.api_headers(texts, known, cache_directory() / "twin")
    directories = [f"-I{directory}" for directory in (INCLUDE, *include_dirs, *([parts] if parts else []))]
    text = stand_ins.without_host(source)
    if follow:
        text = follow_calls(text or f'#line 1 "{source}"\n{source.read_text(errors="replace")}', follow)
    main = str(_kept(text, ".cpp") if text else source)
    directories += ["-iquote", str(source.parent)] if text else []
    rest = [part for path in includes for part in ("-include", str(path))] + ["-x", "c++"]
    rest += ["-include", main, str(_kept(after, ".cpp"))] if after else [main]

    def arguments(first: str | Path) -> list[str]:
        return [*options, *directories, "-include", str(first), *rest]

    key, what = digest.hexdigest(), str(source)
    if _shared(key, source.stem).exists():
        return _shared(key, source.stem)
    preprocessed = _run([*compiler(), "-E", *arguments(_LANGUAGE)], what)
    found = device_code.problems(preprocessed, functools.cache(lambda path: Path(path).resolve() in files))
    if found:
        raise CompileError(f"{source} is not device code:\n" + _with_python_lines("\n".join(found)))
    header = None
    is_usual = not includes and not defines and all(path.name != _API for path in files)
    if is_usual and _API_FIRST.match(source.read_bytes()):
        header = _precompiled(options)
    if header is not None:
        try:
            return compile_shared(key, source.stem, arguments(header), what)
        except CompileError:  # of the source, or g++ cannot map what it has read: without that it says so
            pass
    return compile_shared(key, source.stem, arguments(_LANGUAGE), what)


def kernel_files(source: Path, include_dirs: tuple[Path, ...], includes: tuple[Path, ...]) -> list[Path]:
    """The source and the files of the user's that it includes."""
    files = {source: None, **dict.fromkeys(includes)}
    for path in (*includes, source):
        files.update(dict.fromkeys(included_files(path, include_dirs)))
    return list(files)
