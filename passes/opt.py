"""`jascend-opt`: runs passes on MLIR text, as `mlir-opt` does, with our dialects and our passes.

    jascend-opt kernel.mlir --pass-pipeline='builtin.module(fuse-sampling,canonicalize)'
    jascend-opt kernel.mlir --remove-dead-ops --allocate-ub='capacity=1024'
    jascend-opt --help allocate-ub

What a pass cannot do, and every mistake in the input, the pipeline or the command line, is a diagnostic on stderr.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import re
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata

import jascend.dialect
from mlir import ir

from .diagnostics import Diagnostic, Position, Remarks, check_expected, collect, render
from .differences import differences
from .pipeline import (
    UPSTREAM_PASSES,
    Element,
    Pipeline,
    PipelineError,
    PipelineSyntaxError,
    Timing,
    UnknownPassError,
    ir_dumper,
    reproducer,
    run_pipeline,
)
from .plugins import PluginError, load_plugin
from .registry import PassInfo, all_passes, find_pass

_PROGRAM = "jascend-opt"
_COMMAND_LINE = "<command-line>"
_STDIN = "<stdin>"
_PARSED_AS = "-"  # what MLIR calls text that is not in a file
_SPLIT_MARKER = "// -----"

_FLAGS: dict[str, dict] = {
    "--pass-pipeline": {"metavar": "TEXT", "help": "passes to run, as 'builtin.module(a,b{x=1},func.func(c))'"},
    "--plugin": {"metavar": "FILE", "action": "append", "default": [], "help": "a Python file that registers passes"},
    "--remarks": {"action": "store_true", "help": "print what the passes decided"},
    "--verify-diagnostics": {"action": "store_true", "help": "compare diagnostics with expected-* comments"},
    "--split-input-file": {"action": "store_true", "help": f"process the parts between '{_SPLIT_MARKER}' lines alone"},
    "--print-ir-after-all": {"action": "store_true", "help": "print the IR after every pass to stderr"},
    "--mlir-timing": {"action": "store_true", "help": "print the time that each pass took to stderr"},
    "--interpret": {"action": "store_true", "help": "run kernels on tiles before and after the passes, and compare"},
    "--seed": {"metavar": "N", "type": int, "default": 0, "help": "of the arrays that --interpret makes"},
    "--reproducer": {"metavar": "FILE", "help": "where to save the input and the pipeline if a pass fails"},
    "--mlir-print-debuginfo": {"action": "store_true", "help": "print locations"},
    "--mlir-print-op-generic": {"action": "store_true", "help": "print the generic form"},
    "--mlir-print-local-scope": {"action": "store_true", "help": "print without aliases"},
    "--allow-unregistered-dialect": {"action": "store_true", "help": "accept ops that no dialect defines"},
    "--dump-irdl": {"action": "store_true", "help": "print the IRDL definitions of our dialects and stop"},
    "-o": {"metavar": "FILE", "dest": "output", "default": "-", "help": "where to write, '-' for stdout"},
    "--version": {"action": "store_true", "help": "print the version and stop"},
    "--help": {"metavar": "PASS", "nargs": "?", "const": "", "help": "print this, or all about a pass, and stop"},
    "--help-pass": {"metavar": "PASS", "dest": "help", "help": "the same as --help PASS"},
}


class _UsageError(Exception):
    """A mistake on the command line; `word` is the argument to point at."""

    def __init__(self, message: str, word: str = ""):
        super().__init__(message)
        self.message, self.word = message, word


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    try:
        return _run(argv)
    except _UsageError as error:
        _report_usage(error, argv)
    except (PluginError, PipelineError) as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141  # as a shell reports SIGPIPE: the reader has left
    return 1


def _run(argv: list[str]) -> int:
    arguments, pass_flags = _parse_arguments(argv)
    for plugin in arguments.plugin:
        _load_plugin(plugin)
    if arguments.help is not None:
        return _write(_help_of_pass(arguments.help) if arguments.help else _help(), "-")
    if arguments.version:
        return _write(f"{_PROGRAM} {metadata.version('jascend')}\n", "-")
    if arguments.dump_irdl:
        return _write("".join(map(jascend.dialect.irdl_text, jascend.dialect.DIALECTS)), arguments.output)
    pipeline = _pipeline(arguments.pass_pipeline, pass_flags)
    return _Session(arguments, pipeline).process()


# -- processing -----------------------------------------------------------------------------------------------------


@dataclass
class _Session:
    """One input file and what is to be done with it."""

    arguments: argparse.Namespace
    pipeline: Pipeline
    timing: Timing = field(default_factory=Timing)

    def process(self) -> int:
        file, text = _read(self.arguments.file)
        outputs, problems = [], []
        for part in _split(text) if self.arguments.split_input_file else [text]:
            output, diagnostics = self.process_part(part, file)
            outputs.append(output)
            if self.arguments.verify_diagnostics:
                diagnostics = check_expected(diagnostics, part, file)
            problems += diagnostics
        sys.stderr.write(render(problems, {file: text}))
        failed = any(problem.severity == "error" for problem in problems)
        if not failed or self.arguments.output == "-":
            self.timed("Output", _write, f"{_SPLIT_MARKER}\n".join(outputs), self.arguments.output)
        if self.arguments.mlir_timing:
            sys.stderr.write(self.timing.report())
        return int(failed)

    def process_part(self, text: str, file: str) -> tuple[str, list[Diagnostic]]:
        """The output of one part, empty if it failed, and what there was to say about it."""
        context = jascend.dialect.make_context()
        context.allow_unregistered_dialects = self.arguments.allow_unregistered_dialect
        remarks = Remarks()
        output = ""
        with collect(context) as found:
            try:
                module = self.timed("Parser", _parse, text, file, context)
                result = self.transform(module, remarks)
                output = result.operation.get_asm(**self.asm_options).rstrip("\n") + "\n"
                if self.arguments.interpret:
                    found += self.timed("Interpreter", differences, module, result, self.arguments.seed)
            except PipelineError as error:
                found += error.diagnostics
            except ir.MLIRError:
                pass  # it did not parse, and the diagnostics say why
        told = [remark.diagnostic() for remark in remarks.records] if self.arguments.remarks else []
        return output, told + [diagnostic.in_file(_PARSED_AS, file) for diagnostic in found]

    def transform(self, module: ir.Module, remarks: Remarks) -> ir.Module:
        dump = ir_dumper(sys.stderr, **self.asm_options) if self.arguments.print_ir_after_all else None
        try:
            return run_pipeline(module, self.pipeline, print_after_all=dump, timing=self.timing, remarks=remarks)
        except PipelineError as error:
            if self.arguments.reproducer is not None:
                _write(reproducer(module, self.pipeline, error), self.arguments.reproducer)
            raise

    @property
    def asm_options(self) -> dict[str, bool]:
        return {
            "enable_debug_info": self.arguments.mlir_print_debuginfo,
            "print_generic_op_form": self.arguments.mlir_print_op_generic,
            "use_local_scope": self.arguments.mlir_print_local_scope,
        }

    def timed(self, name, action, *arguments):
        start = time.perf_counter()
        try:
            return action(*arguments)
        finally:
            self.timing.add(name, time.perf_counter() - start)


def _parse(text: str, file: str, context: ir.Context) -> ir.Module:
    """A verified module whose locations name `file`; the bindings parse text without a file name."""
    module = ir.Module.parse(text, context)

    def named(location: ir.Location) -> ir.Location:
        if not location.is_a_file() or location.filename != _PARSED_AS:
            return location
        # The module that MLIR puts around a file without one is at 0:0.
        return ir.Location.file(file, max(location.start_line, 1), max(location.start_col, 1), context)

    def rename(op: ir.Operation) -> ir.WalkResult:
        op.location = named(op.location)
        for block in (block for region in op.regions for block in region):
            for argument in block.arguments:
                argument.set_location(named(argument.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(rename, ir.WalkOrder.PRE_ORDER)
    if not jascend.dialect.verify(module.operation):
        raise ir.MLIRError("verification failed", [])
    return module


def _split(text: str) -> list[str]:
    """The parts of a file, each moved down by blank lines so that its line numbers are those of the file."""
    parts, line = [], 0
    for part in re.split(rf"^{_SPLIT_MARKER}[ \t]*$", text, flags=re.MULTILINE):
        parts.append("\n" * line + part)
        line += part.count("\n")
    return parts


def _read(path: str) -> tuple[str, str]:
    """The name of the input in diagnostics, and its text."""
    try:
        if path == "-":
            return _STDIN, sys.stdin.buffer.read().decode()
        with open(path, "rb") as file:
            return path, file.read().decode()
    except OSError as error:
        raise _UsageError(f"cannot open input file '{path}': {error.strerror}", path) from None
    except UnicodeDecodeError as error:
        raise _UsageError(f"input file '{path}' is not UTF-8 text: byte {error.start}", path) from None


def _write(text: str, path: str) -> int:
    try:
        if path == "-":
            _write_to_stdout(text)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _UsageError(f"cannot write output file '{path}': {error.strerror}", path) from None
    return 0


def _write_to_stdout(text: str) -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        # Python flushes once more at exit, and would complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


# -- the command line -----------------------------------------------------------------------------------------------


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str):
        raise _UsageError(message)


def _argument_parser() -> argparse.ArgumentParser:
    parser = _ArgumentParser(
        prog=_PROGRAM,
        usage=f"{_PROGRAM} [FILE] [--pass-pipeline=TEXT | --PASS[=OPTIONS] ...] [options]",
        description="Runs passes on MLIR text, with the dialects and passes of jascend.",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", nargs="?", default="-", help="MLIR text, '-' for stdin")
    for flag, settings in _FLAGS.items():
        parser.add_argument(flag, **settings)
    return parser


def _parse_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and in order the words that name passes."""
    pass_flags = [word for word in argv if word.startswith("--") and word.partition("=")[0] not in _FLAGS]
    arguments, unknown = _argument_parser().parse_known_args([word for word in argv if word not in pass_flags])
    if unknown:
        raise _UsageError(f"unexpected argument '{unknown[0]}'", unknown[0])
    return arguments, pass_flags


