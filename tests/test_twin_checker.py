"""Each fault the checker knows: a kernel with exactly that fault, and a sound sibling.

The bodies run on one or two blocks with two arrays of 4096 floats (a0 read, a1 written) and a workspace of 4 KB. `f`,
`g`, `h` are 4 KB buffers of UB at 0, 4096 and 8192.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from test_twin import build, cache, entry  # noqa: F401  (cache is a fixture)

from jascend.backends.ascend import twin

SETUP = """
  GlobalTensor<float> x, y, w;
  x.SetGlobalBuffer((__gm__ float*)a0, 4096);
  y.SetGlobalBuffer((__gm__ float*)a1, 4096);
  w.SetGlobalBuffer((__gm__ float*)workspace, 1024);
  uint64_t kept = 0;
"""
BUFFERS = """
  InitSocState();
  LocalTensor<float> f(TPosition::VECCALC, 0, 1024), g(TPosition::VECCALC, 4096, 1024), h(TPosition::VECCALC, 8192, 1024);
  LocalTensor<uint8_t> m(TPosition::VECCALC, 12288, 128);
  LocalTensor<uint32_t> u(TPosition::VECCALC, 16384, 1024);
"""
FILLED = """
  Duplicate(f, 1.0f, 1024); Duplicate(g, 2.0f, 1024); Duplicate(h, 3.0f, 1024); Duplicate(u, 0u, 1024);
  Duplicate(m.ReinterpretCast<uint16_t>(), uint16_t(0), 64);
  PipeBarrier<PIPE_ALL>();
"""
PAD = "DataCopyPadExtParams<float>{false, 0, 0, 0.0f}"
CLEAN = "DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>"
TOPK = "LocalTensor<int32_t> i; LocalTensor<bool> e; TopkTiling t;"
V_S = "SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);"
V_MTE3 = "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
MTE2_V = "SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);"
PIPE = """
  TPipe pipe; TQue<TPosition::VECIN, 1> in; TQue<TPosition::VECOUT, 1> out; TBuf<TPosition::VECCALC> buf;
  pipe.InitBuffer(in, 2, 4096); pipe.InitBuffer(out, 2, 4096); pipe.InitBuffer(buf, 4096);
