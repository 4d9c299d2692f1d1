"""Generated kernels, broken on purpose one place at a time: the twin's checker must notice.

Every deletion of a barrier, of a flag pair or of a meeting of all cores that goes unnoticed would be synchronisation
that the kernel does not need; `insert-sync` should not have put it there. Other faults count as found too if the result
changes.
"""

import functools
from collections import Counter

import ml_dtypes
import mutations
import numpy as np
import pytest
from mlir import ir

import jascend as ja
import jascend.dialect
from jascend.backends.ascend.codegen import kernel as emitter
from jascend.backends.ascend.codegen import tiling
from jascend.passes.lower_to_tile import KERNEL
from jascend.passes.pipeline import run_pipeline

ROWS, VOCABULARY = 2, 1000  # on one core, short enough that nearly all of the kernel runs
MEETING = """
func.func @k(%x: memref<?x64xf32, "gm">, %out: memref<?x64xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %x, %c0 : memref<?x64xf32, "gm">
  %first, %last, %part, %rounds = "tile.block_rows"(%rows) : (index) -> (index, index, index, index)
  %shared = "tile.workspace"() {name = "shared", elements = 512 : i64, per = "launch"} : () -> memref<512xf32, "gm">
  scf.for %row = %first to %last step %c1 {
    %at = arith.muli %row, %c64 : index
    %a = "tile.load"(%x, %at, %c64) : (memref<?x64xf32, "gm">, index, index) -> tensor<64xf32>
    %e = math.exp %a : tensor<64xf32>
    "tile.store"(%e, %shared, %at, %c64) : (tensor<64xf32>, memref<512xf32, "gm">, index, index) -> ()
  }
  "tile.sync_all"() : () -> ()
  %end = arith.subi %rows, %c1 : index
  scf.for %row = %first to %last step %c1 {
    %other = arith.subi %end, %row : index
    %from = arith.muli %other, %c64 : index
    %b = "tile.load"(%shared, %from, %c64) : (memref<512xf32, "gm">, index, index) -> tensor<64xf32>
    %s = arith.addf %b, %b : tensor<64xf32>
    %at = arith.muli %row, %c64 : index
    "tile.store"(%s, %out, %at, %c64) : (tensor<64xf32>, memref<?x64xf32, "gm">, index, index) -> ()
  }
  return
}
"""


def scaled_filter(logits, temperature, p, k):
    return ja.apply_top_k_top_p(logits / temperature[:, None], p, k)


def top_k(logits, k):
    return ja.apply_top_k_top_p(logits, None, k)


def compiled(function, *arguments):
    """A filter's kernel with all rows on one core."""
    kernel = ja.compile(function, *arguments).kernels[0]
    return mutations.Subject(
        kernel.name, kernel.source, kernel.tiling_file, kernel.tiling_header, tiling.pack(kernel.shape.data(ROWS, 1)),
        arguments, (np.zeros_like(arguments[0]),),
    )  # fmt: skip


def sampling_filter():
    """The first row exercises ties at the boundary of the nucleus, the second has top-k off."""
    rng = np.random.default_rng(0)
    logits = (rng.integers(-40, 40, (ROWS, VOCABULARY)) / 4).astype(ml_dtypes.bfloat16)
    scalars = (np.array(x, np.float32).astype(ml_dtypes.bfloat16) for x in ([1, 2], [0.9, 0.5]))
    return compiled(scaled_filter, logits, *scalars, np.array([500, 0], np.int32))


def filter_of_floats():
    logits = np.random.default_rng(1).normal(0, 4, (ROWS, VOCABULARY)).astype(np.float32)
    return compiled(top_k, logits, np.array([50, 700], np.int32))


def meeting():
    """Two cores that read what the other one wrote."""
    rows, cores = 6, 2
    passes = "pipeline-loads{min-gain=-100},lower-to-ascendc,allocate-ub,insert-sync"
    with jascend.dialect.make_context():
        module = run_pipeline(ir.Module.parse(MEETING), passes)
        op = next(op.operation for op in module.body.operations if KERNEL in op.operation.attributes)
        kernel = emitter.emit(op, target="ascend910b", title="k")
    x = np.random.default_rng(2).normal(0, 1, (rows, 64)).astype(np.float32)
    return mutations.Subject(
        "k", kernel.source, kernel.tiling_file, kernel.tiling_header, tiling.pack(kernel.shape.data(rows, cores)), (x,),
        (x,), cores, kernel.shape.workspace_bytes(rows, cores),
    )  # fmt: skip


SUBJECTS = {"sampling_filter": sampling_filter, "filter_of_floats": filter_of_floats, "meeting": meeting}


@functools.cache
def laboratory(name, directory):
    return mutations.Laboratory(SUBJECTS[name](), directory / name)


@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("mutants")


def unnoticed(lab, mutants):
    return [str(mutant) for mutant in mutants if not lab.is_found(mutant)]


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_kernel_itself_is_sound(name, directory):
    lab = laboratory(name, directory)
    assert lab.findings == []
    assert Counter(mutant.kind for mutant in lab.mutants)["flag"] > 3


@pytest.mark.parametrize("kind", ["flag", "barrier", "event-id", "address", "count", "length", "overlap"])
def test_some_faults_of_every_kind_are_found(kind, directory):
    """Spread over the kernel; the long test tries them all."""
    lab = laboratory("sampling_filter", directory)
    mutants = [mutant for mutant in lab.mutants if mutant.kind == kind]
    assert not unnoticed(lab, mutants[:: max(1, len(mutants) // 6)])


def test_every_fault_where_cores_meet_is_found(directory):
    lab = laboratory("meeting", directory)
    assert {"flag", "sync-all"} <= {mutant.kind for mutant in lab.mutants}
    assert not unnoticed(lab, lab.mutants)


@pytest.mark.long
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_missing_synchronisation_is_found(name, directory):
    lab = laboratory(name, directory)
    assert not unnoticed(lab, [mutant for mutant in lab.mutants if mutant.kind in mutations.DELETIONS])


@pytest.mark.long
@pytest.mark.parametrize("name", SUBJECTS)
def test_nearly_every_other_fault_is_found(name, directory):
    lab = laboratory(name, directory)
    others = [mutant for mutant in lab.mutants if mutant.kind not in mutations.DELETIONS]
    left = unnoticed(lab, others)
    assert len(left) <= len(others) / 100, "\n".join(left)
