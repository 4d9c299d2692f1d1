"""Generated kernels, broken on purpose one place at a time: the twin's checker must notice.

Every deletion of a barrier, of a flag pair or of a meeting of all cores that goes unnoticed would be synchronisation
that the kernel does not need; `insert-sync` should not have put it there. Other faults count as found too if the result
changes.
"""

import dataclasses
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

ROWS, VOCABULARY = 2, 1000  # short enough that nearly all of the kernel runs
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


def gate(x, bias):
    return ja.moe_gating_top_k(x, 8, bias=bias, norm_type=1, group_count=8, k_group=4, group_select_mode=1, out_flag=True)


def gate_by_softmax(x):
    return ja.moe_gating_top_k(x, 6, renorm=0, norm_type=0)


def route(x, expert_idx):
    return ja.moe_init_routing(x, expert_idx, expert_num=16)


def sample(logits, top_k, top_p, q):
    return ja.top_k_top_p_sample(logits, top_k, top_p, q)


def logits_of(seed, kind="normal", vocabulary=VOCABULARY, dtype=ml_dtypes.bfloat16):
    rng = np.random.default_rng(seed)
    shape = ROWS, vocabulary
    drawn = {
        "normal": lambda: rng.normal(0, 4, shape),
        "flat": lambda: rng.normal(0, 0.01, shape),
        "ties": lambda: rng.integers(-40, 40, shape) / 4,
        "same": lambda: np.ones(shape),
        "few": lambda: np.where(rng.random(shape) < 0.002, 5, rng.normal(0, 1, shape)),
        "special": lambda: rng.choice([0.0, 1.0, -300.0, np.inf, -np.inf, np.nan], shape),
    }
    return drawn[kind]().astype(dtype)


def a_row(values, dtype=np.float32):
    return np.array(values, np.float32).astype(dtype)


def sampling_filter():
    """Ties at the boundary of the nucleus or none, top-k off, by list and by search, rows that are special."""
    temperature = a_row([1, 2], ml_dtypes.bfloat16)
    calls = [
        ("ties", [0.9, 0.5], [500, 0]), ("normal", [0.9, 0.5], [50, 0]), ("flat", [0.99, 1.0], [9000, 0]),
        ("flat", [0.3, 0.9], [0, 12000]), ("same", [0.5, 0.1], [3, 0]), ("special", [0.5, 0.9], [0, 100]),
        ("normal", [0.0, 1.5], [1, 8000]), ("few", [0.1, 0.05], [0, 20]),
    ]  # fmt: skip
    return mutations.of_program(
        scaled_filter,
        *(
            {"logits": logits_of(i, kind), "temperature": temperature, "p": a_row(p, ml_dtypes.bfloat16),
             "k": np.array(k, np.int32)}
            for i, (kind, p, k) in enumerate(calls)
        ),
        cores=(1, 4),
    )  # fmt: skip


def filter_of_floats():
    calls = [("normal", [50, 700]), ("ties", [9000, 0]), ("flat", [12000, 1]), ("special", [5, 4000])]
    return mutations.of_program(
        top_k, *({"logits": logits_of(i, kind, dtype=np.float32), "k": np.array(k, np.int32)}
                 for i, (kind, k) in enumerate(calls)),
        cores=(1, 4),
    )  # fmt: skip


def gating(function=gate, rows=70, experts=256, target="ascend910b"):
    rng = np.random.default_rng(3)
    call = {"x": rng.normal(0, 1, (rows, experts)).astype(np.float32)}
    if function is gate:
        call["bias"] = rng.normal(0, 1, experts).astype(np.float32)
    subject = mutations.of_program(function, call, cores=(1, 3, 40), target=target)
    # One core more than there are rows.
    idle = tiling.pack({"rows_per_core": 0, "extra_rows": rows})
    launch = dataclasses.replace(subject.launches[0], tiling=idle, blocks=rows + 1)
    return dataclasses.replace(subject, launches=(*subject.launches, launch))


def routing():
    rng = np.random.default_rng(4)
    calls = [{"x": rng.normal(0, 1, (40, 200)).astype(np.float32), "expert_idx": ids.astype(np.int32)}
             for ids in (rng.integers(0, 16, (40, 8)), rng.integers(-2, 3, (40, 8)))]  # fmt: skip
    return mutations.of_program(route, *calls, cores=(1, 5))


