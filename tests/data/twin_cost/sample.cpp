// Top-k and top-p sampling of one row as the hand-written kernel does it while k is small: the first tile sorted whole,
// a running list of 1024, and of each further tile the survivors of a compare with the k-th score.
#include "kernel_operator.h"

using namespace AscendC;

struct SampleTiling {
    uint32_t vocabulary;
    uint32_t padded;  // to 32
};

namespace {

constexpr uint32_t kTile = 8192, kRun = 2048, kRunning = 1024;

template <HardEvent event>
__aicore__ inline void Fence()
{
    SetFlag<event>(0);
    WaitFlag<event>(0);
}

template <typename T>
__aicore__ inline void CopyIn(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint32_t count)
{
    DataCopyPad(dst, src, DataCopyExtParams{1, uint32_t(count * sizeof(T)), 0, 0, 0},
        DataCopyPadExtParams<T>{false, 0, 0, 0});
}

}  // namespace

extern "C" __global__ __aicore__ void sample(GM_ADDR logits, GM_ADDR topK, GM_ADDR topP, GM_ADDR q, GM_ADDR out,
    GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA_WITH_STRUCT(SampleTiling, t, tiling);
    InitSocState();
    const float lowest = -3.0e38f;
    GlobalTensor<float> logitsGm, pGm, qGm;
    GlobalTensor<int32_t> kGm, outGm;
    logitsGm.SetGlobalBuffer((__gm__ float *)logits, t.vocabulary);
    pGm.SetGlobalBuffer((__gm__ float *)topP, 1);
    qGm.SetGlobalBuffer((__gm__ float *)q, t.vocabulary);
    kGm.SetGlobalBuffer((__gm__ int32_t *)topK, 1);
    outGm.SetGlobalBuffer((__gm__ int32_t *)out, 1);
    LocalTensor<float> tile(TPosition::VECCALC, 0, kTile), pairs(TPosition::VECCALC, 65536, 2 * kTile);
    LocalTensor<int32_t> index(TPosition::VECCALC, 32768, kTile);
    LocalTensor<float> merged(TPosition::VECCALC, 0, 8 * kRunning);  // over the tile, which is sorted by then
    LocalTensor<float> tmp(TPosition::VECCALC, 131072, 2 * kRun), running(TPosition::VECCALC, 147456, 2 * kRunning);
    LocalTensor<float> values(TPosition::VECCALC, 155648, kRun);
    LocalTensor<uint32_t> positions(TPosition::VECCALC, 163840, kRun);
    LocalTensor<uint8_t> mask(TPosition::VECCALC, 172032, kTile / 8);
    LocalTensor<float> scalar(TPosition::VECCALC, 173056, 64), weights(TPosition::VECCALC, 173312, kRunning);
    LocalTensor<float> noise(TPosition::VECCALC, 177408, kRunning);

    CopyIn(scalar.ReinterpretCast<int32_t>(), kGm, 1);
    Fence<HardEvent::MTE2_S>();
    const int32_t k = scalar.ReinterpretCast<int32_t>().GetValue(0);
    Fence<HardEvent::S_MTE2>();
    CopyIn(scalar, pGm, 1);
    Fence<HardEvent::MTE2_S>();
    const float p = scalar.GetValue(0);

    // The first tile: runs of 2048, sorted and merged into the running list.
    const uint32_t head = t.vocabulary < kTile ? t.vocabulary : kTile;
    Duplicate(tile, lowest, kTile);
    Fence<HardEvent::V_MTE2>();
    CopyIn(tile, logitsGm, head);
    Fence<HardEvent::MTE2_V>();
    CreateVecIndex(index, 0, head < kRun ? t.padded : kTile);
    PipeBarrier<PIPE_V>();
    if (head < kRun) {
        Duplicate(running, lowest, 2 * kRunning);
        PipeBarrier<PIPE_V>();
        Sort<float, true>(pairs, tile, index.ReinterpretCast<uint32_t>(), tmp, t.padded / 32);
        PipeBarrier<PIPE_V>();
        DataCopy(running, pairs, 2 * t.padded);
    } else {
        for (uint32_t run = 0; run < kTile; run += kRun) {
            Sort<float, true>(pairs[2 * run], tile[run], index[run].ReinterpretCast<uint32_t>(), tmp, kRun / 32);
            PipeBarrier<PIPE_V>();
        }
        const uint16_t lengths[4] = {kRunning, kRunning, kRunning, kRunning};
        MrgSort(merged, MrgSortSrcList<float>(pairs, pairs[2 * kRun], pairs[4 * kRun], pairs[6 * kRun]),
            MrgSort4Info(lengths, false, 15, 1));
        PipeBarrier<PIPE_V>();
        DataCopy(running, merged, 2 * kRunning);
    }

    // Further tiles: what beats the k-th score so far.
    for (uint32_t column = kTile; column < t.vocabulary; column += kTile) {
        const uint32_t left = t.vocabulary - column, count = left < kTile ? left : kTile;
        PipeBarrier<PIPE_V>();
        if (count < kTile) {
            Duplicate(tile, lowest, kTile);
        }
        Fence<HardEvent::V_MTE2>();
        CopyIn(tile, logitsGm[column], count);
        Fence<HardEvent::MTE2_V>();
        Fence<HardEvent::V_S>();
        const float least = running.GetValue(2 * (k - 1));
        CreateVecIndex(index, int32_t(column), kTile);
        CompareScalar(mask, tile, least, CMPMODE::GT, kTile);
        PipeBarrier<PIPE_V>();
        uint64_t kept = 0, same = 0;
        Duplicate(values, lowest, kRun);
        Duplicate(positions.ReinterpretCast<int32_t>(), 0, kRun);
        PipeBarrier<PIPE_V>();
        GatherMask(values, tile, mask.ReinterpretCast<uint32_t>(), true, kTile, GatherMaskParams{1, 1, 8, 8}, kept);
        GatherMask(positions.ReinterpretCast<int32_t>(), index, mask.ReinterpretCast<uint32_t>(), true, kTile,
            GatherMaskParams{1, 1, 8, 8}, same);
        Fence<HardEvent::V_S>();
        if (kept == 0) {
            continue;
        }
        const uint32_t repeats = uint32_t(kept + 31) / 32;
        PipeBarrier<PIPE_V>();
        Sort<float, true>(pairs, values, positions, tmp, repeats);
        PipeBarrier<PIPE_V>();
        const uint16_t lengths[4] = {kRunning, uint16_t(repeats * 32), 0, 0};
        MrgSort(merged, MrgSortSrcList<float>(running, pairs, running, running), MrgSort4Info(lengths, false, 3, 1));
        PipeBarrier<PIPE_V>();
        DataCopy(running, merged, 2 * kRunning);
    }

    // Softmax over the k, the nucleus by a scalar sum, and the largest weight over noise.
    const uint32_t width = uint32_t(k + 31) / 32 * 32;
    PipeBarrier<PIPE_V>();
    Extract(values, positions, running, width / 32);
    Fence<HardEvent::V_S>();
    const float largest = values.GetValue(0);
    PipeBarrier<PIPE_V>();
    Adds(weights, values, -largest, width);
    PipeBarrier<PIPE_V>();
    Exp(weights, weights, width);
    PipeBarrier<PIPE_V>();
    ReduceSum(scalar, weights, tmp, k);
    Fence<HardEvent::V_S>();
    const float sum = scalar.GetValue(0);
    uint32_t nucleus = 0;
    for (float mass = 0.0f; nucleus < uint32_t(k) && mass <= p * sum; ++nucleus) {
        mass += weights.GetValue(nucleus);
    }
    Fence<HardEvent::V_MTE2>();
    CopyIn(noise, qGm, nucleus);
    Fence<HardEvent::MTE2_V>();
    Muls(weights, weights, 1.0f / sum, nucleus);
    Abs(noise, noise, nucleus);
    PipeBarrier<PIPE_V>();
    Adds(noise, noise, 1.0e-8f, nucleus);
    PipeBarrier<PIPE_V>();
    Div(weights, weights, noise, nucleus);
    PipeBarrier<PIPE_V>();
    ReduceMax(scalar, weights, tmp, nucleus, true);
    Fence<HardEvent::V_S>();
    const uint32_t winner = scalar.ReinterpretCast<uint32_t>().GetValue(1);
    scalar.ReinterpretCast<uint32_t>().SetValue(0, positions.GetValue(winner));
    Fence<HardEvent::S_MTE3>();
    DataCopyPad(outGm, scalar.ReinterpretCast<int32_t>(), DataCopyExtParams{1, sizeof(int32_t), 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
}