def _load_plugin(path: str) -> None:
    try:
        load_plugin(path)
    except PluginError as error:
        if error.diagnostic.position.line:
            raise
        raise _UsageError(error.diagnostic.message, path) from None


def _pipeline(text: str | None, pass_flags: list[str]) -> Pipeline:
    if text is None:
        return Pipeline(tuple(element for flag in pass_flags for element in _pass_of_flag(flag)))
    if pass_flags:
        raise _UsageError("a pass and --pass-pipeline cannot be given together", pass_flags[0])
    return Pipeline.parse(text)


def _pass_of_flag(flag: str) -> tuple[Element, ...]:
    name, _, options = flag.removeprefix("--").partition("=")
    try:
        return Pipeline.parse(f"{name}{{{options}}}" if options else name).elements
    except UnknownPassError:
        near = _near(f"--{name}", [*_FLAGS, *(f"--{known}" for known in (*all_passes(), *UPSTREAM_PASSES))])
        message = f"unknown option '--{name}'{near}"
    except PipelineSyntaxError as error:
        message = error.message
    raise _UsageError(message, flag)


def _near(word: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _report_usage(error: _UsageError, argv: list[str]) -> None:
    words = [shlex.quote(word) for word in [_PROGRAM, *argv]]
    given = (i for i, word in enumerate(argv, start=1) if error.word and word in (error.word, f"--plugin={error.word}"))
    index = next(given, 0)
    column = len(" ".join(words[:index]).encode()) + 2 if index else 1
    diagnostic = Diagnostic("error", error.message, Position(_COMMAND_LINE, 1, column))
    sys.stderr.write(render([diagnostic], {_COMMAND_LINE: " ".join(words)}))


def _help() -> str:
    lines = [_argument_parser().format_help(), "passes:"]
    for info in all_passes().values():
        lines.append(f"  --{info.name:<20}  {info.summary}")
    return "\n".join(lines) + f"\n\nAll about one of them: {_PROGRAM} --help PASS\n"


def _help_of_pass(name: str) -> str:
    info = find_pass(name)
    if info is None:
        raise _UsageError(f"no pass of ours is called '{name}'{_near(name, all_passes())}", name)
    return f"--{info.name}: {info.doc.strip()}\n{_options_help(info)}"


def _options_help(info: PassInfo) -> str:
    if not info.options:
        return ""
    lines = ["", "options:"]
    for option in info.options:
        default = str(option.default).lower() if option.type is bool else option.default
        lines.append(f"  {option.name}={option.type.__name__}  {option.doc} (default {default})")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
