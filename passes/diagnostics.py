"""What MLIR and the passes report: collected, resolved to a file position, and printed as `mlir-opt` prints it.

    model.py:12:9: error: 'ascend.sort' op expected the last axis, got 0
      values, _ = ja.sort(x, axis=0)
              ^

The bindings can emit errors only, so errors go through MLIR (any handler sees them), while remarks are records of our
own that become diagnostics when they are printed.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jascend
from jascend.dialect import ASCEND
from mlir import ir

_SEVERITIES = {
    ir.DiagnosticSeverity.ERROR: "error",
    ir.DiagnosticSeverity.WARNING: "warning",
    ir.DiagnosticSeverity.REMARK: "remark",
    ir.DiagnosticSeverity.NOTE: "note",
}
_PACKAGE_DIRECTORY = os.path.join(os.path.dirname(jascend.__file__), "")
_HANDLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "handles.py")
REMARK_KINDS = ("passed", "missed", "analysis")
_SHOWN_LINES = 12  # of the op that MLIR attaches to an error: a whole module helps nobody


class Position(NamedTuple):
    """A place in a file; line 0 means that nothing is known."""

    file: str = "<unknown>"
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else f"{self.file}:0"

    def location(self, context: ir.Context) -> ir.Location:
        if not self.line:
            return ir.Location.unknown(context)
        return ir.Location.file(self.file, self.line, max(self.column, 1), context)


UNKNOWN = Position()


@dataclass(frozen=True)
class Diagnostic:
    severity: str  # "error", "warning", "remark" or "note"
    message: str
    position: Position = UNKNOWN
    notes: tuple[Diagnostic, ...] = ()

    def in_file(self, old: str, new: str) -> Diagnostic:
        """The same diagnostic with file `old` called `new`, in its notes too."""
        position = self.position._replace(file=new) if self.position.file == old else self.position
        return replace(self, position=position, notes=tuple(note.in_file(old, new) for note in self.notes))


class PassFailure(Exception):
    """Raised by a pass that cannot go on, after it has emitted the reason as a diagnostic."""


# -- locations ------------------------------------------------------------------------------------------------------


def resolve(location: ir.Location) -> Position:
    """The user's line among the file positions of a location: of a call site the callee comes before the caller, a
    fused location stands for its parts, a name for what it names."""
    return users_line(_positions(location))


def users_line(positions: Iterable[Position]) -> Position:
    """Of positions from the innermost call outwards the first that is neither in this package nor in the file of a
    plugin's operator: a user wants the line that calls an operator, not the operator's. Of an operator that stands in
    the user's own file, the line that calls it."""
    innermost, users = UNKNOWN, []
    for position in positions:
        if not _is_ours(position):
            users.append(position)
        elif users:  # behind it, what compiles it
            break
        elif innermost is UNKNOWN:
            innermost = position
    if not users:
        return innermost
    operators = {file for _, file in ASCEND.added.values()}
    callers = (position for position in users if position.file not in operators)
    return next(callers, users[1] if len(users) > 1 else users[0])


def _is_ours(position: Position) -> bool:
    return position.file.startswith(_PACKAGE_DIRECTORY)


def _positions(location: ir.Location) -> Iterator[Position]:
    waiting = [location]
    while waiting:
        location = waiting.pop()
        if location.is_a_callsite():
            waiting += (location.caller, location.callee)
        elif location.is_a_name():
            waiting.append(location.child_loc)
        elif location.is_a_file():
            if line := location.start_line:
                yield Position(location.filename, line, location.start_col)
        elif location.is_a_fused():
            waiting += reversed(location.locations)


def _location_of(where: ir.Location | ir.Operation | ir.OpView | ir.Value) -> ir.Location:
    return where if isinstance(where, ir.Location) else where.location


# -- emitting and collecting ----------------------------------------------------------------------------------------

# Notes cannot be attached through the bindings: they wait here until `collect` takes in the error they belong to.
_notes_of_next_error: list[Diagnostic] = []


def emit_error(where, message: str, notes: Iterable[tuple[object, str]] = ()) -> None:
    """Emits an MLIR error at an op, a value or a location; `notes` are pairs of such a place and a text."""
    _notes_of_next_error[:] = [Diagnostic("note", text, resolve(_location_of(place))) for place, text in notes]
    _location_of(where).emit_error(message)
    _notes_of_next_error.clear()


