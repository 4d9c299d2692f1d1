"""`jascend-opt` as a program: exit codes, streams, plugins, and what it says about mistakes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jascend.passes import opt, registry

PROGRAM = [sys.executable, "-m", "jascend.passes.opt"]
FUNC = "func.func @f() -> i32 {\n  %0 = arith.constant 1 : i32\n  return %0 : i32\n}\n"


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs `main` in this process, in an empty directory: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = opt.main(list(arguments))
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def func(tmp_path):
    (tmp_path / "f.mlir").write_text(FUNC)
    return "f.mlir"


def start(*arguments: str, **options) -> subprocess.Popen:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*PROGRAM, *arguments], **(pipes | options))


# -- input and output -----------------------------------------------------------------------------------------------


def test_stdin_is_the_default_input():
    process = start("--mlir-print-debuginfo", "--mlir-print-local-scope")
    out, err = process.communicate(FUNC, timeout=60)
    assert (process.returncode, err) == (0, "")
    assert 'arith.constant 1 : i32 loc("<stdin>":2:8)' in out


def test_output_file(run, func, tmp_path):
    assert run(func, "-o", "out.mlir") == (0, "", "")
    assert "func.func @f() -> i32" in (tmp_path / "out.mlir").read_text()
    assert run("out.mlir")[1] == (tmp_path / "out.mlir").read_text()


def test_a_failure_leaves_the_output_file_alone(run, tmp_path):
    (tmp_path / "bad.mlir").write_text("nonsense")
    (tmp_path / "out.mlir").write_text("kept")
    status, out, _ = run("bad.mlir", "-o", "out.mlir")
    assert (status, out) == (1, "")
    assert (tmp_path / "out.mlir").read_text() == "kept"


def test_empty_input_is_an_empty_module(run, tmp_path):
    (tmp_path / "empty.mlir").write_text("")
    assert run("empty.mlir") == (0, "module {\n}\n", "")


def test_version(run):
    status, out, err = run("--version")
    assert (status, err) == (0, "")
    assert re.fullmatch(r"jascend-opt \d+\.\d+\.\d+\n", out)


def test_reader_that_leaves_is_no_error():
    many = "".join(f"func.func private @f{i}()\n" for i in range(20_000))  # more than a pipe holds
    process = start()
    process.stdout.close()
    process.stdin.write(many)
    process.stdin.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_interrupt_is_quiet(tmp_path):
    (tmp_path / "wait.py").write_text("import time\nprint('waiting', flush=True)\ntime.sleep(60)\n")
    process = start("--plugin", str(tmp_path / "wait.py"))
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_an_error():
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = start(stdout=full)
        _, err = process.communicate(FUNC, timeout=60)
    assert process.returncode == 1
    assert err.startswith("<command-line>:1:1: error: cannot write output file '-': No space left on device\n")
    assert "Traceback" not in err and "Exception" not in err


def test_closed_stdout_is_an_error():
    command = " ".join(f"'{word}'" for word in PROGRAM) + " >&-"
    run = subprocess.run(command, shell=True, input=FUNC, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert "cannot write output file '-': Bad file descriptor" in run.stderr
    assert "Traceback" not in run.stderr


# -- mistakes on the command line -----------------------------------------------------------------------------------


def command_line_error(words: str, message: str, at: str) -> str:
    line = f"jascend-opt {words}"
    return f"<command-line>:1:{line.index(at) + 1}: error: {message}\n{line}\n{' ' * line.index(at)}^\n"


@pytest.mark.parametrize(
    ("words", "message", "at"),
    [
        ("missing.mlir", "cannot open input file 'missing.mlir': No such file or directory", "missing"),
        (".", "cannot open input file '.': Is a directory", "."),
        ("f.mlir g.mlir", "unexpected argument 'g.mlir'", "g.mlir"),
        ("f.mlir -x", "unexpected argument '-x'", "-x"),
        ("f.mlir --remarkz", "unknown option '--remarkz'; did you mean --remarks?", "--remarkz"),
        ("f.mlir --quixotic", "unknown option '--quixotic'", "--quixotic"),
        ("f.mlir --csx", "unknown option '--csx'; did you mean --cse?", "--csx"),
        ("--lower-to-tyle", "unknown option '--lower-to-tyle'; did you mean --lower-to-tile?", "--lower"),
        ("--fold-transposes=x=1", "pass 'fold-transposes' has no option 'x' (options: it has none)", "--fold"),
        ("--canonicalize=x=1", "pass 'canonicalize': no such option x", "--canon"),
        ("--cse --pass-pipeline=cse", "a pass and --pass-pipeline cannot be given together", "--cse"),
        ("f.mlir -o no/such/dir", "cannot write output file 'no/such/dir': No such file or directory", "no/such"),
        ("f.mlir --plugin no.py", "cannot load plugin 'no.py': no such file", "no.py"),
        ("f.mlir --plugin=no.py", "cannot load plugin 'no.py': no such file", "--plugin"),
        ("f.mlir -o", "argument -o: expected one argument", "jascend-opt"),
        ("f.mlir --remarks=3", "argument --remarks: ignored explicit argument '3'", "jascend-opt"),
    ],
)
def test_command_line_error(run, func, words, message, at):
    assert run(*words.split()) == (1, "", command_line_error(words, message, at))


def test_input_that_is_not_text(run, tmp_path):
    (tmp_path / "bytes.mlir").write_bytes(b"// \xff\n")
    assert run("bytes.mlir") == (
        1, "", command_line_error("bytes.mlir", "input file 'bytes.mlir' is not UTF-8 text: byte 3", "bytes"),
    )  # fmt: skip


def test_pipeline_error_quotes_the_pipeline(run, func):
    assert run(func, "--pass-pipeline=builtin.module(cse,\n  canonicalise)") == (1, "", (
        "<pass-pipeline>:2:3: error: no pass is called 'canonicalise'; did you mean 'canonicalize'?\n"
        "  canonicalise)\n"
        "  ^\n"
    ))  # fmt: skip


def test_parse_error_points_at_the_source(run, tmp_path):
    (tmp_path / "bad.mlir").write_text('func.func @f() {\n\t"ü", return\n}\n', encoding="utf-8")
    status, out, err = run("bad.mlir")
    assert (status, out) == (1, "")
    position, line, caret = err.splitlines()
    assert re.match(r"bad\.mlir:2:6: error: ", position)
    assert (line, caret) == ('\t"ü", return', "\t   ^")  # the column counts bytes, the caret characters


# -- plugins --------------------------------------------------------------------------------------------------------

PLUGIN = '''
"""Renames functions.

