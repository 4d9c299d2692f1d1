// Softmax of rows, in the style of generated kernels: static addresses, events, two row buffers. A row is `columns` floats,
// padded in UB with -inf to a multiple of 512; each block takes every GetBlockNum()-th row. Also counts what exceeds a
// threshold and keeps it, packed, in the second output.
#include "kernel_operator.h"
using namespace AscendC;

struct SoftmaxTiling {
  uint32_t rows, columns, padded;
  float threshold;
};

extern "C" __global__ __aicore__ void softmax_rows(GM_ADDR x, GM_ADDR y, GM_ADDR kept, GM_ADDR count, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
  InitSocState();
  GET_TILING_DATA_WITH_STRUCT(SoftmaxTiling, t, tiling);
  GlobalTensor<float> gx, gy, gkept;
  GlobalTensor<int32_t> gcount;
  gx.SetGlobalBuffer((__gm__ float*)x, uint64_t(t.rows) * t.columns);
  gy.SetGlobalBuffer((__gm__ float*)y, uint64_t(t.rows) * t.columns);
  gkept.SetGlobalBuffer((__gm__ float*)kept, uint64_t(t.rows) * t.columns);
  gcount.SetGlobalBuffer((__gm__ int32_t*)count, t.rows);
  const uint32_t bytes = t.columns * 4, repeats = t.padded / 64;
  LocalTensor<float> row0(TPosition::VECCALC, 0, 4096), row1(TPosition::VECCALC, 16384, 4096);
  LocalTensor<float> packed(TPosition::VECCALC, 32768, 4096), partial(TPosition::VECCALC, 49152, 64 * 8);
  LocalTensor<uint8_t> mask(TPosition::VECCALC, 51200, 512);
  LocalTensor<int32_t> found(TPosition::VECCALC, 51712, 8);

  SetFlag<HardEvent::MTE3_V>(0);
  SetFlag<HardEvent::MTE3_V>(1);
  SetFlag<HardEvent::MTE3_V>(2);
  for (uint32_t r = GetBlockIdx(), turn = 0; r < t.rows; r += GetBlockNum(), ++turn) {
    const int32_t b = turn % 2;
    LocalTensor<float> row = b ? row1 : row0;
    WaitFlag<HardEvent::MTE3_V>(b);
    Duplicate(row, -3.0e38f, t.padded);
    SetFlag<HardEvent::V_MTE2>(b);
    WaitFlag<HardEvent::V_MTE2>(b);
    DataCopyPad(row, gx[uint64_t(r) * t.columns], DataCopyExtParams{1, bytes, 0, 0, 0},
                DataCopyPadExtParams<float>{true, 0, uint8_t((8 - t.columns % 8) % 8), -3.0e38f});
    SetFlag<HardEvent::MTE2_V>(b);
    WaitFlag<HardEvent::MTE2_V>(b);
    // row maximum
    BlockReduceMax<float>(partial, row, repeats, 64, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    WholeReduceMax<float>(partial, partial, repeats * 8 > 64 ? 64 : repeats * 8, (repeats + 7) / 8, 1, 1, 8,
                          ReduceOrder::ORDER_ONLY_VALUE);
    PipeBarrier<PIPE_V>();
    WholeReduceMax<float>(partial, partial, (repeats + 7) / 8, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    float most = partial.GetValue(0);
    Adds(row, row, -most, t.padded);
    PipeBarrier<PIPE_V>();
    Exp(row, row, t.padded);
    PipeBarrier<PIPE_V>();
    // row sum, through the same tree
    BlockReduceSum<float>(partial, row, repeats, 64, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    WholeReduceSum<float>(partial, partial, repeats * 8 > 64 ? 64 : repeats * 8, (repeats + 7) / 8, 1, 1, 8);
    PipeBarrier<PIPE_V>();
    WholeReduceSum<float>(partial, partial, (repeats + 7) / 8, 1, 1, 1, 8);
    SetFlag<HardEvent::V_S>(1);
    WaitFlag<HardEvent::V_S>(1);
    float sum = partial.GetValue(0);
    Muls(row, row, 1.0f / sum, t.padded);
    PipeBarrier<PIPE_V>();
    SetFlag<HardEvent::V_MTE3>(b);
    CompareScalar(mask, row, t.threshold, CMPMODE::GT, t.padded);
    PipeBarrier<PIPE_V>();
    WaitFlag<HardEvent::MTE3_V>(2);
    uint64_t n = 0;
    GatherMask(packed, row, mask.ReinterpretCast<uint32_t>(), true, t.padded, GatherMaskParams{1, 1, 0, 0}, n);
    SetFlag<HardEvent::V_MTE3>(2);
    WaitFlag<HardEvent::V_MTE3>(b);
    DataCopyPad(gy[uint64_t(r) * t.columns], row, DataCopyExtParams{1, bytes, 0, 0, 0});
    WaitFlag<HardEvent::V_MTE3>(2);
    DataCopyPad(gkept[uint64_t(r) * t.columns], packed, DataCopyExtParams{1, uint32_t(n * 4), 0, 0, 0});
    SetFlag<HardEvent::MTE3_S>(0);
    WaitFlag<HardEvent::MTE3_S>(0);
    found.SetValue(0, int32_t(n));
    SetFlag<HardEvent::S_MTE3>(0);
    WaitFlag<HardEvent::S_MTE3>(0);
    DataCopyPad(gcount[r], found, DataCopyExtParams{1, 4, 0, 0, 0});
    SetFlag<HardEvent::MTE3_V>(b);
    SetFlag<HardEvent::MTE3_V>(2);
  }
  WaitFlag<HardEvent::MTE3_V>(0);
  WaitFlag<HardEvent::MTE3_V>(1);
  WaitFlag<HardEvent::MTE3_V>(2);
  PipeBarrier<PIPE_ALL>();
}