"""


@dataclass
class Fault:
    name: str
    kind: str
    bad: str
    good: str
    says: str = ""  # what the message must contain
    setup: str = BUFFERS + FILLED
    blocks: int = 1


FAULTS = [
    # ---- bounds ----
    Fault("gm_read", "gm-out-of-bounds", f"x.SetGlobalBuffer((__gm__ float*)a0); DataCopyPad(f, x[4090], DataCopyExtParams{{1, 32, 0, 0, 0}}, {PAD});",
          f"DataCopyPad(f, x[4088], DataCopyExtParams{{1, 32, 0, 0, 0}}, {PAD});", "reads [16360, 16392) of GM argument 0, which has 16384 bytes"),
    Fault("gm_before", "gm-out-of-bounds", "GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float*)a1 - 8); DataCopy(z, f, 64);",
          "DataCopy(y, f, 64);", "writes [-32, 224) of GM argument 1"),
    Fault("gm_strided", "gm-out-of-bounds", "y.SetGlobalBuffer((__gm__ float*)a1); DataCopyPad(y, f, DataCopyExtParams{3, 4, 0, 8188, 0});",
          "DataCopyPad(y, f, DataCopyExtParams{2, 4, 0, 8188, 0});", "[16384, 16388)"),
    Fault("gm_scalar", "gm-out-of-bounds", "x.SetGlobalBuffer((__gm__ float*)a0); f.SetValue(0, x.GetValue(4096));", "f.SetValue(0, x.GetValue(4095));"),
    Fault("gm_wild", "gm-out-of-bounds", "x.SetGlobalBuffer((__gm__ float*)uint64_t(4096)); DataCopy(f, x, 8);", "DataCopy(f, x, 8);",
          "comes from no kernel argument"),
    Fault("gm_own_code", "gm-out-of-bounds", "((__gm__ float*)a1)[4096] = 1.0f;", "((__gm__ float*)a1)[4095] = 1.0f;", "[16384, 16388) of GM argument 1"),
    Fault("gm_no_workspace", "gm-out-of-bounds", "workspace[4096 + 77] = 1;", "workspace[77] = 1;", "[4173, 4174) of the workspace"),
    Fault("global_tensor", "global-tensor-bounds", "x.SetGlobalBuffer((__gm__ float*)a0, 8); DataCopy(f, x, 16);", "DataCopy(f, x, 16);",
          "outside its GlobalTensor [0, 32)"),
    Fault("workspace_end", "gm-out-of-bounds", "DataCopy(w[1016], f, 16);", "DataCopy(w[1008], f, 16);", "the workspace, which has 4096 bytes"),
    Fault("ub_end", "ub-out-of-bounds", "Duplicate(f, 0.0f, 50000);", "Duplicate(f, 0.0f, 1024);", "UB has 196352 bytes"),
    Fault("ub_capacity", "ub-capacity", "LocalTensor<float> z(TPosition::VECCALC, 196352 - 32, 16);", "LocalTensor<float> z(TPosition::VECCALC, 196352 - 64, 16);"),
    Fault("neighbour", "buffer-overflow", "Duplicate(f, 0.0f, 1025);", "Duplicate(f, 0.0f, 1024);", "outside its buffer [0, 4096)"),
    Fault("neighbour_scalar", "buffer-overflow", "g.SetValue(1024, 1);", "g.SetValue(1023, 1);"),
    Fault("neighbour_stride", "buffer-overflow", "Adds(f, g, 1.0f, 64, 16, UnaryRepeatParams{1, 1, 9, 8});", "Adds(f, g, 1.0f, 64, 16, UnaryRepeatParams{1, 1, 8, 8});"),
    Fault("allocator_capacity", "ub-capacity", "LocalMemAllocator<Hardware::UB> ub; ub.Alloc<float, 49000>(); ub.Alloc<half>(200);",
          "LocalMemAllocator<Hardware::UB> ub; ub.Alloc<float, 49000>(); auto t = ub.Alloc<TPosition::VECIN, half, 100>(); Duplicate(t, half(0), 100);",
          "ends at UB byte 196400", setup="  InitSocState();\n"),
    Fault("no_memory", "buffer-overflow", "LocalTensor<float> z; Duplicate(z, 0.0f, 8);", "Duplicate(f, 0.0f, 8);", "never given memory"),
    Fault("select_scratch", "reserved-ub",
          "LocalTensor<float> z(TPosition::VECCALC, 188160, 64); Duplicate(z, 1.0f, 64); PipeBarrier<PIPE_V>(); Select(g, m, f, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64); PipeBarrier<PIPE_V>(); Adds(f, z, 1.0f, 64);",
          "LocalTensor<float> z(TPosition::VECCALC, 188160, 64); Duplicate(z, 1.0f, 64); PipeBarrier<PIPE_V>(); Adds(f, z, 1.0f, 64); PipeBarrier<PIPE_V>(); Select(g, m, f, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);",
          "[188160, 196352) as scratch since it was written"),
    # ---- alignment and sizes ----
    Fault("align_v", "misaligned", "Adds(f[4], g, 1.0f, 64);", "Adds(f[8], g, 1.0f, 64);", "dst starts at UB byte 16, which is not a multiple of 32"),
    Fault("align_copy", "misaligned", f"DataCopyPad(f[1], x, DataCopyExtParams{{1, 32, 0, 0, 0}}, {PAD});", f"DataCopyPad(f[8], x, DataCopyExtParams{{1, 32, 0, 0, 0}}, {PAD});"),
    Fault("align_pair", "misaligned", "WholeReduceMax<float>(f[1], g, 64, 1, 1, 1, 8);", "WholeReduceMax<float>(f[2], g, 64, 1, 1, 1, 8);", "not a multiple of 8"),
    Fault("align_block_reduce", "misaligned", "BlockReduceSum<float>(f[4], g, 1, 64, 1, 1, 8);", "BlockReduceSum<float>(f[8], g, 1, 64, 1, 1, 8);"),
    Fault("copy_32", "copy-size", "DataCopy(f, x, 9);", "DataCopy(f, x, 16);", "36 bytes, not a multiple of 32"),
    Fault("copy_count", "copy-limit", f"DataCopyPad(f, x, DataCopyExtParams{{4096, 4, 0, 0, 0}}, {PAD});", f"DataCopyPad(f, x, DataCopyExtParams{{100, 4, 0, 0, 0}}, {PAD});",
          "blockCount is 4096, the limit is 4095", setup=BUFFERS.replace("0, 1024)", "0, 40000)", 1)),
    Fault("copy_element", "copy-limit", f"DataCopyPad(f, x, DataCopyExtParams{{1, 30, 0, 0, 0}}, {PAD});", f"DataCopyPad(f, x, DataCopyExtParams{{1, 28, 0, 0, 0}}, {PAD});"),
    Fault("copy_padding", "copy-limit", "DataCopyPad(f, x, DataCopyExtParams{1, 32, 0, 0, 0}, DataCopyPadExtParams<float>{true, 9, 0, 0.0f});",
          "DataCopyPad(f, x, DataCopyExtParams{1, 32, 0, 0, 0}, DataCopyPadExtParams<float>{true, 8, 0, 0.0f});", "36 and 0 bytes, the limit is 32"),
    Fault("repeat", "repeat-limit", "Adds(f, f, 1.0f, 8, 256, UnaryRepeatParams{1, 1, 0, 0});", "Adds(f, f, 1.0f, 8, 255, UnaryRepeatParams{1, 1, 0, 0});", "repeat is 256"),
    Fault("repeat_reduce", "repeat-limit", "WholeReduceSum<float>(f, g, 64, 300, 1, 1, 0);", "WholeReduceSum<float>(f, g, 64, 255, 1, 1, 0);"),
    Fault("mask", "mask-limit", "Adds(f, g, 1.0f, 65, 1, UnaryRepeatParams{1, 1, 8, 8});", "Adds(f, g, 1.0f, 64, 1, UnaryRepeatParams{1, 1, 8, 8});"),
    Fault("compare_count", "compare-count", "CompareScalar(m, f, 0.0f, CMPMODE::GT, 100);", "CompareScalar(m, f, 0.0f, CMPMODE::GT, 128);", "400 bytes, not a multiple of 256"),
    Fault("compare_int", "unsupported", "LocalTensor<int32_t> i = u.ReinterpretCast<int32_t>(); Compare(m, i, i, CMPMODE::LT, 64);",
          "LocalTensor<int32_t> i = u.ReinterpretCast<int32_t>(); Compare(m, i, i, CMPMODE::EQ, 64);"),
    Fault("select_mode", "select-mode", "Select(g, m, f, 0.0f, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);", "Select(g, m, f, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);"),
    Fault("cast_mode", "cast-mode", "Cast(u.ReinterpretCast<int32_t>(), f, RoundMode::CAST_NONE, 64);", "Cast(u.ReinterpretCast<int32_t>(), f, RoundMode::CAST_RINT, 64);", "CAST_NONE"),
    Fault("deq_scale", "cast-mode", "Cast(f.ReinterpretCast<half>(), u.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, 64);",
          "SetDeqScale(half(1.0f)); Cast(f.ReinterpretCast<half>(), u.ReinterpretCast<int32_t>(), RoundMode::CAST_NONE, 64);"),
    # ---- overlap ----
    Fault("overlap", "overlap", "Adds(f[8], f, 1.0f, 64);", "Adds(f, f, 1.0f, 64);"),
    Fault("overlap_cast", "overlap", "Cast(f, f.ReinterpretCast<half>(), RoundMode::CAST_NONE, 512);", "Cast(f.ReinterpretCast<half>(), f, RoundMode::CAST_NONE, 512);"),
    Fault("overlap_gather", "overlap", "Gather(f, f, u, 0, 64);", "Gather(f, g, u, 0, 64);"),
    Fault("overlap_sort", "overlap", "Sort32<float>(f, f, u, 2);", "Sort32<float>(g, f, u, 2);"),
    Fault("overlap_merge", "overlap", "uint16_t n[4] = {32, 32, 0, 0}; MrgSort<float>(f, MrgSortSrcList<float>(f, f[64], f, f), MrgSort4Info(n, false, 3, 1));",
          "uint16_t n[4] = {32, 32, 0, 0}; MrgSort<float>(g, MrgSortSrcList<float>(f, f[64], f, f), MrgSort4Info(n, false, 3, 1));"),
    Fault("merge_valid", "merge", "uint16_t n[4] = {32, 0, 0, 0}; MrgSort<float>(g, MrgSortSrcList<float>(f, f, f, f), MrgSort4Info(n, false, 1, 1));",
          "uint16_t n[4] = {32, 32, 0, 0}; MrgSort<float>(g, MrgSortSrcList<float>(f, f, f, f), MrgSort4Info(n, false, 3, 1));"),
    Fault("merge_align", "misaligned", "uint16_t n[4] = {8, 8, 0, 0}; MrgSort<float>(g, MrgSortSrcList<float>(f[1], f[64], f, f), MrgSort4Info(n, false, 3, 1));",
          "uint16_t n[4] = {8, 8, 0, 0}; MrgSort<float>(g, MrgSortSrcList<float>(f[2], f[64], f, f), MrgSort4Info(n, false, 3, 1));", "src1 starts at UB byte 4"),
    Fault("gather_offset", "misaligned", "u.SetValue(3, 6); SetFlag<HardEvent::S_V>(0); WaitFlag<HardEvent::S_V>(0); Gather(f, g, u, 0, 64);",
          "u.SetValue(3, 8); SetFlag<HardEvent::S_V>(0); WaitFlag<HardEvent::S_V>(0); Gather(f, g, u, 0, 64);", "offset 6 of element 3"),
    Fault("overlap_select_mask", "overlap", "Select(m.ReinterpretCast<float>(), m, f, g, SELMODE::VSEL_TENSOR_TENSOR_MODE, 16);",
          "Select(m.ReinterpretCast<float>()[8], m, f, g, SELMODE::VSEL_TENSOR_TENSOR_MODE, 16);", "selMask"),
    Fault("overlap_select", "overlap", "Select(f[8], m, f, g, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);", "Select(f, m, f, f, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);", "src0"),
    Fault("overlap_compare", "overlap", "Compare(f.ReinterpretCast<uint8_t>(), g, f, CMPMODE::GT, 64);", "Compare(m, f, f, CMPMODE::GT, 64);", "src1"),
    Fault("overlap_compare_scalar", "overlap", "CompareScalar(f[64].ReinterpretCast<uint8_t>(), f, 0.0f, CMPMODE::GT, 128);",
          "CompareScalar(f[128].ReinterpretCast<uint8_t>(), f, 0.0f, CMPMODE::GT, 128);", "src0"),
    Fault("overlap_later_repeat", "overlap", "Adds(f[64], f, 1.0f, 64, 2, UnaryRepeatParams{1, 1, 8, 8});", "Adds(f, f[64], 1.0f, 64, 2, UnaryRepeatParams{1, 1, 8, 8});", "repeat 1 reads src"),
    Fault("overlap_lanes", "overlap", "Adds(f[8], f, 1.0f, 16, 1, UnaryRepeatParams{1, 1, 8, 8});", "Adds(f[8], f, 1.0f, 8, 1, UnaryRepeatParams{1, 1, 8, 8});", "writes another lane"),
    Fault("overlap_strides", "overlap", "Add(f, g, f, 8, 8, BinaryRepeatParams{1, 1, 0, 1, 1, 0});", "Add(f, g, f, 8, 8, BinaryRepeatParams{1, 1, 1, 0, 1, 0});", "repeat 1 reads src1"),
    Fault("overlap_select_lanes", "overlap", "Select(f, f[64].ReinterpretCast<uint8_t>(), g, h, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});",
          "Select(f, f[256].ReinterpretCast<uint8_t>(), g, h, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});", "selMask"),
    Fault("overlap_compare_lanes", "overlap", "Compare(f[64].ReinterpretCast<uint8_t>(), f, g, CMPMODE::GT, 64, 2, BinaryRepeatParams{1, 1, 1, 8, 8, 8});",
          "Compare(f[128].ReinterpretCast<uint8_t>(), f, g, CMPMODE::GT, 64, 2, BinaryRepeatParams{1, 1, 1, 8, 8, 8});", "repeat 1 reads src0"),
    Fault("overlap_copy", "overlap", "DataCopy(f[8], f, 64);", "DataCopy(f, f[8], 64);", "32 bytes into src"),
    Fault("overlap_brcb", "overlap", "Brcb(f, f, 2, BrcbRepeatParams{1, 8});", "Brcb(f, g, 2, BrcbRepeatParams{1, 8});", "repeat 1 reads src"),
    Fault("overlap_reduce", "overlap", "WholeReduceSum<float>(f[64], f, 64, 2, 1, 1, 8);", "WholeReduceSum<float>(f, f, 64, 2, 1, 1, 8);", "repeat 1 reads src"),
    Fault("read_before_in_place", "missing-sync", "Adds(g, f, 1.0f, 64); Adds(f, f, 1.0f, 64);",
          "Adds(g, f, 1.0f, 64); PipeBarrier<PIPE_V>(); Adds(f, f, 1.0f, 64);", "Adds (V) writes UB [0, 256)"),
    Fault("merge_result", "missing-sync", "uint16_t n[4] = {32, 32, 0, 0}, c[4]; MrgSort<float>(g, MrgSortSrcList<float>(f, f[64], f, f), MrgSort4Info(n, true, 3, 1)); GetMrgSortResult(c[0], c[1], c[2], c[3]);",
          f"uint16_t n[4] = {{32, 32, 0, 0}}, c[4]; MrgSort<float>(g, MrgSortSrcList<float>(f, f[64], f, f), MrgSort4Info(n, true, 3, 1)); {V_S} GetMrgSortResult(c[0], c[1], c[2], c[3]);", "V_S"),
    # ---- contents ----
    Fault("unwritten_ub", "uninitialized-read", "Duplicate(f, 1.0f, 60); PipeBarrier<PIPE_V>(); Adds(g, f, 1.0f, 64);",
          "Duplicate(f, 1.0f, 64); PipeBarrier<PIPE_V>(); Adds(g, f, 1.0f, 64);", "nothing was written to [240, 256)", setup=BUFFERS),
    Fault("unwritten_padding", "uninitialized-read",
          f"DataCopyPad(f, x, DataCopyExtParams{{1, 20, 0, 0, 0}}, DataCopyPadExtParams<float>{{false, 0, 1, 0.0f}}); {MTE2_V} Adds(g, f, 1.0f, 8);",
          f"DataCopyPad(f, x, DataCopyExtParams{{1, 20, 0, 0, 0}}, DataCopyPadExtParams<float>{{true, 0, 1, 0.0f}}); {MTE2_V} Adds(g, f, 1.0f, 8);",
          "nothing was written to [20, 32)", setup=BUFFERS),
    Fault("unwritten_scratch", "uninitialized-read", "ReduceMax(g, f, h, 1024); PipeBarrier<PIPE_V>(); Adds(f, h, 1.0f, 8);",
          "ReduceMax(g, f, h, 1024); PipeBarrier<PIPE_V>(); Adds(f, h[32], 1.0f, 8);"),
    Fault("unwritten_workspace", "uninitialized-read", "DataCopy(f, w, 16);",
          "DataCopy(w, f, 16); PipeBarrier<PIPE_ALL>(); DataCopy(f, w, 16);", "of the workspace"),
    # ---- events ----
    Fault("reserved_id", "event-id", "SetFlag<HardEvent::V_S>(6); WaitFlag<HardEvent::V_S>(6);", "SetFlag<HardEvent::V_S>(5); WaitFlag<HardEvent::V_S>(5);", "reserved"),
    Fault("set_twice", "event-set-twice", "SetFlag<HardEvent::V_S>(0); SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);",
          f"{V_S} {V_S}", "before the wait"),
    Fault("wait_unset", "event-wait-unset", "WaitFlag<HardEvent::V_S>(1);", "SetFlag<HardEvent::V_S>(1); WaitFlag<HardEvent::V_S>(1);", "WaitFlag<V_S>(1)"),
    Fault("unwaited", "event-unwaited", "SetFlag<HardEvent::V_MTE2>(2);", "SetFlag<HardEvent::V_MTE2>(2); WaitFlag<HardEvent::V_MTE2>(2);", "SetFlag<V_MTE2>(2)"),
    Fault("release", "event-id", "GetTPipePtr()->ReleaseEventID<HardEvent::V_S>(0);", "auto e = GetTPipePtr()->AllocEventID<HardEvent::V_S>(); GetTPipePtr()->ReleaseEventID<HardEvent::V_S>(e);", setup=PIPE),
    # ---- queues ----
    Fault("deque_empty", "queue", "in.DeQue<float>();", "auto t = in.AllocTensor<float>(); in.EnQue(t); t = in.DeQue<float>(); in.FreeTensor(t);", "empty queue", setup=PIPE),
    Fault("never_freed", "tensor-not-freed", "auto t = in.AllocTensor<float>(); in.EnQue(t); t = in.DeQue<float>();",
          "auto t = in.AllocTensor<float>(); in.EnQue(t); t = in.DeQue<float>(); in.FreeTensor(t);", setup=PIPE),
    Fault("too_many", "queue", "auto a = in.AllocTensor<float>(), b = in.AllocTensor<float>(), c = in.AllocTensor<float>(); in.FreeTensor(a); in.FreeTensor(b);",
          "auto a = in.AllocTensor<float>(), b = in.AllocTensor<float>(); in.FreeTensor(a); in.FreeTensor(b);", "no free buffer", setup=PIPE),
    Fault("foreign", "queue", "auto t = in.AllocTensor<float>(); out.EnQue(t); in.FreeTensor(t);", "auto t = in.AllocTensor<float>(); in.FreeTensor(t);", "did not allocate", setup=PIPE),
    Fault("pipe_capacity", "ub-capacity", "TBuf<TPosition::VECCALC> big; pipe.InitBuffer(big, 180000);", "TBuf<TPosition::VECCALC> big; pipe.InitBuffer(big, 170000);", setup=PIPE),
    Fault("tbuf_overflow", "buffer-overflow", "auto t = buf.Get<float>(1024); Duplicate(t, 0.0f, 1025);", "auto t = buf.Get<float>(1024); Duplicate(t, 0.0f, 1024);", setup=PIPE),
    # ---- order between pipes ----
    Fault("mte2_v", "missing-sync", "DataCopy(f, x, 64); Adds(g, f, 1.0f, 64);", f"DataCopy(f, x, 64); {MTE2_V} Adds(g, f, 1.0f, 64);", "HardEvent::MTE2_V"),
    Fault("v_mte3", "missing-sync", "Adds(g, f, 1.0f, 64); DataCopy(y, g, 64);", f"Adds(g, f, 1.0f, 64); {V_MTE3} DataCopy(y, g, 64);", "HardEvent::V_MTE3"),
    Fault("v_mte2", "missing-sync", "Adds(g, f, 1.0f, 64); DataCopy(f, x, 64);", "Adds(g, f, 1.0f, 64); SetFlag<HardEvent::V_MTE2>(0); WaitFlag<HardEvent::V_MTE2>(0); DataCopy(f, x, 64);", "HardEvent::V_MTE2"),
    Fault("mte3_v", "missing-sync", "DataCopy(y, g, 64); Duplicate(g, 0.0f, 64);", "DataCopy(y, g, 64); SetFlag<HardEvent::MTE3_V>(0); WaitFlag<HardEvent::MTE3_V>(0); Duplicate(g, 0.0f, 64);", "HardEvent::MTE3_V"),
    Fault("v_s", "missing-sync", "Adds(g, f, 1.0f, 64); y.SetValue(0, g.GetValue(0));", f"Adds(g, f, 1.0f, 64); {V_S} y.SetValue(0, g.GetValue(0));", "HardEvent::V_S"),
    Fault("mte2_s", "missing-sync", "DataCopy(f, x, 64); y.SetValue(0, f.GetValue(0));", "DataCopy(f, x, 64); SetFlag<HardEvent::MTE2_S>(0); WaitFlag<HardEvent::MTE2_S>(0); y.SetValue(0, f.GetValue(0));", "HardEvent::MTE2_S"),
    Fault("s_v", "missing-sync", "f.SetValue(0, 1.0f); Adds(g, f, 1.0f, 64);", "f.SetValue(0, 1.0f); SetFlag<HardEvent::S_V>(0); WaitFlag<HardEvent::S_V>(0); Adds(g, f, 1.0f, 64);", "HardEvent::S_V"),
    Fault("s_mte3", "missing-sync", "f.SetValue(0, 1.0f); DataCopy(y, f, 64);", "f.SetValue(0, 1.0f); SetFlag<HardEvent::S_MTE3>(0); WaitFlag<HardEvent::S_MTE3>(0); DataCopy(y, f, 64);", "HardEvent::S_MTE3"),
    # parts of one 32-byte block, each with an access of its own
    Fault("block_of_two_pipes", "missing-sync", "WholeReduceSum<float>(f, h, 64, 1, 1, 1, 8); f.SetValue(2, 1.0f); SetFlag<HardEvent::S_MTE3>(0); WaitFlag<HardEvent::S_MTE3>(0); DataCopy(y, f, 8);",
          f"WholeReduceSum<float>(f, h, 64, 1, 1, 1, 8); f.SetValue(2, 1.0f); SetFlag<HardEvent::S_MTE3>(0); WaitFlag<HardEvent::S_MTE3>(0); {V_MTE3} DataCopy(y, f, 8);", "HardEvent::V_MTE3"),
    Fault("block_of_two_results", "missing-sync", "WholeReduceSum<float>(f, h, 64, 1, 1, 1, 8); WholeReduceSum<float>(f[2], h, 64, 1, 1, 1, 8); y.SetValue(0, f.GetValue(0));",
          f"WholeReduceSum<float>(f, h, 64, 1, 1, 1, 8); WholeReduceSum<float>(f[2], h, 64, 1, 1, 1, 8); {V_S} y.SetValue(0, f.GetValue(0));", "UB [0, 4)"),
    Fault("block_of_two_reads", "missing-sync", "uint64_t i[2] = {1, 0}, j[2] = {16, 0}; Adds(g, f, 1.0f, i, 1, UnaryRepeatParams()); Adds(h, f, 1.0f, j, 1, UnaryRepeatParams()); f.SetValue(0, 2.0f);",
          "uint64_t i[2] = {1, 0}, j[2] = {16, 0}; Adds(g, f, 1.0f, i, 1, UnaryRepeatParams()); Adds(h, f, 1.0f, j, 1, UnaryRepeatParams()); f.SetValue(1, 2.0f);", "HardEvent::V_S"),
    Fault("v_v_raw", "missing-sync", "Adds(f, f, 1.0f, 64); Adds(g, f, 1.0f, 64);", "Adds(f, f, 1.0f, 64); PipeBarrier<PIPE_V>(); Adds(g, f, 1.0f, 64);", "PipeBarrier<PIPE_V>"),
    Fault("v_v_war", "missing-sync", "Adds(g, f, 1.0f, 64); Duplicate(f, 0.0f, 64);", "Adds(g, f, 1.0f, 64); PipeBarrier<PIPE_V>(); Duplicate(f, 0.0f, 64);"),
    Fault("v_v_waw", "missing-sync", "Duplicate(f, 0.0f, 64); Duplicate(f, 1.0f, 64);", "Duplicate(f, 0.0f, 64); PipeBarrier<PIPE_V>(); Duplicate(f, 1.0f, 64);"),
    Fault("wrong_direction", "missing-sync", "DataCopy(f, x, 64); SetFlag<HardEvent::V_MTE2>(0); WaitFlag<HardEvent::V_MTE2>(0); Adds(g, f, 1.0f, 64);",
          f"DataCopy(f, x, 64); {MTE2_V} Adds(g, f, 1.0f, 64);"),
    Fault("flag_too_early", "missing-sync", f"{MTE2_V.split(' ')[0]} DataCopy(f, x, 64); {MTE2_V.split('; ')[1]} Adds(g, f, 1.0f, 64);",
          f"DataCopy(f, x, 64); {MTE2_V} Adds(g, f, 1.0f, 64);"),
    Fault("gm_mte3_mte2", "missing-sync", "DataCopy(y, f, 64); DataCopy(g, y, 64);", "DataCopy(y, f, 64); SetFlag<HardEvent::MTE3_MTE2>(0); WaitFlag<HardEvent::MTE3_MTE2>(0); DataCopy(g, y, 64);", "GM argument 1"),
    Fault("gm_mte3_mte3", "missing-sync", "DataCopy(y, f, 64); DataCopy(y[32], g, 64);", "DataCopy(y, f, 64); PipeBarrier<PIPE_MTE3>(); DataCopy(y[32], g, 64);", "[128, 256)"),
    Fault("mte2_mte2", "missing-sync", "DataCopy(f, x, 64); DataCopy(f, x[64], 64);", "DataCopy(f, x, 64); PipeBarrier<PIPE_MTE2>(); DataCopy(f, x[64], 64);"),
    # ---- blocks ----
    Fault("block_race", "block-race", "y.SetGlobalBuffer((__gm__ float*)a1, 4096); DataCopy(y[GetBlockIdx() * 8], f, 16);",
          "DataCopy(y[GetBlockIdx() * 16], f, 16);", "of block", blocks=2),
    Fault("block_exchange", "block-race", "DataCopy(y[GetBlockIdx() * 8], f, 8); PipeBarrier<PIPE_ALL>(); if (GetBlockIdx() == 0) DataCopy(g, y[8], 8);",
          "DataCopy(w[GetBlockIdx() * 8], f, 8); SyncAll(); if (GetBlockIdx() == 0) DataCopy(g, w[8], 8);", "no SyncAll", blocks=2),
    Fault("sync_missing", "block-sync", "if (GetBlockIdx() == 0) SyncAll();", "SyncAll();", "the device waits for ever|only 1 reach", blocks=2),
    # ---- the scalar unit's cache ----
    Fault("cache_dirty", "data-cache", "y.SetValue(0, 1.0f); SetFlag<HardEvent::S_MTE2>(0); WaitFlag<HardEvent::S_MTE2>(0); DataCopy(g, y, 8);",
          f"y.SetValue(0, 1.0f); {CLEAN}(y); SetFlag<HardEvent::S_MTE2>(0); WaitFlag<HardEvent::S_MTE2>(0); DataCopy(g, y, 8);", "still in the data cache"),
    Fault("cache_stale", "data-cache", "f.SetValue(0, y.GetValue(0)); DataCopy(y, g, 8); PipeBarrier<PIPE_ALL>(); f.SetValue(1, y.GetValue(0));",
          f"f.SetValue(0, y.GetValue(0)); DataCopy(y, g, 8); PipeBarrier<PIPE_ALL>(); {CLEAN}(y); f.SetValue(1, y.GetValue(0));", "older than what DataCopy"),
    Fault("cache_blocks", "data-cache", "y.SetValue(GetBlockIdx() * 16, 1.0f); SyncAll(); if (GetBlockIdx() == 0) DataCopy(g, y[16], 16);",
          f"y.SetValue(GetBlockIdx() * 16, 1.0f); {CLEAN}(y[GetBlockIdx() * 16]); SyncAll(); if (GetBlockIdx() == 0) DataCopy(g, y[16], 16);",
          "of block 1 (line", blocks=2),
    Fault("cache_of_another", "data-cache", "float v = y.GetValue(16); SyncAll(); if (GetBlockIdx() == 1) DataCopy(y[16], f, 8); SyncAll(); if (GetBlockIdx() == 0) f.SetValue(0, v + y.GetValue(16));",
          f"float v = y.GetValue(16); SyncAll(); if (GetBlockIdx() == 1) DataCopy(y[16], f, 8); SyncAll(); {CLEAN}(y[16]); if (GetBlockIdx() == 0) f.SetValue(0, v + y.GetValue(16));",
          "older than what DataCopy of block 1", blocks=2),
    Fault("cache_line", "data-cache", "y.SetValue(GetBlockIdx(), 1.0f);", "y.SetValue(GetBlockIdx() * 16, 1.0f);", "one 64-byte cache line [0, 64)", blocks=2),
    Fault("stride", "stride-limit", "WholeReduceSum<float>(f, g, 64, 1, 1, 1, 65536);", "WholeReduceSum<float>(f, g, 64, 1, 1, 1, 65535);", "strides are 1 and 65536"),
    Fault("pattern", "pattern", "GatherMask(f, g, uint8_t(8), false, 0, {1, 1, 8, 0}, kept);", "GatherMask(f, g, uint8_t(7), false, 0, {1, 1, 8, 0}, kept);", "range is 1 to 7"),
    Fault("negative_count", "count", "Adds(f, g, 1.0f, -8);", "Adds(f, g, 1.0f, 8);", "count is -8"),
    Fault("softmax_row", "count", "SoftMaxTiling t; SoftMax<float>(f, g, t, {2, 100, 2, 100});", "SoftMaxTiling t; SoftMax<float>(f, g, t, {2, 104, 2, 100});", "multiple of 32 bytes"),
    Fault("softmax_scratch", "overlap", "SoftMaxTiling t; SoftMax<float>(f, g, g.ReinterpretCast<uint8_t>(), t, {2, 64, 2, 64});",
          "SoftMaxTiling t; SoftMax<float>(f, g, h.ReinterpretCast<uint8_t>(), t, {2, 64, 2, 64});", "sharedTmpBuffer"),
    Fault("topk_count", "count", f"{TOPK} TopK<float>(f, u.ReinterpretCast<int32_t>(), g, i, e, 33, t, {{1, 64, 32}});",
          f"{TOPK} TopK<float>(f, u.ReinterpretCast<int32_t>(), g, i, e, 32, t, {{1, 64, 32}});", "k is 33"),
    Fault("topk_row", "count", f"{TOPK} TopK<float>(f, u.ReinterpretCast<int32_t>(), g, i, e, 4, t, {{1, 48, 48}});",
          f"{TOPK} TopK<float>(f, u.ReinterpretCast<int32_t>(), g, i, e, 4, t, {{1, 64, 48}});", "multiple of 32"),
    Fault("quant_channels", "count", "AscendQuant(m.ReinterpretCast<int8_t>(), f, g, 1.0f, 48, 96);", "AscendQuant(m.ReinterpretCast<int8_t>(), f, g, 1.0f, 32, 96);", "48 scales"),
    # ---- what the kernel asserts ----
    Fault("assert", "assert", "ASSERT(GetBlockNum() > 1 && \"blocks\");", "ASSERT(GetBlockNum() == 1 && \"blocks\");", "GetBlockNum() > 1"),
    # ---- state ----
    Fault("no_init", "not-initialised", "LocalTensor<float> f(TPosition::VECCALC, 0, 64); DataCopy(f, x, 64);", "InitSocState(); LocalTensor<float> f(TPosition::VECCALC, 0, 64); DataCopy(f, x, 64);", "InitSocState", setup=""),
    Fault("atomic_on", "atomic-left-on", "SetAtomicAdd<float>(); DataCopy(y, f, 64);", "SetAtomicAdd<float>(); DataCopy(y, f, 64); SetAtomicNone();"),
]

SOUND = {
    # what must not be reported
    "read_then_write_by_v": f"Adds(g, f, 1.0f, 64); {V_S} float v = f.GetValue(3); Duplicate(f, v, 64);",
    "transitive": "DataCopy(f, x, 64); SetFlag<HardEvent::MTE2_S>(0); WaitFlag<HardEvent::MTE2_S>(0); Adds(g, f, 1.0f, 64);",
    "through_mte3": f"Duplicate(f, 0.0f, 64); {V_MTE3} DataCopy(y, f, 64); SetFlag<HardEvent::MTE3_V>(0); WaitFlag<HardEvent::MTE3_V>(0); Duplicate(f, 1.0f, 64);",
    "store_through_mte3": "f.SetValue(0, 1.0f); SetFlag<HardEvent::S_MTE3>(0); WaitFlag<HardEvent::S_MTE3>(0); DataCopy(y, f, 64);"
                          " SetFlag<HardEvent::MTE3_S>(0); WaitFlag<HardEvent::MTE3_S>(0); Duplicate(f, 1.0f, 64);",
    "queue_in_place": "TPipe pipe; TQue<TPosition::VECIN, 0> q; pipe.InitBuffer(q, 1, 256); LocalTensor<float> t; q.AllocTensor(t);"
                      " DataCopy(t, x, 64); q.EnQue(t); q.DeQue(t); Adds(t, t, 1.0f, 64); q.FreeTensor(t);",
    "tbuf_as_queue": "TPipe pipe; TBuf<TPosition::VECCALC> b; pipe.InitBuffer(b, 256); auto t = b.AllocTensor<float>(); Duplicate(t, 0.0f, 64); b.FreeTensor(t);",
    "independent_v": "Duplicate(f, 0.0f, 64); Duplicate(g, 0.0f, 64); Duplicate(f[64], 0.0f, 64);",
    "two_readers": "Adds(g, f, 1.0f, 64); Adds(h, f, 1.0f, 64); DataCopy(y, f, 64);",
    "half_blocks": "f.SetValue(1, 2.0f); Duplicate(g, 0.0f, 8); WholeReduceSum<float>(f[2], h, 64, 1, 1, 1, 8);",
    "atomics_commute": "SetAtomicAdd<float>(); DataCopy(y, f, 64); DataCopy(y, g, 64); SetAtomicNone();",
    "parts_of_a_block": f"WholeReduceSum<float>(f, h, 64, 1, 1, 1, 8); WholeReduceSum<float>(f[4], h, 64, 1, 1, 1, 8); f.SetValue(2, 1.0f); {V_S} f.SetValue(0, f.GetValue(4));",
    "part_then_whole": "f.SetValue(1, 1.0f); SetFlag<HardEvent::S_V>(0); WaitFlag<HardEvent::S_V>(0); Duplicate(f, 1.0f, 8); PipeBarrier<PIPE_V>(); Adds(g, f, 1.0f, 8);",
    "zero_count": "Adds(f, g, 1.0f, 0); DataCopyPad(y, f, DataCopyExtParams{0, 4, 0, 0, 0}); WholeReduceSum<float>(f, g, 64, 0, 1, 1, 8);",
    "reduce_beside": "WholeReduceSum<float>(f[64], f, 8, 8, 1, 1, 1);",
    "double_buffer": """
      SetFlag<HardEvent::V_MTE2>(0); SetFlag<HardEvent::V_MTE2>(1); SetFlag<HardEvent::MTE3_V>(0); SetFlag<HardEvent::MTE3_V>(1);
      for (int i = 0; i < 6; ++i) {
        int b = i % 2; LocalTensor<float> in = b ? g : f; LocalTensor<float> out = h[b * 512];
        WaitFlag<HardEvent::V_MTE2>(b); DataCopy(in, x[i * 64], 64);
        SetFlag<HardEvent::MTE2_V>(b); WaitFlag<HardEvent::MTE2_V>(b); WaitFlag<HardEvent::MTE3_V>(b);
        Adds(out, in, 1.0f, 64);
        SetFlag<HardEvent::V_MTE2>(b); SetFlag<HardEvent::V_MTE3>(b); WaitFlag<HardEvent::V_MTE3>(b);
        DataCopy(y[i * 64], out, 64); SetFlag<HardEvent::MTE3_V>(b);
      }
      WaitFlag<HardEvent::V_MTE2>(0); WaitFlag<HardEvent::V_MTE2>(1); WaitFlag<HardEvent::MTE3_V>(0); WaitFlag<HardEvent::MTE3_V>(1);""",
}
QUEUES = """
  for (int i = 0; i < 6; ++i) {
    auto a = in.AllocTensor<float>(); DataCopy(a, x[i * 1024 % 4096], 1024); in.EnQue(a);
    auto b = in.DeQue<float>(); auto c = out.AllocTensor<float>(); Muls(c, b, 2.0f, 1024); in.FreeTensor(b); out.EnQue(c);
    auto d = out.DeQue<float>(); DataCopy(y[i * 1024 % 4096], d, 1024); PipeBarrier<PIPE_MTE3>(); out.FreeTensor(d);
  }"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    end = "\n  PipeBarrier<PIPE_ALL>();"
    text = ""
    for fault in FAULTS:
        for which in ("bad", "good"):
            text += entry(f"{which}_{fault.name}", 2, SETUP + fault.setup + "  " + getattr(fault, which) + end)
    for name, body in SOUND.items():
        text += entry(f"sound_{name}", 2, SETUP + BUFFERS + FILLED + "  " + body + end)
    text += entry("queues", 2, SETUP + PIPE + QUEUES)
    return build(tmp_path_factory.mktemp("checker"), text)


