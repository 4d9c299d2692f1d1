"""Runs every .mlir and .py file under tests/filecheck through lit, each as a test of its own; and tests the harness."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import lit.discovery
import lit.LitConfig
import lit.Test
import pytest

ROOT = Path(__file__).parent / "filecheck"
HARNESS = ("checked_test.py", "lit.cfg.py", "warm.py")
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.rglob("*.mlir"), *ROOT.rglob("*.py"))
    if "Output" not in path.parts and path.name not in HARNESS
)


@pytest.fixture(scope="session")
def server():
    """The socket of a process that runs `jascend-opt` without starting anew."""
    with tempfile.TemporaryDirectory(prefix="jascend-") as directory:  # a socket's path must be short
        socket = f"{directory}/socket"
        command = [sys.executable, ROOT / "warm.py", "serve", socket]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            yield socket
            process.stdin.close()
            assert process.wait(timeout=30) == 0


def lit_config(params: dict[str, str]) -> lit.LitConfig.LitConfig:
    return lit.LitConfig.LitConfig(
        progname="lit", path=[], diagnostic_level="note", useValgrind=False, valgrindLeakCheck=False, valgrindArgs=[],
        noExecute=False, debug=False, isWindows=False, order="smart", params=params,
    )  # fmt: skip


def run_lit(path: Path, params: dict[str, str]) -> lit.Test.Result:
    config = lit_config(params)
    (test,) = lit.discovery.find_tests_for_inputs(config, [str(path)])
    return test.config.test_format.execute(test, config)


@pytest.mark.parametrize("name", FILES)
def test_file(name, server):
    result = run_lit(ROOT / name, {"jascend_opt_server": server})
    if result.code not in (lit.Test.PASS, lit.Test.XFAIL):
        pytest.fail(f"{result.code.name}: {name}\n{result.output}", pytrace=False)


# -- the harness ----------------------------------------------------------------------------------------------------

GOOD = """
    // RUN: jascend-opt %s | FileCheck %s
    // CHECK: func.func @f
    func.func @f() { return }
