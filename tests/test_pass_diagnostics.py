"""Positions, rendered diagnostics, and expected ones."""

from __future__ import annotations

import textwrap

import jascend
import pytest
from jascend.dialect import ASCEND
from jascend.passes.diagnostics import (
    Diagnostic,
    Position,
    check_expected,
    collect,
    emit_error,
    of_exception,
    render,
    resolve,
    users_line,
)
from mlir import ir
from mlir.passmanager import PassManager


@pytest.fixture
def context():
    context = ir.Context()
    context.enable_multithreading(False)
    return context


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('"a.py":1:2', "a.py:1:2"),
        ('"a.py":1:2 to 3:4', "a.py:1:2"),
        ('"name"("a.py":1:2)', "a.py:1:2"),
        ('callsite("a.py":1:2 at "b.py":3:4)', "a.py:1:2"),
        ('callsite("f"(callsite("g"("a.py":1:2) at "b.py":3:4)) at "c.py":5:6)', "a.py:1:2"),
        ('callsite("f" at "b.py":3:4)', "b.py:3:4"),
        ('fused["a.py":1:2, "b.py":3:4]', "a.py:1:2"),
        ('fused<"why">[unknown, "name", "b.py":3:4]', "b.py:3:4"),
        ("unknown", "<unknown>:0"),
        ('"name"', "<unknown>:0"),
        ('"a.py":0:0', "<unknown>:0"),
    ],
)
def test_innermost_position(context, text, position):
    location = ir.Module.parse(f"module {{}} loc({text})", context).operation.location
    assert str(resolve(location)) == position


def test_position_in_this_package_is_passed_over(context):
    """An operator's own line says nothing; the line that calls it does."""
    ours = f'"{jascend.__file__}":1:2'
    for text, position in [
        (f'callsite({ours} at callsite("user.py":3:4 at "main.py":5:6))', "user.py:3:4"),
        (f"callsite({ours} at unknown)", f"{jascend.__file__}:1:2"),
    ]:
        location = ir.Module.parse(f"module {{}} loc({text})", context).operation.location
        assert str(resolve(location)) == position


def test_position_in_the_file_of_an_operator_is_passed_over(monkeypatch):
    """Of a plugin's operator, the line that calls it; what runs the compiler is further out."""
    monkeypatch.setitem(ASCEND.added, "mine", (None, "plugin.py"))
    names = ["plugin.py", "helper.py", jascend.__file__, "main.py"]
    plugin, helper, ours, main = (Position(name, line) for line, name in enumerate(names, 1))
    assert users_line([ours, plugin, plugin, helper, ours, main]) == helper
    assert users_line([plugin, plugin._replace(line=9), ours, main]).line == 9  # the operator is in the user's own file
    assert users_line([plugin, ours, main]) == plugin
    assert users_line([ours]) == ours and not users_line([]).line


def test_emitted_errors_are_collected_with_their_notes(context):
    a, b = ir.Location.file("a.py", 1, 2, context), ir.Location.file("b.py", 3, 4, context)
    with collect(context) as found:
        emit_error(a, "first", notes=[(b, "see here"), (a, "and here")])
        emit_error(b, "second")
    assert found == [
        Diagnostic("error", "first", Position("a.py", 1, 2), (
            Diagnostic("note", "see here", Position("b.py", 3, 4)),
            Diagnostic("note", "and here", Position("a.py", 1, 2)),
        )),
        Diagnostic("error", "second", Position("b.py", 3, 4)),
    ]  # fmt: skip


def test_collecting_ends_with_its_block(context):
    outer = []
    handler = context.attach_diagnostic_handler(lambda diagnostic: outer.append(diagnostic.message) or True)
    location = ir.Location.unknown(context)
    with collect(context) as found:
        location.emit_error("inside")
    location.emit_error("outside")
    handler.detach()
    assert ([d.message for d in found], outer) == (["inside"], ["outside"])
    assert not context.emit_error_diagnostics


def test_source_line_and_caret(tmp_path):
    file = tmp_path / "model.py"
    file.write_text("x = 1\r\n\tü = f(x)\n", encoding="utf-8")

    def shown(line, column):
        return render([Diagnostic("error", "bad", Position(str(file), line, column))]).split("\n", 1)[1]

    assert shown(1, 5) == "x = 1\n    ^\n"
    assert shown(2, 7) == "\tü = f(x)\n\t    ^\n"  # ü is two bytes, and columns count bytes
    assert shown(2, 99) == "\tü = f(x)\n\t        ^\n"
    assert shown(4, 1) == ""
    assert render([Diagnostic("error", "bad", Position("no/such.py", 1, 1))]) == "no/such.py:1:1: error: bad\n"
    assert render([Diagnostic("warning", "bad")]) == "<unknown>:0: warning: bad\n"
    assert render([Diagnostic("error", "bad", Position("-", 1, 2))], {"-": "abc"}) == "-:1:2: error: bad\nabc\n ^\n"