def emit_exception(where: ir.Location, error: Exception, message: str, file: str) -> None:
    """Emits an exception of Python as an error at a location, see `of_exception`. `JASCEND_DEBUG=1` lets it through."""
    if os.environ.get("JASCEND_DEBUG") == "1":
        raise error
    told = of_exception(error, message, file=file)
    emit_error(where, told.message, [(note.position.location(where.context), note.message) for note in told.notes])


@contextmanager
def collect(context: ir.Context, *, only_errors: bool = False, of_calls: bool = True) -> Iterator[list[Diagnostic]]:
    """Gathers the diagnostics that `context` emits in the block. With `only_errors` the others go on to outer handlers.
    Without `of_calls`, errors of calls into the bindings (a type that does not parse) are left to the `MLIRError`."""
    found: list[Diagnostic] = []

    def take(diagnostic: ir.Diagnostic) -> bool:
        if only_errors and diagnostic.severity != ir.DiagnosticSeverity.ERROR:
            return False
        taken = _from_mlir(diagnostic)
        found.append(replace(taken, notes=taken.notes + tuple(_notes_of_next_error)))
        return True

    emitted_before = context.emit_error_diagnostics
    context.emit_error_diagnostics = of_calls
    handler = context.attach_diagnostic_handler(take)
    try:
        yield found
    finally:
        handler.detach()
        context.emit_error_diagnostics = emitted_before


def _from_mlir(diagnostic: ir.Diagnostic) -> Diagnostic:
    return Diagnostic(
        _SEVERITIES[diagnostic.severity],
        _shorten(diagnostic.message),
        resolve(diagnostic.location),
        tuple(_from_mlir(note) for note in diagnostic.notes),
    )


def _shorten(message: str) -> str:
    lines = message.splitlines()
    if not message.startswith("see current operation") or len(lines) <= _SHOWN_LINES:
        return message
    return "\n".join([*lines[:_SHOWN_LINES], f"... ({len(lines) - _SHOWN_LINES} more lines)"])