def launch(library, name, blocks=1, **options):
    x = np.arange(4096, dtype=np.float32)
    y = np.zeros(4096, np.float32)
    return library.launch(name, [x, y], workspace_bytes=4096, blocks=blocks, **options), x, y


@pytest.mark.parametrize("fault", FAULTS, ids=[f.name for f in FAULTS])
def test_fault_is_found(library, fault):
    run, _, _ = launch(library, f"bad_{fault.name}", fault.blocks)
    assert [f.kind for f in run.findings] == [fault.kind], run.describe()
    finding = run.findings[0]
    assert any(word in finding.message for word in fault.says.split("|")), finding.message
    if finding.kernel_line:
        source = library.source.read_text().splitlines()
        body = fault.setup + fault.bad
        assert source[finding.kernel_line - 1].strip() in [line.strip() for line in body.splitlines()]
    assert f"{fault.kind}: {finding.message} [block" in str(finding)


@pytest.mark.parametrize("fault", FAULTS, ids=[f.name for f in FAULTS])
def test_sound_sibling_is_clean(library, fault):
    run, _, _ = launch(library, f"good_{fault.name}", fault.blocks)
    assert run.findings == [], run.describe()


@pytest.mark.parametrize("name", SOUND)
def test_sound_code_is_clean(library, name):
    run, _, _ = launch(library, f"sound_{name}")
    assert run.findings == [], run.describe()


