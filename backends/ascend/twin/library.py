"""Building a kernel and launching it."""

import ctypes
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from jascend.backends.ascend.targets import Target
from jascend.backends.ascend.targets import target as target_of
from jascend.backends.ascend.files import cache_directory
from jascend.backends.ascend.twin import signature, stand_ins, toolchain
from jascend.backends.ascend.twin.arguments import Array, Described
from jascend.backends.ascend.twin.registered import Registered, registered


@dataclass(frozen=True)
class Finding:
    """Something the device would not forgive, or would do differently from what the kernel expects.

    Attributes:
        kind: the rule, such as "gm-out-of-bounds" or "missing-sync".
        message: what happened, for a person.
        kernel_line, kernel_file: the call in the kernel's source (line 0 where there is no one call).
        block: the first block on which it happened.
        buffer: "UB", "GM argument 2", "the workspace", or "".
        byte_range: the bytes of that buffer, [begin, end), or None.
        other_line, other_file: for races, the access that came first; else 0 and "".
        count: how often, over all blocks.
        caller_line: where the call is in a function whose calls are followed (`build`'s `follow`), the line that calls
            that function; else 0.
        python: the line of Python that the instruction comes from, such as "demo.py:24", where the source says so (the
            last comment `// file.py:line` above it); else "".
    """

    kind: str
    message: str
    kernel_line: int
    kernel_file: str
    block: int
    buffer: str = ""
    byte_range: tuple[int, int] | None = None
    other_line: int = 0
    other_file: str = ""
    count: int = 1
    python: str = ""
    caller_line: int = 0

    def __str__(self) -> str:
        python = f" ({self.python})" if self.python else ""
        called = f", called on line {self.caller_line}" if self.caller_line else ""
        place = f"{self.kernel_file}:{self.kernel_line}{called}{python}: " if self.kernel_line else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{place}{self.kind}: {self.message} [block {self.block}]{times}"


@dataclass(frozen=True)
class Run:
    """What a launch gave.

    Attributes:
        outputs: the arrays of the launch, written in place.
        findings: what the checker found; empty for a sound kernel.
        report: counts, as plain data. `report["blocks"]` has one entry a block: `gm_read_bytes`, `gm_write_bytes`,
            `ub_bytes` (the highest UB address used), `flags`, `barriers`, `syncs`, and per pipe (`pipes["V"]`, "S",
            "MTE2", "MTE3") `instructions`, `repeats` (256 bytes of vector work each), `bytes` moved, and the same per
            API. `report["total"]` sums bytes, instructions and repeats over blocks; `report["tiling_bytes"]` is the
            size of the tiling data.
        trace: with trace=True one Trace a block, else None.
        printed: what the kernel printed (`AscendC::printf`, `DumpTensor`), block after block, each line with its block.
    """

    outputs: list
    findings: list[Finding]
    report: dict = field(repr=False)
    trace: "list[Trace] | None" = field(default=None, repr=False)
    printed: str = field(default="", repr=False)

    def describe(self) -> str:
        """The findings, one a line."""
        return "\n".join(map(str, self.findings))


PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL")
STEPS = ("instruction", "set", "wait", "barrier", "sync_all")
TRACE_DTYPE = np.dtype([("step", "u1"), ("pipe", "u1"), ("to", "u1"), ("width", "u1"), ("serial", "u4"),
                        ("place", "u4"), ("repeats", "u4"), ("pieces", "u4"), ("argument", "u4"), ("bytes", "u8"),
                        ("offset", "u8"), ("address", "u4", 3), ("block_stride", "u2", 3), ("repeat_stride", "u2", 3)])

NOWHERE = 2**32 - 1


@dataclass(frozen=True)
class Trace:
    """One block's program, in the order in which the scalar unit issued it.

    Attributes:
        steps: structured array of TRACE_DTYPE. `step` indexes STEPS, `pipe` and `to` index PIPES. An instruction has
            its vector `repeats`, element `width` in bytes, and for accesses to GM the `bytes`, the contiguous
            `pieces`, the kernel's `argument` (arrays, then the workspace) and the `offset` in it of the first piece.
            Vector instructions have the UB `address` and strides, in 32-byte blocks, of what they write and of the
            first two operands that they read; NOWHERE where there is none that fills whole repeats.
            The set and the wait of one flag have the same `serial`; for a queue's own flags `pipe` is that side's pipe.
        places: for each value of `place`, (API, file, line).
        callers: for each, the line that calls the function it is in, where calls of that are followed; else 0.
    """

    steps: np.ndarray
    places: list[tuple[str, str, int]]
    callers: Sequence[int] = ()


