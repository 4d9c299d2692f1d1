"""Pipelines of our passes and upstream's, and how they run.

    builtin.module(fuse-sampling,allocate-ub{capacity=196608},func.func(canonicalize,cse),remove-dead-ops)

The grammar is that of `mlir-opt`. Upstream's parser does not know passes written in Python, so pipelines are parsed,
printed and run here: a name that is registered with us is ours, every other one goes to upstream's `PassManager`.
Each pass is a step of its own: it runs, the IR is verified, and whatever went wrong names the pass.

The bindings keep no track of the ops that Python refers to: a handle to an op that a pass has erased points into freed
memory. So a pipeline never changes the module it is given. It works on a copy and returns that, and the copy keeps the
original alive: a handle into the original is good as long as either of them is there.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TextIO

import jascend.dialect
from mlir import ir
from mlir.passmanager import PassManager

from .diagnostics import Diagnostic, PassFailure, Position, Remarks, collect, of_exception, render, resolve
from .handles import guarded
from .registry import all_passes, find_pass, plugin_of

_ROOT = "builtin.module"
_SOURCE = "<pass-pipeline>"

# Upstream's registry cannot be listed from Python; these are suggested for a name that is nearly one of them.
UPSTREAM_PASSES = (
    "canonicalize", "cse", "inline", "sccp", "symbol-dce", "symbol-privatize", "strip-debuginfo", "print-ir", "mem2reg",
    "sroa", "topological-sort", "control-flow-sink", "loop-invariant-code-motion", "remove-dead-values",
    "convert-elementwise-to-linalg", "linalg-fuse-elementwise-ops", "linalg-fold-unit-extent-dims",
    "linalg-generalize-named-ops", "linalg-specialize-generic-ops", "linalg-inline-scalar-operands",
    "convert-linalg-to-loops", "scf-for-loop-canonicalization", "scf-for-loop-peeling",
    "scf-parallel-loop-fusion", "fold-tensor-subset-ops", "empty-tensor-to-alloc-tensor", "one-shot-bufferize",
    "buffer-deallocation-pipeline", "arith-expand", "arith-unsigned-when-equivalent", "int-range-optimizations",
    "math-uplift-to-fma", "math-extend-to-supported-types", "lower-affine", "convert-scf-to-cf", "convert-math-to-libm",
    "convert-arith-to-llvm", "convert-func-to-llvm", "finalize-memref-to-llvm", "reconcile-unrealized-casts",
)  # fmt: skip


class PipelineError(Exception):
    """A pipeline that cannot run or failed: `pass_name` is the pass, the text its diagnostics as MLIR prints them."""

    def __init__(self, pass_name: str | None, diagnostics: list[Diagnostic], sources: dict[str, str] | None = None):
        super().__init__(render(diagnostics, sources).rstrip())
        self.pass_name = pass_name
        self.diagnostics = diagnostics


class PipelineSyntaxError(PipelineError, ValueError):
    """A pipeline text that does not parse, or names a pass or an option that does not exist."""

    def __init__(self, message: str, text: str, offset: int, pass_name: str | None = None):
        self.message = message
        line = text.count("\n", 0, offset) + 1
        column = len(text[text.rfind("\n", 0, offset) + 1 : offset].encode()) + 1
        super().__init__(pass_name, [Diagnostic("error", message, Position(_SOURCE, line, column))], {_SOURCE: text})


class UnknownPassError(PipelineSyntaxError):
    """A pipeline names a pass that neither we nor upstream have."""


# -- pipelines as data ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OurPass:
    """A pass of ours or of a plugin, with its options."""

    name: str
    instance: Any

    def __str__(self) -> str:
        given = [
            f"{option.name}={_quoted(getattr(self.instance, option.field))}"
            for option in find_pass(self.name).options
            if getattr(self.instance, option.field) != option.default
        ]
        return f"{self.name}{{{' '.join(given)}}}" if given else self.name


@dataclass(frozen=True)
class UpstreamPass:
    """A pass or a pipeline that upstream has registered, with its options as text."""

    name: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.name}{{{self.options}}}" if self.options else self.name


@dataclass(frozen=True)
class Nested:
    """Passes that run on each op called `anchor` right below."""

    anchor: str
    elements: tuple[OurPass | UpstreamPass | Nested, ...]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"


Element = OurPass | UpstreamPass | Nested


def _quoted(value: int | str | bool | float) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if re.fullmatch(r"""[^\s{}"'\\]+""", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True)
class Pipeline:
    """Passes in order, on `builtin.module`. `str` gives the text that parses to the same pipeline."""

    elements: tuple[Element, ...]

    @staticmethod
    def parse(text: str) -> Pipeline:
        """Raises PipelineSyntaxError, whose text points at what is wrong. The outer `builtin.module(...)` may be left
        out."""
        return Pipeline(_Parser(text).parse())

    def __str__(self) -> str:
        return str(Nested(_ROOT, self.elements))


