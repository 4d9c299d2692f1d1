"""What joins blocks: SyncAll in both forms, modes of flags, atomics; and which kernels may use it."""

import re

import ml_dtypes
import numpy as np
import pytest
from test_twin import PROLOGUE, build, cache, entry  # noqa: F401  (cache is a fixture)

from jascend.backends.ascend import twin

HEAD = """  InitSocState();
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 1024);
  GlobalTensor<int32_t> gm; gm.SetGlobalBuffer((__gm__ int32_t*)a1, 64);
  LocalTensor<float> f(TPosition::VECCALC, 0, 64), g(TPosition::VECCALC, 4096, 1024);
  LocalTensor<int32_t> ub(TPosition::VECCALC, 32768, 64);
  int64_t me = GetBlockIdx(), all = GetBlockNum();
  Duplicate(f, float(me), 64); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  """
PUT, GET = "DataCopy(y[me * 16], f, 16); ", " DataCopy(g, y[(me + 1) % all * 16], 16); PipeBarrier<PIPE_ALL>();"
BODIES = {
    "hard": PUT + "SyncAll();" + GET,
    "typed": "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0); " + PUT + "SyncAll();" + GET,
    "untold": "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY); " + PUT + "SyncAll();" + GET,
    "untold_flag": "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY); " + PUT
                   + "CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1);" + GET,
    "by_key": "KERNEL_TASK_TYPE(1, KERNEL_TYPE_AIV_ONLY); KERNEL_TASK_TYPE(2, KERNEL_TYPE_MIX_AIV_1_0); " + PUT + "SyncAll();" + GET,
    # the soft form needs no scheduler
    "soft": "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY); " + PUT + "SyncAll(gm, ub);" + GET,
    "soft_twice": PUT + "SyncAll(gm, ub);" + GET + "SyncAll(gm, ub); " + PUT + "PipeBarrier<PIPE_ALL>();",
    "soft_first": "if (me < 2) { " + PUT + "SyncAll(gm, ub, 2); DataCopy(g, y[(1 - me) * 16], 16); PipeBarrier<PIPE_ALL>(); }",
    "soft_outside": PUT + "SyncAll(gm, ub, 2);",
    "soft_many": PUT + "SyncAll(gm, ub, 9);",
    "soft_scratch": "Duplicate(ub, 1, 64); PipeBarrier<PIPE_ALL>(); SyncAll(gm, ub); Adds(ub[8], ub, 1, 8); PipeBarrier<PIPE_ALL>();",
}
TRIGGERED = {
    "trigger": "static constexpr SyncAllConfig c = {PIPE_MTE3, PIPE_MTE2}; " + PUT + "SyncAll<true, c>();" + GET,
    "trigger_other": "static constexpr SyncAllConfig c = {PIPE_V, PIPE_ALL}; " + PUT + "SyncAll<true, c>();" + GET,
}
ATOMICS = {"Add": lambda x: x.sum(0), "Max": lambda x: x.max(0), "Min": lambda x: x.min(0)}
TYPES = {"int8_t": np.int8, "int16_t": np.int16, "int32_t": np.int32, "half": np.float16, "bfloat16_t": ml_dtypes.bfloat16,
         "float": np.float32}