class _Options(ctypes.Structure):
    _fields_ = [("tiling_key", ctypes.c_uint64), ("workspace_bytes", ctypes.c_uint64),
                ("tiling_bytes", ctypes.c_uint64), ("tiling", ctypes.c_char_p), ("blocks", ctypes.c_uint32),
                ("check", ctypes.c_uint32), ("auto_sync", ctypes.c_uint32), ("arch", ctypes.c_uint32),
                ("ub_bytes", ctypes.c_uint32), ("physical_cores", ctypes.c_uint32), ("trace", ctypes.c_uint32),
                ("direct", ctypes.c_uint32), ("timeout", ctypes.c_double), ("patience", ctypes.c_double)]


# By file name, which holds the version: two copies of one version, from two cache directories, would share half of
# their symbols.
_runtimes: dict[str, ctypes.CDLL] = {}
_runtimes_lock = threading.Lock()


def _load_runtime() -> ctypes.CDLL:
    path = toolchain.runtime_object()
    with _runtimes_lock:
        if path.name not in _runtimes:
            # Global, because kernels are linked without it; its symbols carry the version in their namespace.
            library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            library.jascend_twin_run.restype = ctypes.c_void_p
            library.jascend_twin_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(Array), ctypes.c_uint32,
                                                 ctypes.POINTER(_Options)]
            library.jascend_twin_free.argtypes = [ctypes.c_void_p]
            _runtimes[path.name] = library
        return _runtimes[path.name]


# Seconds of processor time that a block may run without any sign that it will end: see `Library.launch`.
PATIENCE = 20.0

# `DTYPE_X=float` on the compiler's command line goes with `ORIG_DTYPE_X=DT_FLOAT`, as in the CANN build.
_FORMATS = {"float": "FLOAT", "half": "FLOAT16", "bfloat16_t": "BF16", "int8_t": "INT8", "uint8_t": "UINT8",
            "int16_t": "INT16", "uint16_t": "UINT16", "int32_t": "INT32", "uint32_t": "UINT32", "int64_t": "INT64",
            "uint64_t": "UINT64", "bool": "BOOL", "int4b_t": "INT4"}  # fmt: skip


def build(source: str | os.PathLike, include_dirs: Sequence[str | os.PathLike] = (),
          defines: Mapping[str, object] | None = None, target: str = "ascend910b",
          includes: Sequence[str | os.PathLike] = (), follow: Sequence[str] = ()) -> "Library":
    """Compiles an Ascend C source for the host.

    Args:
        source: path of the source, which includes "kernel_operator.h".
        include_dirs: further directories to look for headers in.
        defines: preprocessor definitions, name to value (None or "" for a bare name). `DTYPE_X` brings `ORIG_DTYPE_X`.
        target: "ascend910b", "ascend910_93" or "ascend950": `__NPU_ARCH__`, the size of UB, what exists.
        includes: headers to read before the source, such as the one that defines its tiling, which the CANN build
            generates from the host's code: the host's own header (BEGIN_TILING_DATA_DEF) will do.
        follow: names of void functions of the source's own: what is found inside them is told by the line that calls
            them, and the line of Python is the caller's.

    Returns:
        A Library. Results are cached on disk ($JASCEND_CACHE_DIR, else ~/.cache/jascend), by content.

    Raises:
        CompilerNotFound: there is no C++ compiler.
        CompileError: the source does not compile, or is code that only a host runs (double, std::vector, new, throw);
            the message has lines `file:line: error: ...`.
        FileNotFoundError, ValueError: no such source, no such target.
    """
    known = target_of(target)
    path = Path(source).resolve()
    for needed in (path, *map(Path, includes)):
        if not needed.is_file():
            raise FileNotFoundError(f"no kernel source {os.fspath(source if needed is path else needed)!r}")
    directories = tuple(Path(directory).resolve() for directory in include_dirs)
    kept = cache_directory() / "twin"
    before = tuple(stand_ins.kernels_tiling(Path(header).resolve(), kept) for header in includes)
    texts = {name: "" if value is None else str(value) for name, value in (defines or {}).items()}
    for name, value in list(texts.items()):
        if name.startswith("DTYPE_") and value in _FORMATS:
            texts.setdefault(f"ORIG_{name}", f"DT_{_FORMATS[value]}")
    files = toolchain.kernel_files(path, directories, before)
    structs = registered(file.read_text(errors="replace") for file in files)

    def compiled(struct: str | None, after: str = "") -> Path:
        chosen = {"TWIN_TILING_STRUCT": struct} if struct else {}
        return toolchain.kernel_object(path, directories, before, texts | chosen, known.npu_arch, after, tuple(follow))

    with ThreadPoolExecutor(1) as beside:  # where nothing is cached, two compilers at a time
        return Library(path, known, beside.submit(_load_runtime), structs, compiled)