# -- parsing --------------------------------------------------------------------------------------------------------


_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*')"""
_QUOTED_OR_BRACE = re.compile(rf"{_QUOTED}|[{{}}'\"]", re.DOTALL)  # a quote by itself is one that is not closed
_KEY_VALUE = re.compile(rf"([^\s=]+)(?:=({_QUOTED}|\S*))?", re.DOTALL)


class _Parser:
    """Recursive descent over `element (, element)*` with `element := name [{options}] | anchor ( elements )`."""

    def __init__(self, text: str):
        self.text = text
        self.offset = 0

    def parse(self) -> tuple[Element, ...]:
        explicit_root = re.match(rf"\s*{re.escape(_ROOT)}\s*\(", self.text)
        if not explicit_root:
            elements = self.elements(_ROOT)
        else:
            self.offset = explicit_root.end()
            elements = self.nested(explicit_root.end() - 1, _ROOT)
        if self.peek():
            raise self.error(f"unexpected '{self.peek()}' after the pipeline")
        return elements

    def elements(self, anchor: str) -> tuple[Element, ...]:
        found = [self.element(anchor)]
        while self.peek() == ",":
            self.offset += 1
            found.append(self.element(anchor))
        return tuple(found)

    def nested(self, opening: int, anchor: str) -> tuple[Element, ...]:
        elements = () if self.peek() == ")" else self.elements(anchor)
        if self.peek() != ")":
            raise self.error("missing ')'", opening)
        self.offset += 1
        return elements

    def element(self, anchor: str) -> Element:
        self.peek()
        start = self.offset
        name = re.compile(r"[\w.-]*").match(self.text, start)[0]
        if not name:
            raise self.error("expected the name of a pass")
        self.offset += len(name)
        following = self.peek()
        if following == "(":
            return self.anchored(name, start)
        options_at = self.offset + 1
        options = self.braces() if following == "{" else ""
        info = find_pass(name)
        if info is None:
            return self.upstream(UpstreamPass(name, options.strip()), anchor, start)
        try:
            return OurPass(name, info.make(dict(self.options(options, options_at))))
        except PipelineSyntaxError:
            raise
        except ValueError as error:
            raise self.error(str(error), start, name) from None

    def anchored(self, anchor: str, start: int) -> Element:
        if anchor != "any" and not _is_operation(anchor):
            raise self.error(f"no operation is called '{anchor}'", start)
        opening = self.offset
        self.offset += 1
        nested = Nested(anchor, self.nested(opening, anchor))
        if anchor != "any":
            return nested
        ours = next(_ours(nested), None)
        if ours is not None:
            raise self.error(f"pass '{ours.name}' cannot run on 'any'; name the operation", start, ours.name)
        return UpstreamPass(str(nested))

    def upstream(self, element: UpstreamPass, anchor: str, start: int) -> UpstreamPass:
        try:
            PassManager.parse(f"{anchor}({element})", _validation_context())
        except ValueError as error:
            reason = re.sub(r"^.*?error: |^<Pass-Options-Parser>: ", "", str(error)).partition("\n")[0]
            if "does not refer to a registered pass" in reason:
                raise UnknownPassError(_unknown_pass(element.name), self.text, start, element.name) from None
            raise self.error(f"pass '{element.name}': {reason}", start, element.name) from None
        return element

    def braces(self) -> str:
        """The text between `{` here and the `}` that closes it; braces in quotes do not count."""
        start, depth = self.offset, 0
        for token in _QUOTED_OR_BRACE.finditer(self.text, start):
            if token[0] in ("'", '"'):
                raise self.error("missing closing quote", token.start())
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if not depth:
                self.offset = token.end()
                return self.text[start + 1 : token.start()]
        raise self.error("missing '}'", start)

    def options(self, text: str, at: int) -> Iterator[tuple[str, str]]:
        """The `key=value` pairs of one of our passes; a value may be quoted."""
        for match in _KEY_VALUE.finditer(text):
            name, value = match.groups()
            if value is None:
                raise self.error(f"expected '{name}=value'", at + match.start())
            if value[:1] == '"':
                value = re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
            elif value[:1] == "'":
                value = value[1:-1]
            yield name, value

    def peek(self) -> str:
        """The next character that is not a space, or nothing at the end."""
        self.offset = re.compile(r"\s*").match(self.text, self.offset).end()
        return self.text[self.offset : self.offset + 1]

    def error(self, message: str, offset: int | None = None, pass_name: str | None = None) -> PipelineSyntaxError:
        return PipelineSyntaxError(message, self.text, self.offset if offset is None else offset, pass_name)