def test_every_kind_has_a_fault():
    """Each kind of finding that the README names, apart from those with tests of their own."""
    table = (Path(twin.__file__).parent / "README.md").read_text().split("| kind | meaning |")[1].split("\n\n")[0]
    kinds = {kind for line in table.splitlines()[2:] for kind in re.findall(r"`([a-z-]+)`", line.split("|")[1])}
    # test_twin.py, test_twin_device.py, test_twin_launch.py, test_twin_loop_mode.py
    elsewhere = {"tiling", "crash", "timeout", "list-tensor", "loop-mode-left-on"}
    assert kinds - elsewhere == {fault.kind for fault in FAULTS}


def test_queues_order_the_pipes(library):
    run, x, y = launch(library, "queues")
    assert run.findings == [], run.describe()
    np.testing.assert_array_equal(y, 2 * x)


def test_auto_sync_orders_vector_instructions_and_the_scalar_unit_only(library):
    for name in ("bad_v_v_raw", "bad_s_v", "bad_s_mte3"):
        assert launch(library, name, auto_sync=True)[0].findings == []
    assert [f.kind for f in launch(library, "bad_mte2_v", auto_sync=True)[0].findings] == ["missing-sync"]


def test_findings_of_all_blocks_are_one(library):
    (finding,) = launch(library, "bad_align_v", blocks=5)[0].findings
    assert finding.count == 5


def test_races_name_both_lines(library):
    (finding,) = launch(library, "bad_gm_mte3_mte3")[0].findings
    assert finding.other_line == finding.kernel_line > 0 and finding.other_file == finding.kernel_file
    assert finding.buffer == "GM argument 1" and finding.byte_range == (128, 256)


def test_nothing_is_looked_for_without_check(library):
    for name in ("v_v_raw", "align_v", "unwritten_ub", "set_twice", "never_freed"):
        assert launch(library, f"bad_{name}", check=False)[0].findings == []