"""
# What each of these checks is nothing; the harness must say so. The reason is part of lit's output.
VACUOUS = {
    "no_run_line": (
        """
        // CHECK: func.func @f
        func.func @f() { return }
        """,
        "has no RUN line",
    ),
    "no_filecheck": (
        """
        // RUN: jascend-opt %s
        // CHECK: func.func @f
        func.func @f() { return }
        """,
        "RUN line without a pipe into FileCheck: jascend-opt %s",
    ),
    "second_run_line_without_filecheck": (
        """
        // RUN: jascend-opt %s | FileCheck %s
        // RUN: jascend-opt %s --canonicalize
        // CHECK: func.func @f
        func.func @f() { return }
        """,
        "RUN line without a pipe into FileCheck: jascend-opt %s --canonicalize",
    ),
    "filecheck_on_another_file": (
        """
        // RUN: jascend-opt %s | FileCheck %S/other.mlir
        // CHECK: func.func @f
        func.func @f() { return }
        """,
        "FileCheck does not check this file",
    ),
    "no_check_line": (
        """
        // RUN: jascend-opt %s | FileCheck %s
        func.func @f() { return }
        """,
        "no CHECK line asks for anything",
    ),
    "empty_check_line": (
        """
        // RUN: jascend-opt %s | FileCheck %s
        // CHECK:
        func.func @f() { return }
        """,
        "no CHECK line asks for anything",
    ),
    "only_module": (
        """
        // RUN: jascend-opt %s | FileCheck %s
        // CHECK: module {
        // CHECK: }
        func.func @f() { return }
        """,
        "no CHECK line asks for anything",
    ),
    "only_what_must_not_be_there": (
        """
        // RUN: jascend-opt %s | FileCheck %s
        // CHECK-NOT: tile.iota
        func.func @f() { return }
        """,
        "no CHECK line asks for anything",
    ),
    "other_prefix": (
        """
        // RUN: jascend-opt %s | FileCheck %s --check-prefix=TILE
        // CHECK: func.func @f
        func.func @f() { return }
        """,
        "no TILE line asks for anything",
    ),
    "one_of_two_prefixes": (
        """
        // RUN: jascend-opt %s | FileCheck %s --check-prefixes=CHECK,TILE
        // CHECK: func.func @f
        func.func @f() { return }
        """,
        "no TILE line asks for anything",
    ),
    "misspelled_directive": (
        """
        // RUN: jascend-opt %s | FileCheck %s
        // CHECK: func.func @f
        // CHECK-NXET: return
        func.func @f() { return }
        """,
        "unknown directive CHECK-NXET",
    ),
    "nothing_expected": (
        """
        // RUN: jascend-opt %s --verify-diagnostics
        func.func @f() { return }
        """,
        "verifies diagnostics but expects none",
    ),
}
# These check something, and it does not hold.
WRONG = {
    "text_not_there": (
        "// RUN: jascend-opt %s | FileCheck %s\n// CHECK: func.func @g\nfunc.func @f() { return }\n",
        "expected string not found in input",
    ),
    "tool_fails": (
        "// RUN: jascend-opt %s --no-such-pass | FileCheck %s --allow-empty\n// CHECK: @f\n",
        "unknown option '--no-such-pass'",
    ),
    "tool_fails_after_output": (
        "// RUN: jascend-opt %s --split-input-file | FileCheck %s\n"
        "// CHECK: func.func @f\nfunc.func @f() { return }\n// -----\nnonsense\n",
        "custom op 'nonsense' is unknown",
    ),
    "diagnostic_not_emitted": (
        "// RUN: jascend-opt %s --verify-diagnostics\n// expected-error @below {{no}}\nfunc.func @f() { return }\n",
        'expected error "no" was not produced',
    ),
}


@pytest.fixture
def suite(tmp_path):
    """Makes a lit suite with the given tests and the configuration of the real one."""

    def make(**tests: str) -> Path:
        (tmp_path / "lit.cfg.py").write_text(
            f"lit_config.load_config(config, {str(ROOT / 'lit.cfg.py')!r})\n"
            f"config.test_source_root, config.test_exec_root = {str(tmp_path)!r}, {str(tmp_path / 'Output')!r}\n"
        )
        for name, text in tests.items():
            (tmp_path / f"{name}.mlir").write_text(textwrap.dedent(text).lstrip())
        return tmp_path

    return make


@pytest.mark.parametrize("warm", [False, True])
def test_harness_passes_a_good_test(suite, server, warm):
    result = run_lit(suite(good=GOOD) / "good.mlir", {"jascend_opt_server": server} if warm else {})
    assert result.code is lit.Test.PASS, result.output


@pytest.mark.parametrize("name", VACUOUS)
def test_harness_fails_a_test_that_checks_nothing(suite, server, name):
    text, reason = VACUOUS[name]
    result = run_lit(suite(bad=text) / "bad.mlir", {"jascend_opt_server": server})
    assert result.code is lit.Test.FAIL
    assert reason in result.output


@pytest.mark.parametrize("name", WRONG)
def test_harness_fails_a_test_that_does_not_hold(suite, server, name):
    text, reason = WRONG[name]
    result = run_lit(suite(bad=text) / "bad.mlir", {"jascend_opt_server": server})
    assert result.code is lit.Test.FAIL
    assert reason in result.output


def test_plain_lit_runs_the_suite_and_fails_with_it(suite):
    directory = suite(good=GOOD, bad=VACUOUS["only_module"][0])
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", directory]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 1
    assert "PASS: jascend :: good.mlir" in run.stdout
    assert "FAIL: jascend :: bad.mlir" in run.stdout
    assert "no CHECK line asks for anything" in run.stdout


def test_a_crash_behind_the_server_is_a_failure(suite, server):
    (directory := suite(crash="")).joinpath("plugin.py").write_text("import os\nos.abort()\n")
    text = f"// RUN: jascend-opt %s --plugin {directory}/plugin.py | FileCheck %s\n// CHECK: func.func @f\n" + GOOD
    (directory / "crash.mlir").write_text(text.replace("    // RUN: jascend-opt %s | FileCheck %s", ""))
    result = run_lit(directory / "crash.mlir", {"jascend_opt_server": server})
    assert result.code is lit.Test.FAIL
    assert "jascend-opt crashed" in result.output
    assert run_lit(suite(good=GOOD) / "good.mlir", {"jascend_opt_server": server}).code is lit.Test.PASS


def test_the_suite_is_not_empty():
    assert "remove-dead-ops.mlir" in FILES