class Library:
    """A built kernel source.

    Attributes:
        path: the shared object.
        source: the kernel's source.
        target: what it was built for.
    """

    def __init__(self, source: Path, target: Target, runtime: Future[ctypes.CDLL], structs: Registered,
                 compiled: Callable[..., Path]):
        """`compiled` gives the shared object for a tiling struct, with code to compile after the source."""
        usual = structs.struct(None, 0)
        self.path, self.source, self.target = compiled(usual), source, target
        self._runtime = runtime.result()
        self._structs, self._compiled = structs, compiled
        self._objects = {usual: ctypes.CDLL(str(self.path))}
        self._direct: dict[str, signature.DirectObject] = {}

    def launch(self, entry: str, arrays: Sequence, tiling: bytes | None = None, tiling_key: int = 0,
               workspace_bytes: int = 0, blocks: int = 8, check: bool = True, auto_sync: bool = False,
               trace: bool = False, timeout: float | None = None) -> Run:
        """Runs a kernel, once for each block.

        A framework kernel is `extern "C" __global__ __aicore__ void entry(GM_ADDR ..., GM_ADDR workspace, GM_ADDR
        tiling)`: one pointer an array, in order, then the two that these always have. A kernel that is launched
        directly (`entry<<<blocks, nullptr, stream>>>(...)`: `__vector__`, `__mix__(0, 1)`, or with parameters by value)
        is given all its arguments in `arrays`, and neither workspace nor tiling.

        Args:
            entry: the kernel's name; where it is launched directly also `space::name` or `name<float, 8>`.
            arrays: C-contiguous NumPy arrays (ml_dtypes included), inputs and outputs in the kernel's order. Outputs
                are written in place. The same array may be given twice. A read-only array can only be an input. None is
                an optional argument that is absent: the kernel gets a null pointer. A list of arrays is one argument, a
                list of tensors (`ListTensorDesc`). For a parameter by value: a number (NumPy's must have its size), or
                for a struct its bytes, a ctypes.Structure or a structured NumPy scalar.
            tiling: the tiling struct's bytes.
            tiling_key: what TILING_KEY_IS compares with.
            workspace_bytes: size of the workspace; its contents are undefined at the start.
            blocks: number of blocks, one a vector core.
            check: look for faults. Without, only accesses outside the arrays and UB are still held back.
            auto_sync: take as ordered what the compiler orders with `--cce-auto-sync=on`: vector instructions, and what
                the scalar unit reads and writes, except its stores to GM. Copies stay the kernel's own affair.
            trace: also record every instruction, flag and barrier of every block in program order, as `run.trace`.
            timeout: seconds after which blocks that still run are ended, with a finding "timeout". None leaves it to
                signs that a kernel will never end, which a sound one does not give however large it is: a block that
                spends PATIENCE (20 s) of processor time without any call of the API, or four times that without
                copying to or from GM, or that makes 2**28 calls; and blocks that all wait for each other, at once.

        Returns:
            A Run with outputs, findings and report.

        Raises:
            ValueError: unknown entry, arrays that do not fit the entry, arrays that are not contiguous or overlap, or a
                read-only array that the kernel writes.
        """
        function, values, direct = self._entry(entry, len(arrays), tiling_key)
        if direct and (tiling is not None or tiling_key or workspace_bytes):
            raise ValueError(f"{entry} is launched directly: it has no tiling and no workspace of the framework's; "
                             "what it takes for them is among its arguments")
        described = Described(arrays, values)
        if blocks < 1 or blocks > 4096:
            raise ValueError(f"blocks is {blocks}; 1 to 4096 are possible")
        if workspace_bytes < 0:
            raise ValueError(f"workspace_bytes is {workspace_bytes}")
        data = bytes(tiling) if tiling is not None else b""
        options = _Options(tiling_key, workspace_bytes, len(data), data, blocks, check, auto_sync, self.target.npu_arch,
                           self.target.ub_bytes, self.target.vector_cores, trace, direct, timeout or 0, PATIENCE)
        text = self._runtime.jascend_twin_run(function, described.entries, described.count, ctypes.byref(options))
        if not text:
            raise MemoryError("the twin's runtime has no memory for its report")
        try:
            result = json.loads(ctypes.string_at(text).decode(errors="replace"))
        finally:
            self._runtime.jascend_twin_free(text)
        if "error" in result:
            raise MemoryError(f"the twin could not run {entry}: {result['error']}")
        findings = [self._located(finding) for finding in _merge(result["findings"])]
        for finding in findings:
            if finding.kind == "read-only":
                place = f"{finding.kernel_file}:{finding.kernel_line}"
                raise ValueError(f"{place}: {finding.message}; no output was written")
        traces = [_trace(block) for block in result["blocks"]] if trace else None
        printed = "".join(block.pop("printed", "") for block in result["blocks"])
        report = {"blocks": result["blocks"], "total": _total(result["blocks"]), "tiling_bytes": len(data)}
        return Run(list(arrays), findings, report, traces, printed)

    def _located(self, finding: Finding) -> Finding:
        """The finding with the line of Python that its instruction comes from."""
        if not finding.kernel_line:
            return finding
        return replace(
            finding, python=toolchain.python_line(finding.kernel_file, finding.caller_line or finding.kernel_line)
        )

    def _object(self, entry: str, key: int) -> ctypes.CDLL:
        struct = self._structs.struct(entry, key)
        if struct not in self._objects:
            self._objects[struct] = ctypes.CDLL(str(self._compiled(struct)))
        return self._objects[struct]

    def _entry(self, entry: str, count: int, key: int) -> tuple[int, list, bool]:
        """The address to call, what the parameters are by value, and whether the kernel is launched directly."""
        declared = signature.signature(self.source, entry)
        if declared is not None and declared.needs_cube():
            qualifiers = " ".join(declared.qualifiers.split())
            raise ValueError(f"{entry} is declared {qualifiers}: it runs on cube cores, and the twin has vector cores "
                             "only")
        if declared is not None and declared.direct(count):
            found = self._direct_object(entry, declared.vector_only)
            if len(found.parameters) != count:
                takes = len(found.parameters)
                raise ValueError(f"{entry} is launched directly and takes {takes} arguments, not {count}")
            return found.call, found.parameters, True
        try:
            function = getattr(self._object(entry, key), entry)
        except AttributeError:
            if declared is not None and not declared.plain:
                message = f'{entry} of {self.source} is not extern "C": the framework would not find it'
                raise ValueError(message) from None
            raise ValueError(f'{self.source} has no kernel {entry!r}: it must be extern "C" __global__') from None
        if declared is not None and len(declared.parameters) != count + 2:
            n = len(declared.parameters)
            raise ValueError(f"{entry} takes {n} pointers, of which the last two are the workspace and the tiling: "
                             f"{n - 2} arrays, not {count} (or, launched directly, {n})")
        return ctypes.cast(function, ctypes.c_void_p).value, [None] * count, False

    def _direct_object(self, entry: str, vector_only: bool) -> "signature.DirectObject":
        if entry not in self._direct:
            after = signature.wrapper(entry, vector_only)
            self._direct[entry] = signature.DirectObject(self._compiled(self._structs.struct(entry, 0), after))
        return self._direct[entry]


