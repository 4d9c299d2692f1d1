// Additions of vectors, for the cost model: one resident tile; a stream through queues of one or two buffers; rows of
// short pieces, read only.
#include "kernel_operator.h"

using namespace AscendC;

struct ResidentTiling {
    uint32_t x, y, z;  // addresses
};

// Add of 4096 floats that are in the unified buffer.
extern "C" __global__ __aicore__ void add_resident(GM_ADDR out, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA_WITH_STRUCT(ResidentTiling, t, tiling);
    InitSocState();
    constexpr uint32_t kCount = 4096;
    LocalTensor<float> x(TPosition::VECCALC, t.x, kCount), y(TPosition::VECCALC, t.y, kCount);
    LocalTensor<float> z(TPosition::VECCALC, t.z, kCount);
    GlobalTensor<float> outGm;
    outGm.SetGlobalBuffer((__gm__ float *)out);
    Duplicate(x, 1.0f, kCount);
    Duplicate(y, 2.0f, kCount);
    PipeBarrier<PIPE_V>();
    Add(z, x, y, kCount);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(outGm, z, kCount);
    PipeBarrier<PIPE_ALL>();
}

struct StreamTiling {
    uint32_t tiles;    // of each core
    uint32_t tile;     // elements
    uint32_t buffers;  // of each queue
};

// z = x + y in half: each core its own stretch of tiles.
extern "C" __global__ __aicore__ void add_stream(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA_WITH_STRUCT(StreamTiling, t, tiling);
    TPipe pipe;
    TQue<TPosition::VECIN, 1> xQueue, yQueue;
    TQue<TPosition::VECOUT, 1> zQueue;
    pipe.InitBuffer(xQueue, t.buffers, t.tile * sizeof(half));
    pipe.InitBuffer(yQueue, t.buffers, t.tile * sizeof(half));
    pipe.InitBuffer(zQueue, t.buffers, t.tile * sizeof(half));
    const uint64_t first = uint64_t(GetBlockIdx()) * t.tiles * t.tile;
    GlobalTensor<half> xGm, yGm, zGm;
    xGm.SetGlobalBuffer((__gm__ half *)x + first);
    yGm.SetGlobalBuffer((__gm__ half *)y + first);
    zGm.SetGlobalBuffer((__gm__ half *)z + first);
    for (uint32_t i = 0; i < t.tiles; ++i) {
        const uint64_t at = uint64_t(i) * t.tile;
        LocalTensor<half> xIn = xQueue.AllocTensor<half>();
        DataCopy(xIn, xGm[at], t.tile);
        xQueue.EnQue(xIn);
        LocalTensor<half> yIn = yQueue.AllocTensor<half>();
        DataCopy(yIn, yGm[at], t.tile);
        yQueue.EnQue(yIn);

        LocalTensor<half> xLocal = xQueue.DeQue<half>(), yLocal = yQueue.DeQue<half>();
        LocalTensor<half> zLocal = zQueue.AllocTensor<half>();
        Add(zLocal, xLocal, yLocal, t.tile);
        zQueue.EnQue(zLocal);
        xQueue.FreeTensor(xLocal);
        yQueue.FreeTensor(yLocal);

        LocalTensor<half> zOut = zQueue.DeQue<half>();
        DataCopy(zGm[at], zOut, t.tile);
        zQueue.FreeTensor(zOut);
    }
}

// Reads tiles of 64 pieces of 128 bytes that lie 256 bytes apart.
extern "C" __global__ __aicore__ void read_pieces(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA_WITH_STRUCT(StreamTiling, t, tiling);
    constexpr uint32_t kPieces = 64, kPiece = 128;
    TPipe pipe;
    TQue<TPosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, t.buffers, kPieces * kPiece);
    GlobalTensor<uint8_t> xGm;
    xGm.SetGlobalBuffer((__gm__ uint8_t *)x + uint64_t(GetBlockIdx()) * t.tiles * kPieces * 2 * kPiece);
    for (uint32_t i = 0; i < t.tiles; ++i) {
        LocalTensor<uint8_t> in = queue.AllocTensor<uint8_t>();
        DataCopyPad(in, xGm[uint64_t(i) * kPieces * 2 * kPiece], DataCopyExtParams{kPieces, kPiece, kPiece, 0, 0},
            DataCopyPadExtParams<uint8_t>{false, 0, 0, 0});
        queue.EnQue(in);
        LocalTensor<uint8_t> held = queue.DeQue<uint8_t>();
        queue.FreeTensor(held);
    }
}