def sampling(target="ascend910b"):
    rng = np.random.default_rng(5)
    calls = [
        ("normal", [50, 0], [0.9, 0.95]), ("flat", [1000, 7], [0.999, 1.0]), ("ties", [0, 0], [1.0, 0.3]),
        ("flat", [0, 0], [0.9, 0.5]), ("same", [0, 900], [0.9, 0.9]), ("flat", [0, 0], [0.01, 0.2]),
        ("flat", [0, 0], [0.999, 0.98]), ("ties", [1024, 1], [0.9, 1.0]),
    ]  # fmt: skip
    return mutations.of_program(
        sample,
        *(
            {"logits": logits_of(i, kind, dtype=np.float32), "top_k": np.array(k, np.int32), "top_p": a_row(p),
             "q": rng.exponential(size=(ROWS, VOCABULARY)).astype(np.float32)}
            for i, (kind, k, p) in enumerate(calls)
        ),
        cores=(1, 4),
        target=target,
    )  # fmt: skip


def meeting():
    """Two cores that read what the other one wrote."""
    rows, cores = 6, 2
    passes = "pipeline-loads{min-gain=-100},lower-to-ascendc,allocate-ub,insert-sync"
    with jascend.dialect.make_context():
        module = run_pipeline(ir.Module.parse(MEETING), passes)
        op = next(op.operation for op in module.body.operations if KERNEL in op.operation.attributes)
        kernel = emitter.emit(op, target="ascend910b", title="k")
    x = np.random.default_rng(2).normal(0, 1, (rows, 64)).astype(np.float32)
    fields, scratch = tiling.pack(kernel.shape.data(rows, cores)), kernel.shape.workspace_bytes(rows, cores)
    launch = mutations.Launch(fields, (x,), (x,), cores, scratch)
    return mutations.Subject("k", kernel.source, kernel.tiling_file, kernel.tiling_header, (launch,))


SUBJECTS = {
    "sampling_filter": sampling_filter,
    "filter_of_floats": filter_of_floats,
    "gating": gating,
    "gating_by_softmax": functools.partial(gating, gate_by_softmax, 40, 64),
    "gating_on_950": functools.partial(gating, target="ascend950"),
    "routing": routing,
    "sampling": sampling,
    "sampling_on_950": functools.partial(sampling, "ascend950"),
    "meeting": meeting,
}
# What orders padding before a copy that, where there is padding, is of nothing or the only one: the tile is one row, or
# the row one chunk. That follows from numbers, which `insert-sync` does not look at.
EMPTY_AFTER_PADDING = {"filter_of_floats": 1, "gating_by_softmax": 1}
TARGETS = {name: "ascend950" if name.endswith("950") else "ascend910b" for name in SUBJECTS}


@functools.cache
def laboratory(name, directory):
    return mutations.Laboratory(SUBJECTS[name](), directory / name, TARGETS[name])


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
    sample = mutants[:: max(1, len(mutants) // 6)]
    # Buffers that take each other's place need not show in the data.
    assert len(unnoticed(lab, sample)) <= (kind == "overlap")


def test_every_fault_where_cores_meet_is_found(directory):
    lab = laboratory("meeting", directory)
    assert {"flag", "sync-all"} <= {mutant.kind for mutant in lab.mutants}
    assert not unnoticed(lab, lab.mutants)


@pytest.mark.long
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_missing_synchronisation_is_found(name, directory):
    """Of those that a launch gets to: the rest is no proof of anything."""
    lab = laboratory(name, directory)
    deletions = [mutant for mutant in lab.mutants if mutant.kind in mutations.DELETIONS]
    left = [mutant for mutant in deletions if not lab.is_found(mutant)]
    missed = [str(mutant) for mutant in left if lab.is_reached(mutant)]
    assert len(missed) <= EMPTY_AFTER_PADDING.get(name, 0), "\n".join(missed)
    assert len(left) <= len(deletions) / 20


@pytest.mark.long
@pytest.mark.parametrize("name", SUBJECTS)
def test_nearly_every_other_fault_is_found(name, directory):
    lab = laboratory(name, directory)
    others = [mutant for mutant in lab.mutants if mutant.kind not in mutations.DELETIONS]
    left = unnoticed(lab, others)
    # One element fewer, or more, need not be one that decides the result.
    assert len(left) <= len(others) / 15, "\n".join(left)