ATOMIC = """  InitSocState();
  GlobalTensor<{t}> x, y; x.SetGlobalBuffer((__gm__ {t}*)a0 + GetBlockIdx() * 64, 64); y.SetGlobalBuffer((__gm__ {t}*)a1, 64);
  LocalTensor<{t}> f(TPosition::VECCALC, 0, 64);
  DataCopy(f, x, 64); SetFlag<HardEvent::MTE2_MTE3>(0); WaitFlag<HardEvent::MTE2_MTE3>(0);
  {on}
  DataCopy(y, f, 64); DisableDmaAtomic(); PipeBarrier<PIPE_ALL>();"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    text = "".join(entry(name, 2, HEAD + body) for name, body in BODIES.items())
    for operation in ATOMICS:
        for t in TYPES:
            text += entry(f"{operation}_{t}", 2, ATOMIC.format(t=t, on=f"SetAtomic{operation}<{t}>();"))
    text += entry("retyped", 2, ATOMIC.format(t="float", on="SetAtomicMax<half>(); SetAtomicType<float>();"))
    text += entry("type_alone", 2, ATOMIC.format(t="float", on="SetAtomicType<float>();"))
    return build(tmp_path_factory.mktemp("blocks"), text)


def findings(library, name, blocks=4, flags=None, key=0):
    zeros = np.zeros(64, np.int32) if flags is None else flags
    run = library.launch(name, [np.zeros(1024, np.float32), zeros], blocks=blocks, tiling_key=key)
    return run.findings


@pytest.mark.parametrize("name", ["hard", "typed", "soft", "soft_twice", "soft_first"])
def test_blocks_meet(kernels, name):
    assert findings(kernels, name) == []


@pytest.mark.parametrize("name, kind, says", [
    ("untold", "block-sync", "SyncAll in a kernel of vector cores only.*KERNEL_TYPE_MIX_AIV_1_0"),
    ("untold_flag", "block-sync", "Cross.*needs KERNEL_TYPE_MIX_AIV_1_0"),
    ("soft_outside", "block-sync", r"block \d calls SyncAll of the first 2"),
    ("soft_many", "block-sync", "usedCores is 9, the launch has 4 blocks"),
    ("soft_scratch", "uninitialized-read", "nothing was written"),
])
def test_blocks_that_would_not(kernels, name, kind, says):
    found = findings(kernels, name)
    assert kind in {f.kind for f in found} and any(re.search(says, f.message) for f in found), found


def test_the_key_chooses_the_type(kernels):
    assert {f.kind for f in findings(kernels, "by_key", key=1)} == {"block-sync"}
    assert findings(kernels, "by_key", key=2) == []
    assert findings(kernels, "hard") == []  # what one launch declared does not hold for the next


def test_flags_in_gm_start_from_zero(kernels):
    found = findings(kernels, "soft", flags=np.r_[np.zeros(9, np.int32), [7], np.zeros(54, np.int32)].astype(np.int32))
    assert [f.kind for f in found] == ["block-sync"] and "gmWorkspace is not zero (byte 36 is 7)" in found[0].message


def test_a_trigger_orders_its_own_pipe(tmp_path):
    library = build(tmp_path, "".join(entry(n, 2, HEAD + body) for n, body in TRIGGERED.items()), "ascend950")
    assert findings(library, "trigger") == []
    assert {f.kind for f in findings(library, "trigger_other")} == {"block-race"}


@pytest.mark.parametrize("operation", ATOMICS)
@pytest.mark.parametrize("t", TYPES)
def test_atomics(kernels, operation, t):
    rng = np.random.default_rng(3)
    x = rng.integers(-20, 20, (5, 64)).astype(TYPES[t])
    y = rng.integers(-20, 20, 64).astype(TYPES[t])
    expected = ATOMICS[operation](np.concatenate([x, y[None]]).astype(np.float32)).astype(TYPES[t])
    run = kernels.launch(f"{operation}_{t}", [x, y], blocks=5)
    assert run.findings == [] and run.report["total"]["copies"] == 10
    np.testing.assert_array_equal(y, expected)


def test_the_type_of_an_atomic(kernels):
    x, y = np.arange(64, dtype=np.float32) - 30, np.full(64, 5, np.float32)
    kernels.launch("retyped", [x, y], blocks=1)
    np.testing.assert_array_equal(y, np.maximum(x, 5))
    kernels.launch("type_alone", [x, y], blocks=1)  # turns nothing on
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("target, call, says", [
    ("ascend910b", "CrossCoreSetFlag<1, PIPE_MTE3>(0);", "mode 1 joins the two vector cores of one AI core"),
    ("ascend910b", "CrossCoreSetFlag<2, PIPE_MTE3>(0);", "mode 2 joins a cube core and its vector cores"),
    ("ascend910b", "CrossCoreSetFlag<4, PIPE_MTE3>(0);", "mode 4 is on 950 only"),
    ("ascend950", "CrossCoreSetFlag<4, PIPE_MTE3>(0);", "mode 4 joins a cube core and one of its vector cores"),
    ("ascend910b", "CrossCoreSetFlag<3, PIPE_MTE3>(0);", "the modes are 0, 1, 2"),
    ("ascend910b", "CrossCoreWaitFlag<2>(0);", "CrossCoreWaitFlag: mode 2"),
    ("ascend910b", "SyncAll<false>();", "the twin runs vector cores only"),
    ("ascend910b", "static constexpr SyncAllConfig c = {PIPE_V, PIPE_V};", "SyncAllConfig"),
    ("ascend910b", "SetAtomicMax<uint32_t>();", "atomics take int8_t, int16_t"),
    ("ascend910b", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);", "vector cores only"),
])
def test_what_vector_cores_alone_cannot_do_says_so(tmp_path, target, call, says):
    (tmp_path / "k.cpp").write_text(PROLOGUE + entry("k", 0, call))
    with pytest.raises(twin.CompileError, match=says):
        twin.build(tmp_path / "k.cpp", target=target)