def of_exception(error: BaseException, message: str, position: Position = UNKNOWN, file: str = "") -> Diagnostic:
    """A Python exception as a diagnostic: `message` and the exception, with a note at the line that raised it, or at
    the innermost line in `file` if there is one."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # of its own `__str__`
        text = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if frame.filename == file] or frames
    raised = UNKNOWN
    if frames and frames[-1].filename == _HANDLES:
        frames = []
    if isinstance(error, SyntaxError) and error.filename:
        text = f"{type(error).__name__}: {error.msg}"
        raised = Position(error.filename, error.lineno or 0, error.offset or 1)
    elif frames:
        raised = Position(frames[-1].filename, frames[-1].lineno or 0, (frames[-1].colno or 0) + 1)
    notes = (Diagnostic("note", "raised here", raised),) if raised.line else ()
    return Diagnostic("error", f"{message}: {text}", position, notes)


# -- printing -------------------------------------------------------------------------------------------------------


def render(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str] | None = None) -> str:
    """The diagnostics as text, each with its source line and a caret where the file can be read. `sources` holds the
    text of what is not on disk, by file name."""
    return "".join(_render(diagnostic, sources or {}) for diagnostic in diagnostics)


def _render(diagnostic: Diagnostic, sources: Mapping[str, str]) -> str:
    position = diagnostic.position
    text = f"{position}: {diagnostic.severity}: {diagnostic.message}\n"
    line = _source_line(position, sources)
    if line is not None:
        text += f"{line}\n{_caret_indent(line, position.column)}^\n"
    return text + "".join(_render(note, sources) for note in diagnostic.notes)


def _source_line(position: Position, sources: Mapping[str, str]) -> str | None:
    if not position.line:
        return None
    text = sources.get(position.file)
    if text is None:
        try:
            with open(position.file, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except (OSError, ValueError):
            return None
    lines = text.split("\n")
    return lines[position.line - 1].rstrip("\r") if position.line <= len(lines) else None


def _caret_indent(line: str, column: int) -> str:
    # Columns count bytes. Tabs stay tabs, so that the caret lines up however wide the terminal shows them.
    before = line.encode()[: max(column - 1, 0)].decode(errors="ignore")
    return re.sub(r"[^\t]", " ", before)


# -- remarks --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remark:
    """A decision of a pass: `kind` is "passed" (done), "missed" (not done, and why) or "analysis" (a fact). A `detail`
    tells whoever works on the pass something, and whoever wrote the graph nothing."""

    pass_name: str
    kind: str
    text: str
    position: Position
    detail: bool = False

    @property
    def location(self) -> str:
        return str(self.position)

    def diagnostic(self) -> Diagnostic:
        return Diagnostic("remark", f"{self.pass_name}: {self.kind}: {self.text}", self.position)


@dataclass
class Remarks:
    """The remarks of a pipeline run, in order."""

    records: list[Remark] = field(default_factory=list)
    pass_name: str = ""  # the pass that is running; set by the pipeline

    def add(self, where, kind: str, text: str, *, detail: bool = False) -> None:
        """Records a decision at an op, a value or a location."""
        if kind not in REMARK_KINDS:
            raise ValueError(f"remark kind must be one of {', '.join(REMARK_KINDS)}, got {kind!r}")
        self.records.append(Remark(self.pass_name, kind, text, resolve(_location_of(where)), detail))


# -- expected diagnostics -------------------------------------------------------------------------------------------

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|note|remark|warning)(?P<regex>-re)? *(?P<place>@(?:[+-]\d+|above|below|unknown))? *"
    r"\{\{(?P<text>.*)\}\}"
)


@dataclass
class _Expectation:
    severity: str
    pattern: re.Pattern[str]
    text: str
    comment: Position
    line: int  # 0: at an unknown location
    met: bool = False

    def accepts(self, diagnostic: Diagnostic, file: str) -> bool:
        if self.met or diagnostic.severity != self.severity or not self.pattern.search(diagnostic.message):
            return False
        return diagnostic.position.line == self.line and (not self.line or diagnostic.position.file == file)


def check_expected(diagnostics: Iterable[Diagnostic], text: str, file: str) -> list[Diagnostic]:
    """Compares diagnostics with the `expected-error@below {{...}}` comments in the text of `file`, in MLIR's syntax.

    Returns an error for every diagnostic that nothing expects and every expectation that nothing met."""
    expectations = _expectations(text, file)
    problems = []
    for diagnostic in _flatten(diagnostics):
        match = next((e for e in expectations if e.accepts(diagnostic, file)), None)
        if match is None:
            problems.append(
                Diagnostic("error", f"unexpected {diagnostic.severity}: {diagnostic.message}", diagnostic.position)
            )
        else:
            match.met = True
    problems += [
        Diagnostic("error", f'expected {e.severity} "{e.text}" was not produced', e.comment)
        for e in expectations
        if not e.met
    ]
    return problems


def _flatten(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        # mlir-opt does not attach the op while it verifies diagnostics; the bindings always do.
        yield from (note for note in diagnostic.notes if not note.message.startswith("see current operation"))


def _expectations(text: str, file: str) -> list[_Expectation]:
    lines = text.split("\n")
    matches = [_EXPECTED.search(line) for line in lines]
    plain = [index + 1 for index, match in enumerate(matches) if match is None]
    found = []
    for number, match in enumerate(matches, start=1):
        if match is None:
            continue
        place = match["place"] or "@+0"
        if place == "@unknown":
            line = 0
        elif place == "@above":
            line = max((n for n in plain if n < number), default=-1)
        elif place == "@below":
            line = min((n for n in plain if n > number), default=-1)
        else:
            line = number + int(place[1:])
        pattern = _regex(match["text"]) if match["regex"] else re.escape(match["text"])
        comment = Position(file, number, match.start() + 1)
        found.append(_Expectation(match["severity"], re.compile(pattern), match["text"], comment, line))
    return found


def _regex(text: str) -> str:
    """The pattern of an `expected-error-re`: literal text with regular expressions in `{{...}}`."""
    parts: Sequence[str] = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(f"(?:{part})" if index % 2 else re.escape(part) for index, part in enumerate(parts))