def _ours(element: Element) -> Iterator[OurPass]:
    if isinstance(element, OurPass):
        yield element
    elif isinstance(element, Nested):
        for inner in element.elements:
            yield from _ours(inner)


def _unknown_pass(name: str) -> str:
    near = difflib.get_close_matches(name, [*all_passes(), *UPSTREAM_PASSES], n=1)
    return f"no pass is called '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")


@functools.cache
def _validation_context() -> ir.Context:
    """A context for checking names; dialects load into it as they are asked for, which keeps start-up short."""
    context = ir.Context(load_on_create_dialects=[])
    context.enable_multithreading(False)
    return context


def _is_operation(name: str) -> bool:
    context = _validation_context()
    try:
        context.get_dialect_descriptor(name.partition(".")[0])
    except ValueError:
        return False
    return context.is_registered_operation(name)


# -- running --------------------------------------------------------------------------------------------------------


@dataclass
class Timing:
    """Wall time of the steps of a run."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def report(self) -> str:
        """A table as `--mlir-timing` prints it."""
        rule = f"===-{'-' * 73}-==="
        total = sum(self.seconds.values())
        rows = [*self.seconds.items(), ("Total", total)]
        lines = [rule, f"{'... Execution time report ...':^80}".rstrip(), rule]
        lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        lines += [f"  {seconds:8.4f} ({seconds / (total or 1):6.1%})  {name}" for name, seconds in rows]
        return "\n".join(lines) + "\n"


def ir_dumper(stream: TextIO, **asm_options: Any) -> Callable[[str, ir.Operation], None]:
    """Prints the IR after a pass to `stream`; the options are those of `Operation.get_asm`."""

    def dump(title: str, op: ir.Operation) -> None:
        stream.write(f"// -----// IR Dump After {title} //----- //\n{op.get_asm(**asm_options)}\n\n")

    return dump


def run_pipeline(
    module: ir.Module,
    pipeline: str | Pipeline,
    *,
    verify_each: bool = True,
    print_after_all: Callable[[str, ir.Operation], None] | None = None,
    timing: Timing | None = None,
    remarks: Remarks | None = None,
) -> ir.Module:
    """Runs a pipeline on a copy of `module` and returns the copy; `module` and handles into it stay as they are.

    Args:
      verify_each: verify the IR after every pass, not only after the last one.
      print_after_all: called with the pass name and the op after every pass, see `ir_dumper`.
      timing, remarks: filled in as the passes run, also by a run that fails.

    Raises:
      PipelineSyntaxError: the text is not a pipeline.
      PipelineError: a pass failed or left invalid IR.
    """
    if isinstance(pipeline, str):
        pipeline = Pipeline.parse(pipeline)
    result = copy_of(module)
    weakref.finalize(result, id, module).atexit = False  # holds `module` for as long as `result` lives
    run = _Run(verify_each, print_after_all, timing or Timing(), remarks or Remarks())
    with result.context:
        run.elements(pipeline.elements, result.operation)
        if not verify_each:
            errors = _verification_errors(result.operation, None, "the pipeline", resolve(result.operation.location))
            if errors:
                raise PipelineError(str(pipeline), errors)
    return result


def reproducer(module: ir.Module, pipeline: str | Pipeline, error: PipelineError) -> str:
    """A file that fails as a run did: the module that went in, and in its first line the command."""
    text = str(Pipeline.parse(pipeline) if isinstance(pipeline, str) else pipeline)
    head = [f"// jascend-opt %s --pass-pipeline='{text}'", f"// fails in pass '{error.pass_name}'"]
    return "\n".join(head) + "\n\n" + module.operation.get_asm(enable_debug_info=True)


def copy_of(module: ir.Module, keep: Callable[[ir.OpView], bool] = lambda op: True) -> ir.Module:
    """A copy of a module, of the ops in it that are to be kept."""
    source = module.operation
    copy = ir.Module.create(source.location)
    for name in source.attributes:
        copy.operation.attributes[name] = source.attributes[name]
    for op in filter(keep, module.body.operations):
        copy.body.append(op.operation.clone(ip=False))
    return copy


@dataclass
class _Run:
    verify_each: bool
    print_after: Callable[[str, ir.Operation], None] | None
    timing: Timing
    remarks: Remarks

    def elements(self, elements: tuple[Element, ...], op: ir.Operation) -> None:
        for element in elements:
            if isinstance(element, Nested):
                for inner in _ops_below(op, element.anchor):
                    self.elements(element.elements, inner)
            elif isinstance(element, OurPass):
                action = functools.partial(self.run_ours, element.instance, op)
                self.step(element.name, op, action, PassFailure, find_pass(element.name).touches)
            else:
                manager = PassManager.parse(f"{op.name}({element})")
                manager.enable_verifier(self.verify_each)
                self.step(element.name, op, functools.partial(manager.run, op), ir.MLIRError)

    def run_ours(self, instance: Any, op: ir.Operation) -> None:
        with guarded(instance, op.context, op):
            instance.run(op, self.remarks)

    def step(
        self,
        name: str,
        op: ir.Operation,
        action: Callable[[], None],
        failure: type[Exception],
        touches: tuple[str, ...] | None = None,
    ) -> None:
        """Runs a pass and verifies the IR; `failure` is what the pass raises after it has emitted what is wrong,
        `touches` the ops that it may have changed."""
        self.remarks.pass_name = name
        position = resolve(op.location)
        file = _file_of(name)
        named = f"pass '{name}'{plugin_of(file)}"
        start = time.perf_counter()
        with collect(op.context, only_errors=True, of_calls=failure is ir.MLIRError) as errors:
            try:
                action()
            except failure:
                errors = errors or [Diagnostic("error", f"{named} failed", position)]
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # `sys.exit` too
                if os.environ.get("JASCEND_DEBUG") == "1":
                    raise
                errors.append(of_exception(error, f"{named} failed", position, file))
        self.timing.add(name, time.perf_counter() - start)
        if not errors and self.verify_each:
            errors = _verification_errors(op, touches, named, position)
        if self.print_after is not None:
            self.print_after(f"{name} Failed" if errors else name, op)
        if errors:
            raise PipelineError(name, errors)


def _file_of(name: str) -> str:
    info = find_pass(name)
    return "" if info is None else info.file


def _verification_errors(
    op: ir.Operation, names: tuple[str, ...] | None, after: str, position: Position
) -> list[Diagnostic]:
    """What is wrong with the IR after something has run; of the ops of ours only those with certain names may be."""
    with collect(op.context, only_errors=True) as errors:
        try:
            op.verify()
            jascend.dialect.verify(op, names)
        except ir.MLIRError:
            pass
    note = Diagnostic("note", f"the IR is invalid after {after}", position)
    return [replace(error, notes=(*error.notes, note)) for error in errors]


def _ops_below(op: ir.Operation, name: str) -> Iterator[ir.Operation]:
    """The ops called `name` right below `op`, each found afresh: a pass may have changed its neighbours."""
    index = 0
    while index < len(found := [o for r in op.regions for b in r for o in b.operations if o.operation.name == name]):
        yield found[index].operation
        index += 1