Before: `@f`. After: `@<prefix>f`.
"""

from dataclasses import dataclass

from jascend.passes import PassFailure, emit_error, option, register_pass, rewrite
from mlir import ir
from mlir.dialects import arith


@register_pass("rename-functions")
@dataclass(frozen=True)
class RenameFunctions:
    prefix: str = option("new_", "put before every name")

    def run(self, module, remarks):
        for op in module.regions[0].blocks[0].operations:
            name = ir.StringAttr(op.attributes["sym_name"]).value
            if name == "cursed":
                held = op.regions[0].blocks[0].operations[0]
                emit_error(op, f"cannot rename '{name}'", notes=[(held, "it holds this")])
                raise PassFailure
            if name == "broken":
                raise KeyError(name)
            remarks.add(op, "passed", f"renamed '{name}'")
            op.attributes["sym_name"] = ir.StringAttr.get(self.prefix + name)


@rewrite("arith.addi")
def addition_to_subtraction(op, rewriter):
    """Writes a + b as a - (0 - b)."""
    zero = arith.constant(op.lhs.type, 0)
    rewriter.replace_op(op, arith.SubIOp(op.lhs, arith.SubIOp(zero, op.rhs).result))
'''


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    registry.all_passes()
    monkeypatch.setattr(registry, "_passes", dict(registry._passes))  # what a test loads is gone after it
    (tmp_path / "plugin.py").write_text(PLUGIN)
    return "plugin.py"


def test_plugin_pass(run, func, plugin):
    status, out, err = run(func, "--plugin", plugin, "--rename-functions=prefix=my_", "--remarks")
    assert status == 0
    assert "func.func @my_f()" in out
    assert err == "f.mlir:1:1: remark: rename-functions: passed: renamed 'f'\nfunc.func @f() -> i32 {\n^\n"


def test_plugin_pass_in_a_pipeline_with_a_quoted_option(run, func, plugin):
    status, out, _ = run(func, "--plugin", plugin, "--pass-pipeline=cse,rename-functions{prefix='a b}'},cse")
    assert status == 0
    assert 'func.func @"a b}f"()' in out


def test_plugin_rewrite_and_its_remarks(run, plugin, tmp_path):
    (tmp_path / "add.mlir").write_text(
        "func.func @f(%a: i32, %b: i32) -> i32 {\n  %0 = arith.addi %a, %b : i32\n  return %0 : i32\n}\n"
    )
    status, out, err = run(
        "add.mlir", "--plugin", plugin, "--addition-to-subtraction", "--remarks",
        "--mlir-print-debuginfo", "--mlir-print-local-scope",
    )  # fmt: skip
    assert status == 0
    assert "arith.addi" not in out
    assert len(re.findall(r'arith.subi .*loc\("add.mlir":2:8\)', out)) == 2  # new ops got the location of the old
    assert "add.mlir:2:8: remark: addition-to-subtraction: passed: rewrote 'arith.addi'\n" in err


def test_plugin_help(run, plugin):
    _, listing, _ = run("--plugin", plugin, "--help")
    assert "--rename-functions      Renames functions.\n" in listing
    assert "--addition-to-subtraction  Writes a + b as a - (0 - b).\n" in listing
    _, page, _ = run("--plugin", plugin, "--help", "rename-functions")
    assert page == (
        "--rename-functions: Renames functions.\n\nBefore: `@f`. After: `@<prefix>f`.\n\n"
        "options:\n  prefix=str  put before every name (default new_)\n"
    )


def test_failing_pass_is_a_diagnostic_with_notes(run, plugin, tmp_path):
    (tmp_path / "f.mlir").write_text("func.func @cursed() {\n  return\n}\n")
    assert run("f.mlir", "--plugin", plugin, "--rename-functions") == (1, "", (
        "f.mlir:1:1: error: cannot rename 'cursed'\nfunc.func @cursed() {\n^\n"
        "f.mlir:2:3: note: it holds this\n  return\n  ^\n"
    ))  # fmt: skip


def test_exception_in_a_pass_is_a_diagnostic(run, plugin, tmp_path, monkeypatch):
    monkeypatch.delenv("JASCEND_DEBUG", raising=False)
    (tmp_path / "f.mlir").write_text("func.func @broken() { return }\n")
    status, out, err = run("f.mlir", "--plugin", plugin, "--rename-functions")
    line = PLUGIN.splitlines().index("                raise KeyError(name)") + 1
    assert (status, out) == (1, "")
    assert err == (
        f"f.mlir:1:1: error: pass 'rename-functions' of plugin '{plugin}' failed: KeyError: 'broken'\n"
        "func.func @broken() { return }\n^\n"
        f"{tmp_path}/plugin.py:{line}:17: note: raised here\n                raise KeyError(name)\n                ^\n"
    )


def test_debug_lets_the_exception_through(run, plugin, tmp_path, monkeypatch):
    monkeypatch.setenv("JASCEND_DEBUG", "1")
    (tmp_path / "f.mlir").write_text("func.func @broken() { return }\n")
    with pytest.raises(KeyError, match="broken"):
        run("f.mlir", "--plugin", plugin, "--rename-functions")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n", "{file}:1:1: error: plugin 'p.py' registers no pass and no operator\nx = 1\n^\n"),
        (
            "x = = 1\n",
            "{file}:1:1: error: cannot load plugin 'p.py': SyntaxError: invalid syntax\nx = = 1\n^\n"
            "{file}:1:5: note: raised here\nx = = 1\n    ^\n",
        ),
        (
            "y = 0\n1 / y\n",
            "{file}:1:1: error: cannot load plugin 'p.py': ZeroDivisionError: division by zero\ny = 0\n^\n"
            "{file}:2:1: note: raised here\n1 / y\n^\n",
        ),
    ],
)
def test_plugin_that_does_not_load(run, func, tmp_path, text, expected):
    (tmp_path / "p.py").write_text(text)
    assert run(func, "--plugin", "p.py") == (1, "", expected.format(file=tmp_path / "p.py"))


def test_plugins_of_installed_packages(tmp_path):
    """The entry-point group `jascend.passes`, from a package as pip would have installed it."""
    (tmp_path / "their_passes.py").write_text(PLUGIN)
    (tmp_path / "their_broken_passes.py").write_text("import no_such_module_anywhere\n")
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jascend.passes]\nbroken = their_broken_passes\nrename = their_passes\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    process = start("--rename-functions", env=os.environ | {"PYTHONPATH": path})
    out, err = process.communicate(FUNC, timeout=60)
    assert process.returncode == 0
    assert "func.func @new_f()" in out
    assert "passes of entry point 'broken' (their_broken_passes) cannot be loaded: ModuleNotFoundError" in err


def test_console_script():
    script = Path(sys.executable).with_name("jascend-opt")
    if not script.exists():
        pytest.skip("the package is not installed")
    run = subprocess.run([script], input=FUNC, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "func.func @f() -> i32" in run.stdout
