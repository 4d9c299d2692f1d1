"""Kernels that are launched directly, with values among their arguments; lists of tensors."""

import ctypes
import re

import ml_dtypes
import numpy as np
import pytest
from test_twin import PROLOGUE, build, cache, entry  # noqa: F401  (cache is a fixture)

from jascend.backends.ascend import twin

KERNELS = r"""
struct Tiling { uint32_t columns; float factor; uint16_t parts[3]; };
template <typename T>
__aicore__ inline void scale(GM_ADDR x, __gm__ T* y, uint32_t n, T factor) {
  InitSocState();
  GlobalTensor<T> a, b;
  a.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * n, n);
  b.SetGlobalBuffer(y + GetBlockIdx() * n, n);
  LocalTensor<T> row(TPosition::VECCALC, 0, 1024);
  DataCopyPad(row, a, DataCopyExtParams{1, uint32_t(n * sizeof(T)), 0, 0, 0}, DataCopyPadExtParams<T>{false, 0, 0, T(0)});
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  Muls(row, row, factor, n);
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  DataCopyPad(b, row, DataCopyExtParams{1, uint32_t(n * sizeof(T)), 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
}
__global__ __vector__ void by_struct(GM_ADDR x, GM_ADDR y, Tiling t) {  // no extern "C": <<<>>> needs none
  scale<float>(x, (__gm__ float*)y, t.columns, t.factor * t.parts[2]);
}
extern "C" __global__ __aicore__ void plain(GM_ADDR x, GM_ADDR y) { scale<float>(x, (__gm__ float*)y, 16, 3.0f); }
template <typename T, int n>
__global__ __vector__ void templated(__gm__ T* x, __gm__ T* y, T factor) { scale<T>((GM_ADDR)x, y, n, factor); }
namespace inner { __global__ __mix__(0, 1) void meets(GM_ADDR y, int64_t unused) { InitSocState(); SyncAll(); } }
__global__ __vector__ void does_not_meet(GM_ADDR y) { InitSocState(); SyncAll(); }
__global__ __aicore__ void framework(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {}
__global__ __cube__ void cube(GM_ADDR x) {}
__global__ __mix__(1, 2) void mixed(GM_ADDR x) {}
extern "C" __global__ __vector__ void all_kinds(GM_ADDR y, bool b, int8_t c, uint16_t s, int32_t i, uint64_t l, float f, half h,
                                                bfloat16_t e) {
  InitSocState();
  GlobalTensor<float> out; out.SetGlobalBuffer((__gm__ float*)y, 8);
  const float values[] = {float(b), float(c), float(s), float(i), float(l), f, float(h), ToFloat(e)};
  for (int k = 0; k < 8; ++k) out.SetValue(k, values[k]);
}
"""


class Tiling(ctypes.Structure):
    _fields_ = [("columns", ctypes.c_uint32), ("factor", ctypes.c_float), ("parts", ctypes.c_uint16 * 3)]


@pytest.fixture(scope="module")
def direct(tmp_path_factory):
    return build(tmp_path_factory.mktemp("direct"), KERNELS)


def rows(dtype=np.float32):
    return np.arange(48, dtype=dtype).reshape(3, 16), np.zeros((3, 16), dtype)


RECORD = np.dtype([("columns", "u4"), ("factor", "f4"), ("parts", "u2", 3)], align=True)


@pytest.mark.parametrize("tiling", [
    Tiling(16, 1.5, (0, 0, 2)), bytes(Tiling(16, 1.5, (0, 0, 2))), np.array((16, 1.5, (0, 0, 2)), RECORD),
    np.array((16, 1.5, (0, 0, 2)), RECORD)[()]])
def test_a_struct_by_value(direct, tiling):
    x, y = rows()
    run = direct.launch("by_struct", [x, y, tiling], blocks=3)
    np.testing.assert_array_equal(y, 3 * x)
    assert run.findings == [] and run.report["total"]["gm_read_bytes"] == x.nbytes


def test_pointers_only(direct):
    x, y = rows()
    assert direct.launch("plain", [x, y], blocks=3).findings == []
    np.testing.assert_array_equal(y, 3 * x)


@pytest.mark.parametrize("name, dtype", [("float", np.float32), ("half", np.float16)])
def test_templates(direct, name, dtype):
    x, y = rows(dtype)
    direct.launch(f"templated<{name}, 16>", [x, y, 2.5], blocks=3)
    np.testing.assert_array_equal(y, (x * dtype(2.5)).astype(dtype))


