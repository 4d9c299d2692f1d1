// MoE routing as the hand-written kernels do it: ids sorted by merges through global memory, experts counted by the
// scalar unit, the inverse permutation written element by element, each token's row read once for each of its experts.
#include "kernel_operator.h"

using namespace AscendC;

struct RoutingTiling {
    uint32_t tokens;
    uint32_t k;          // experts of each token
    uint32_t hidden;     // 16-bit elements of a row
    uint32_t experts;
    uint32_t sortCores;  // 1 or 16
};

namespace {

constexpr uint32_t kWindow = 1024;  // pairs of each list in the unified buffer
constexpr uint32_t kLists = 4;

__aicore__ inline uint32_t Least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

template <HardEvent event>
__aicore__ inline void Fence(int32_t id = 0)
{
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

template <typename T>
__aicore__ inline void CopyIn(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint32_t count)
{
    DataCopyPad(dst, src, DataCopyExtParams{1, uint32_t(count * sizeof(T)), 0, 0, 0},
        DataCopyPadExtParams<T>{false, 0, 0, 0});
}

template <typename T>
__aicore__ inline void CopyOut(const GlobalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count)
{
    DataCopyPad(dst, src, DataCopyExtParams{1, uint32_t(count * sizeof(T)), 0, 0, 0});
}

struct Sorted {
    GlobalTensor<int32_t> ids, positions;
};

// Pairs of (-id, position) apart, from `pairs` to global memory at `at`.
__aicore__ inline void WriteApart(const Sorted &out, uint32_t at, const LocalTensor<float> &pairs, uint32_t count,
    const LocalTensor<float> &values, const LocalTensor<uint32_t> &positions, const LocalTensor<int32_t> &ids)
{
    const uint32_t repeats = (count + 31) / 32;
    PipeBarrier<PIPE_V>();
    Extract(values, positions, pairs, repeats);
    PipeBarrier<PIPE_V>();
    Muls(values, values, -1.0f, repeats * 32);
    PipeBarrier<PIPE_V>();
    Cast(ids, values, RoundMode::CAST_RINT, repeats * 32);
    Fence<HardEvent::V_MTE3>();
    CopyOut(out.ids[at], ids, count);
    CopyOut(out.positions[at], positions.ReinterpretCast<int32_t>(), count);
    Fence<HardEvent::MTE3_V>();
}

// The ids [first, first + count), sorted, as pairs in the unified buffer at 73728.
__aicore__ inline LocalTensor<float> SortIds(const GlobalTensor<int32_t> &idsGm, uint32_t first, uint32_t count)
{
    const uint32_t padded = (count + 31) / 32 * 32;
    LocalTensor<int32_t> ids(TPosition::VECCALC, 0, padded), ramp(TPosition::VECCALC, 49152, padded);
    LocalTensor<float> scores(TPosition::VECCALC, 24576, padded), pairs(TPosition::VECCALC, 73728, 2 * padded);
    LocalTensor<float> tmp(TPosition::VECCALC, 122880, 2 * padded);
    CopyIn(ids, idsGm[first], count);
    Fence<HardEvent::MTE2_V>();
    Duplicate(scores, -3.0e38f, padded);
    CreateVecIndex(ramp, int32_t(first), padded);
    PipeBarrier<PIPE_V>();
    Cast(scores, ids, RoundMode::CAST_NONE, count);
    PipeBarrier<PIPE_V>();
    Muls(scores, scores, -1.0f, count);
    PipeBarrier<PIPE_V>();
    Sort<float, true>(pairs, scores, ramp.ReinterpretCast<uint32_t>(), tmp, padded / 32);
    return pairs;
}

// Merges four adjacent lists of `length` pairs from `first` on, window by window.
template <bool last>
__aicore__ inline void MergeLists(const GlobalTensor<float> &from, const GlobalTensor<float> &to, const Sorted &out,
    uint32_t first, uint32_t length)
{
    LocalTensor<float> in[kLists];
    for (uint32_t i = 0; i < kLists; ++i) {
        in[i] = LocalTensor<float>(TPosition::VECCALC, i * kWindow * 8, 2 * kWindow);
    }
    LocalTensor<float> merged(TPosition::VECCALC, 32768, 8 * kWindow), values(TPosition::VECCALC, 65536, 4 * kWindow);
    LocalTensor<uint32_t> positions(TPosition::VECCALC, 81920, 4 * kWindow);
    LocalTensor<int32_t> ids(TPosition::VECCALC, 98304, 4 * kWindow);
    Duplicate(merged, 0.0f, 8 * kWindow);
    PipeBarrier<PIPE_V>();
    uint32_t taken[kLists] = {0, 0, 0, 0}, written = first;
    while (true) {
        uint32_t lists = 0, source[kLists] = {0, 0, 0, 0};
        uint16_t lengths[kLists] = {0, 0, 0, 0}, used[kLists] = {0, 0, 0, 0};
        for (uint32_t i = 0; i < kLists; ++i) {
            const uint32_t count = Least(length - taken[i], kWindow);
            if (count == 0) {
                continue;
            }
            CopyIn(in[lists], from[(first + i * length + taken[i]) * 2], 2 * count);
            source[lists] = i;
            lengths[lists++] = uint16_t(count);
        }
        if (lists == 0) {
            break;
        }
        Fence<HardEvent::MTE2_V>();
        if (lists == 1) {
            Adds(merged.ReinterpretCast<int32_t>(), in[0].ReinterpretCast<int32_t>(), 0, 2 * lengths[0]);
            used[0] = lengths[0];
        } else {
            MrgSort(merged, MrgSortSrcList<float>(in[0], in[1], in[2], in[3]),
                MrgSort4Info(lengths, true, uint16_t((1u << lists) - 1), 1));
            Fence<HardEvent::V_S>();
            GetMrgSortResult(used[0], used[1], used[2], used[3]);
        }
        uint32_t count = 0;
        for (uint32_t i = 0; i < lists; ++i) {
            taken[source[i]] += used[i];
            count += used[i];
        }
        if (last) {
            WriteApart(out, written, merged, count, values, positions, ids);
        } else {
            Fence<HardEvent::V_MTE3>();
            CopyOut(to[written * 2], merged, 2 * count);
            Fence<HardEvent::MTE3_V>();
        }
        written += count;
        Fence<HardEvent::V_MTE2>();
    }
}

}  // namespace

extern "C" __global__ __aicore__ void route(GM_ADDR x, GM_ADDR expertIdx, GM_ADDR expandedX, GM_ADDR rowIdx,
    GM_ADDR expertCounts, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA_WITH_STRUCT(RoutingTiling, t, tiling);
    InitSocState();
    const uint32_t n = t.tokens * t.k, core = GetBlockIdx(), cores = GetBlockNum();
    GlobalTensor<int32_t> idsGm, rowGm, countsGm;
    idsGm.SetGlobalBuffer((__gm__ int32_t *)expertIdx, n);
    rowGm.SetGlobalBuffer((__gm__ int32_t *)rowIdx, n);
    countsGm.SetGlobalBuffer((__gm__ int32_t *)expertCounts, t.experts);
    GlobalTensor<float> runs, merged;
    runs.SetGlobalBuffer((__gm__ float *)workspace, 2 * n);
    merged.SetGlobalBuffer((__gm__ float *)workspace + 2 * n, 2 * n);
    Sorted sorted;
    sorted.ids.SetGlobalBuffer((__gm__ int32_t *)workspace + 4 * n, n);
    sorted.positions.SetGlobalBuffer((__gm__ int32_t *)workspace + 5 * n, n);

    // Sort.
    if (core < t.sortCores) {
        const uint32_t part = n / t.sortCores;
        LocalTensor<float> pairs = SortIds(idsGm, core * part, part);
        if (t.sortCores == 1) {
            LocalTensor<float> values(TPosition::VECCALC, 0, 6144);
            LocalTensor<uint32_t> positions(TPosition::VECCALC, 24576, 6144);
            LocalTensor<int32_t> ids(TPosition::VECCALC, 49152, 6144);
            WriteApart(sorted, 0, pairs, n, values, positions, ids);
        } else {
            Fence<HardEvent::V_MTE3>();
            CopyOut(runs[core * part * 2], pairs, 2 * part);
        }
    }
    if (core == cores - 1) {
        LocalTensor<int32_t> zeros(TPosition::VECCALC, 180000 / 32 * 32, t.experts);
        PipeBarrier<PIPE_ALL>();
        Duplicate(zeros, 0, t.experts);
        Fence<HardEvent::V_MTE3>();
        CopyOut(countsGm, zeros, t.experts);
    }
    SyncAll();
    if (t.sortCores > 1) {
        if (core < t.sortCores / kLists) {
            MergeLists<false>(runs, merged, sorted, core * kLists * (n / t.sortCores), n / t.sortCores);
        }
        SyncAll();
        if (core == 0) {
            MergeLists<true>(merged, runs, sorted, 0, n / kLists);
        }
        SyncAll();
    }

    // Count the experts of this core's share of the sorted list.
    const uint32_t share = (n + cores - 1) / cores, first = Least(core * share, n), count = Least(share, n - first);
    LocalTensor<int32_t> ids(TPosition::VECCALC, 0, 1024), positions(TPosition::VECCALC, 4096, 1024);
    LocalTensor<int32_t> counts(TPosition::VECCALC, 8192, 1024), slot(TPosition::VECCALC, 12288, 8);
    Duplicate(counts, 0, t.experts);
    if (count) {
        CopyIn(ids, sorted.ids[first], count);
        CopyIn(positions, sorted.positions[first], count);
        Fence<HardEvent::MTE2_S>();
        Fence<HardEvent::V_S>();
        int32_t expert = ids.GetValue(0), run = 0;
        for (uint32_t i = 0; i < count; ++i) {
            const int32_t next = ids.GetValue(i);
            if (next != expert) {
                counts.SetValue(expert, run);
                expert = next;
                run = 0;
            }
            ++run;
        }
        counts.SetValue(expert, run);
        SetAtomicAdd<int32_t>();
        Fence<HardEvent::S_MTE3>();
        CopyOut(countsGm, counts, t.experts);
        Fence<HardEvent::MTE3_S>();
        SetAtomicNone();
    }
    SyncAll();

    // The inverse permutation, an element a copy.
    for (uint32_t i = 0; i < count; ++i) {
        slot.SetValue(0, int32_t(first + i));
        Fence<HardEvent::S_MTE3>();
        CopyOut(rowGm[positions.GetValue(i)], slot, 1);
        Fence<HardEvent::MTE3_S>();
    }
    SyncAll();

    // The rows, one copy in and one out for each expert of a token.
    GlobalTensor<uint16_t> xGm, expandedGm;
    xGm.SetGlobalBuffer((__gm__ uint16_t *)x, uint64_t(t.tokens) * t.hidden);
    expandedGm.SetGlobalBuffer((__gm__ uint16_t *)expandedX, uint64_t(n) * t.hidden);
    for (uint32_t i = 0; i < count; ++i) {
        const int32_t buffer = i % 2;
        LocalTensor<uint16_t> row(TPosition::VECCALC, 16384 + buffer * 32768, t.hidden);
        const uint64_t token = uint32_t(positions.GetValue(i)) / t.k;
        if (i >= 2) {
            WaitFlag<HardEvent::MTE3_MTE2>(buffer);
        }
        CopyIn(row, xGm[token * t.hidden], t.hidden);
        Fence<HardEvent::MTE2_MTE3>(buffer);
        CopyOut(expandedGm[uint64_t(first + i) * t.hidden], row, t.hidden);
        SetFlag<HardEvent::MTE3_MTE2>(buffer);
    }
    for (uint32_t i = 0; i < Least(count, 2); ++i) {
        WaitFlag<HardEvent::MTE3_MTE2>((count - 1 - i) % 2);
    }
    PipeBarrier<PIPE_ALL>();
}