def test_long_ops_in_notes_are_cut_short(context):
    body = "".join(f"  %{i} = arith.constant {i} : i32\n" for i in range(40))
    module = ir.Module.parse(f"func.func @f() {{\n{body}  return\n}}", context)
    with collect(context) as found, pytest.raises(ir.MLIRError):
        PassManager.parse("any(symbol-dce)", context).run(module.body.operations[0].operation)
    (note,) = found[0].notes
    lines = note.message.splitlines()
    assert lines[0] == "see current operation: "
    assert (len(lines), lines[-1]) == (13, "... (32 more lines)")


def test_python_exception():
    try:
        raise KeyError("k")
    except KeyError as error:
        diagnostic = of_exception(error, "pass 'p' failed", Position("a.py", 1, 2))
    (note,) = diagnostic.notes
    assert (diagnostic.severity, diagnostic.message) == ("error", "pass 'p' failed: KeyError: 'k'")
    assert (note.message, note.position.file) == ("raised here", __file__)


# -- expected diagnostics --------------------------------------------------------------------------------------------


def problems(text: str, *diagnostics: Diagnostic) -> list[str]:
    found = check_expected(diagnostics, textwrap.dedent(text).strip(), "f.mlir")
    return [f"{problem.position.line}: {problem.message}" for problem in found]


def at(line: int, message: str = "bad", severity: str = "error", file: str = "f.mlir", notes=()) -> Diagnostic:
    return Diagnostic(severity, message, Position(file, line, 1) if line else Position(), notes)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{bad}}", 1),
        ("op\n// expected-error@-1 {{bad}}", 1),
        ("op\n// expected-error @-1 {{bad}}", 1),
        ("// expected-error @+2 {{bad}}\n\nop", 3),
        ("op\n// expected-error @above {{bad}}", 1),
        ("// expected-error @below {{bad}}\nop", 2),
        ("// expected-error @below {{b}}\n// expected-error @below {{bad}}\nop", 3),  # further comments do not count
        ("op\n// expected-error @above {{b}}\n// expected-error @above {{bad}}", 1),
        ("// expected-error @unknown {{bad}}", 0),
        ("op // expected-error {{a}}", 1),  # a part of the message is enough
        ("op // expected-error-re {{b{{[aeiou]}}d}}", 1),
        ("op // expected-error-re {{{{^bad$}}}}", 1),
    ],
)
def test_expectation_is_met(text, line):
    comments = text.count("expected-")
    assert problems(text, *[at(line)] * comments) == []
    assert len(problems(text, *[at(line)] * (comments - 1))) == 1
    assert problems(text, *[at(line)] * (comments + 1)) == [f"{line}: unexpected error: bad"]
    assert len(problems(text, *[at(7)] * comments)) == 2 * comments
    assert len(problems(text, *[at(line, "good")] * comments)) == 2 * comments
    assert len(problems(text, *[at(line, severity="warning")] * comments)) == 2 * comments


def test_expectations_are_of_their_own_file():
    assert problems("op // expected-error {{bad}}", at(1, file="g.mlir")) == [
        "1: unexpected error: bad", '1: expected error "bad" was not produced',
    ]  # fmt: skip


@pytest.mark.parametrize("severity", ["error", "warning", "remark", "note"])
def test_every_severity(severity):
    assert problems(f"op // expected-{severity} {{{{bad}}}}", at(1, severity=severity)) == []


def test_notes_are_expected_too_but_not_what_the_bindings_attach():
    attached = at(1, "see current operation: op", "note")
    note = at(2, "prior use here", "note")
    text = "op // expected-error {{bad}}\nop"
    assert problems(text, at(1, notes=(attached,))) == []
    assert problems(text, at(1, notes=(note, attached))) == ["2: unexpected note: prior use here"]
    assert problems(text + " // expected-note {{prior use}}", at(1, notes=(note, attached))) == []


def test_characters_that_mean_something_in_a_pattern_are_text():
    assert problems("op // expected-error {{a.b (c) [d] *}}", at(1, "a.b (c) [d] *")) == []
    assert problems("op // expected-error {{a.b}}", at(1, "axb")) != []
    assert problems("op // expected-error-re {{a.b {{x+}} (c)}}", at(1, "a.b xxx (c)")) == []
    assert problems("op // expected-error-re {{a.b {{x+}}}}", at(1, "axb xxx")) != []