@pytest.mark.parametrize("values", [
    (True, -5, 60000, -70000, 2**40, 1.5, 0.1, 0.1),
    (np.bool_(True), np.int8(-5), np.uint16(60000), np.int32(-70000), np.uint64(2**40), np.float32(1.5), np.float16(0.1),
     ml_dtypes.bfloat16(0.1)),
])
def test_every_kind_of_value(direct, values):
    y = np.zeros(8, np.float32)
    assert direct.launch("all_kinds", [y, *values], blocks=1).findings == []
    np.testing.assert_array_equal(y, np.array([1, -5, 60000, -70000, 2**40, 1.5, np.float16(0.1), ml_dtypes.bfloat16(0.1)], np.float32))


GOOD = [np.zeros(8, np.float32), True, 1, 1, 1, 1, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("at, value, says", [
    (1, 1, "argument 1 is by value a bool of 1 bytes, not a int"), (2, 200, "a signed integer of 1 bytes, which 200 does not fit"),
    (3, -1, "an unsigned integer of 2 bytes, which -1"), (4, 1.5, "a signed integer of 4 bytes, not a float"),
    (4, np.int64(1), "not int64"), (5, np.int64(1), "an unsigned integer of 8 bytes, not int64"), (6, np.float64(1), "not float64"),
    (7, np.float32(1), "a half of 2 bytes, not float32"), (8, np.float16(1), "a bfloat16_t of 2 bytes, not float16"),
    (2, np.zeros(3), "not a ndarray"), (0, 5, "argument 0 is a int, not a NumPy array"),
])
def test_values_that_do_not_fit(direct, at, value, says):
    with pytest.raises(ValueError, match=says):
        direct.launch("all_kinds", [*GOOD[:at], value, *GOOD[at + 1 :]], blocks=1)


@pytest.mark.parametrize("entry, arguments, options, says", [
    ("by_struct", [*rows(), b"short"], {}, "a struct of 16 bytes, not of 5"),
    ("by_struct", [*rows(), 5], {}, "pass its bytes, a ctypes.Structure"),
    ("by_struct", rows(), {}, "takes 3 arguments, not 2"),
    ("plain", rows(), {"tiling": b"1"}, "launched directly: it has no tiling"),
    ("plain", rows()[:1], {}, r"0 arrays, not 1 \(or, launched directly, 2\)"),
    ("cube", rows()[:1], {}, "__cube__.*vector cores only"), ("mixed", rows()[:1], {}, r"__mix__\(1, 2\)"),
    ("framework", rows()[:1], {}, 'is not extern "C"'),
    ("nothing<3>", [], {}, "has no kernel"),
])
def test_launches_that_do_not_fit(direct, entry, arguments, options, says):
    with pytest.raises(ValueError, match=says):
        direct.launch(entry, list(arguments), blocks=1, **options)


def test_blocks_meet_in_a_mix_kernel_only(direct):
    y = np.zeros(8, np.float32)
    assert direct.launch("inner::meets", [y, 0], blocks=4).findings == []
    found = direct.launch("does_not_meet", [y], blocks=4).findings
    assert [f.kind for f in found] == ["block-sync"] and "__mix__(0, 1)" in found[0].message


def test_a_wrong_argument_in_the_template_is_the_compilers(direct):
    with pytest.raises(twin.CompileError, match="NoSuchType"):
        direct.launch("templated<NoSuchType, 16>", [*rows(), 1.0], blocks=1)


def test_findings_in_a_direct_kernel_name_its_source(direct):
    x, y = rows()
    (finding,) = direct.launch("by_struct", [x[:1], y, Tiling(32, 1.0, (1, 1, 1))], blocks=1).findings[:1]
    assert finding.kernel_file == str(direct.source) and "GM argument 0, which has 64 bytes" in finding.message


# ---- lists of tensors ----

LISTS = '#include "kernel_operator_list_tensor_intf.h"\n' + entry("add_up", 2, """  InitSocState();
  ListTensorDesc list((__gm__ void*)a0);
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a1, 64);
  LocalTensor<float> f(TPosition::VECCALC, 0, 8), g(TPosition::VECCALC, 32, 8);
  uint64_t shape[4];
  TensorDesc<float> desc; desc.SetShapeAddr(shape);
  Duplicate(f, 0.0f, 8); PipeBarrier<PIPE_ALL>();
  for (uint32_t i = 0; i < list.GetSize(); ++i) {
    list.GetDesc(desc, i);
    GlobalTensor<float> x = desc.GetDataObj();
    DataCopy(g, x, 8); PipeBarrier<PIPE_ALL>();
    Add(f, f, g, 8); PipeBarrier<PIPE_ALL>();
    y.SetValue(8 + 4 * i, desc.GetIndex()); y.SetValue(9 + 4 * i, desc.GetDim());
    y.SetValue(10 + 4 * i, desc.GetShape(0)); y.SetValue(11 + 4 * i, desc.GetShape(1));
  }
  DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(y);
  DataCopy(y, f, 8);""") + entry("write", 1, """  InitSocState();
  ListTensorDesc list; list.Init((__gm__ void*)a0);
  for (uint32_t i = 0; i < list.GetSize(); ++i) {
    GlobalTensor<float> y; y.SetGlobalBuffer(list.GetDataPtr<float>(i)); y.SetValue(0, float(i + 1));
  }""") + entry("beyond", 1, """  InitSocState();
  ListTensorDesc list((__gm__ void*)a0);
  GlobalTensor<float> y; y.SetGlobalBuffer(list.GetDataPtr<float>(1)); y.SetValue(8, 1.0f);""") + "".join(
    entry(name, 1, f"  InitSocState(); ListTensorDesc list((__gm__ void*)a0); uint64_t b[4]; TensorDesc<float> d; {body}")
    for name, body in {
        "index": "list.GetDataPtr<float>(2);", "no_room": "list.GetDesc(d, 0);", "sizes": "list.Init((__gm__ void*)a0, 64, 3);",
        "shape": "d.SetShapeAddr(b); list.GetDesc(d, 1); d.GetShape(2);", "shapeless": "d.SetShapeAddr(b); list.GetDesc(d, 0);"}.items())


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    return build(tmp_path_factory.mktemp("lists"), LISTS)


def pair():
    return [np.full((2, 8), 1.5, np.float32), np.arange(24, dtype=np.float32).reshape(3, 8)]


def test_a_list_has_shapes_and_addresses(lists):
    y = np.zeros(64, np.float32)
    run = lists.launch("add_up", [pair(), y], blocks=1)
    assert run.findings == [], run.describe()
    np.testing.assert_array_equal(y[:8], np.arange(8) + 1.5)
    np.testing.assert_array_equal(y[8:16], [0, 2, 2, 8, 1, 2, 3, 8])


def test_a_lists_tensors_are_written_in_place(lists):
    tensors = pair()
    assert lists.launch("write", [tensors], blocks=1).findings == []
    assert [t.ravel()[0] for t in tensors] == [1, 2]
    scalars = [np.zeros((), np.float32), np.zeros((), np.float32), np.zeros((), np.float32)]
    assert lists.launch("write", [scalars], blocks=1).findings == []
    assert scalars == [1, 2, 3]


def test_bounds_of_a_lists_tensor(lists):
    (finding,) = lists.launch("beyond", [[np.zeros(8, np.float32), np.zeros(8, np.float32)]], blocks=1).findings
    assert finding.kind == "gm-out-of-bounds" and "tensor 1 of GM argument 0, which has 32 bytes" in finding.message


@pytest.mark.parametrize("name, argument, says", [
    ("index", pair(), "tensor 2 of a list of 2"), ("no_room", pair(), "GetDesc before SetShapeAddr"),
    ("sizes", pair(), "a list of 3 tensors in 64 bytes, and the table has 2 in 72"), ("shape", pair(), r"GetShape\(2\) of a tensor of 2"),
    ("shapeless", [np.zeros((), np.float32)], "a list without shapes"), ("index", np.zeros(9, np.uint64), "no list of tensors"),
    ("index", np.array([40, 2, 1, 1, 1, 0], np.uint64), "not whole"),
])
def test_lists_read_wrongly(lists, name, argument, says):
    findings = lists.launch(name, [argument], blocks=1).findings
    assert findings[0].kind == "list-tensor" and any(
        re.search(says, f.message) for f in findings), findings


@pytest.mark.parametrize("argument, says", [
    ([], "is an empty list"), ([np.zeros(2), np.zeros((2, 2))], r"of \[1, 2\] dimensions"), ([1.0], "tensor 0 of argument 0 is a float"),
    ([np.zeros((4, 4))[:, :2]], "tensor 0 of argument 0 of shape"),
])
def test_lists_that_do_not_fit(lists, argument, says):
    with pytest.raises(ValueError, match=says):
        lists.launch("write", [argument], blocks=1)


def test_no_kernel_may_take_host_types(tmp_path):
    (tmp_path / "k.cpp").write_text(PROLOGUE + "struct S { S(const S&) {} int i; };\n__global__ __vector__ void k(GM_ADDR x, S s) {}\n")
    with pytest.raises(twin.CompileError, match="numbers and plain structs"):
        twin.build(tmp_path / "k.cpp").launch("k", [np.zeros(1), b"1234"])