def _merge(raw: list[dict]) -> list[Finding]:
    """Findings of one kind at the same lines are one, with a count."""
    merged: dict[tuple, Finding] = {}
    for item in raw:
        extent = (item["begin"], item["end"]) if item["end"] > item["begin"] else None
        finding = Finding(item["kind"], item["message"], item["line"], item["file"], item["block"], item["buffer"],
                          extent, item["other_line"], item["other_file"], item["count"], "", item["caller"])
        key = (finding.kind, finding.kernel_file, finding.kernel_line, finding.other_file, finding.other_line,
               finding.caller_line)
        if key in merged:
            first = merged[key]
            finding = Finding(**{**first.__dict__, "count": first.count + finding.count})
        merged[key] = finding
    return list(merged.values())


def _trace(block: dict) -> Trace:
    """Takes the trace out of a block's report."""
    steps = np.frombuffer(bytes.fromhex(block.pop("trace")), TRACE_DTYPE)
    places = block.pop("places")
    return Trace(steps, [tuple(place[:3]) for place in places], [place[3] for place in places])


def _total(blocks: list[dict]) -> dict:
    total: dict = {"gm_read_bytes": 0, "gm_write_bytes": 0, "instructions": {}, "repeats": 0, "copies": 0}
    for block in blocks:
        total["gm_read_bytes"] += block["gm_read_bytes"]
        total["gm_write_bytes"] += block["gm_write_bytes"]
        for pipe, counts in block["pipes"].items():
            total["instructions"][pipe] = total["instructions"].get(pipe, 0) + counts["instructions"]
            total["repeats"] += counts["repeats"]
            total["copies"] += counts["instructions"] if pipe.startswith("MTE") else 0
    return total
