// TPipe, TQue and TBuf: buffers in UB handed between pipes through queues.
//
// A queue orders the pipe that fills a buffer and the pipe that uses it: EnQue after the fill, DeQue before the use,
// FreeTensor after it, AllocTensor before the next fill. Between two users on the vector pipe it orders nothing.
#pragma once
#include "twin/sync.h"

namespace twin {
inline namespace TWIN_ABI {

struct Buffer {
  uint32_t address = 0, bytes = 0;
  bool taken = false, queued = false;
  Stamp filled{}, released{};
};

constexpr int kMaxBuffers = 8;    // a queue has
constexpr int kMaxQueues = 64;    // a TPipe sees, to ask at its end whether they are empty

// The pipe that works on a queue position: copies in for VECIN, out for VECOUT, the vector unit in between.
constexpr pipe_t ProducerOf(AscendC::TPosition position) {
  return position == AscendC::TPosition::VECIN ? PIPE_MTE2 : PIPE_V;
}
constexpr pipe_t ConsumerOf(AscendC::TPosition position) {
  return position == AscendC::TPosition::VECOUT ? PIPE_MTE3 : PIPE_V;
}

struct QueueState {
  AscendC::TPosition position = AscendC::TPosition::VECIN;
  pipe_t producer = PIPE_V, consumer = PIPE_V;
  Buffer buffers[kMaxBuffers];
  int count = 0, next = 0;
  int fifo[kMaxBuffers] = {};
  int queued = 0;
  Site made = Site::Here();

  int Find(uint64_t address) const {
    for (int i = 0; i < count; ++i)
      if (address >= buffers[i].address && address < buffers[i].address + buffers[i].bytes) return i;
    return -1;
  }
  int Alloc(Site site) {
    if (count == 0) {
      Report("queue", site, "AllocTensor of a queue that InitBuffer never gave a buffer");
      return -1;
    }
    for (int k = 0; k < count; ++k) {
      int i = (next + k) % count;
      if (buffers[i].taken) continue;
      next = (i + 1) % count;
      buffers[i].taken = true;
      if (buffers[i].released.set) StampWait(buffers[i].released, producer);
      return i;
    }
    Report("queue", site,
           "AllocTensor finds no free buffer: all %d are in use and none was freed; the device waits for ever", count);
    return next;
  }
  void EnQue(uint64_t address, Site site) {
    int i = Find(address);
    if (i < 0 || !buffers[i].taken) return Report("queue", site, "EnQue of a tensor that this queue did not allocate");
    if (buffers[i].queued) return Report("queue", site, "EnQue of a tensor that is in the queue already");
    buffers[i].queued = true;
    if (producer != consumer) StampSet(buffers[i].filled, producer);
    fifo[queued++] = i;
  }
  int DeQue(Site site) {
    if (queued == 0) {
      Report("queue", site, "DeQue of an empty queue; the device waits for ever");
      return count ? 0 : -1;
    }
    int i = fifo[0];
    for (int k = 1; k < queued; ++k) fifo[k - 1] = fifo[k];
    --queued;
    buffers[i].queued = false;
    if (producer != consumer) StampWait(buffers[i].filled, consumer);
    return i;
  }
  void Free(uint64_t address, Site site) {
    int i = Find(address);
    if (i < 0 || !buffers[i].taken)
      return Report("queue", site, "FreeTensor of a tensor that is not allocated from this queue");
    if (buffers[i].queued) return Report("queue", site, "FreeTensor of a tensor that is still in the queue");
    buffers[i].taken = false;
    if (producer != consumer) StampSet(buffers[i].released, consumer);
  }
};

}  // inline namespace
}  // namespace twin

namespace AscendC {

class TPipe;

template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
 public:
  // A queue of depth 0 hands its tensors over in place: the forms with an argument.
  template <typename T>
  LocalTensor<T> AllocTensor(twin::Site site = twin::Site::Here()) {
    static_assert(depth >= 1, "a queue of depth 0 takes AllocTensor(tensor) and DeQue(tensor)");
    return At<T>(state().Alloc(site));
  }
  template <typename T>
  void AllocTensor(LocalTensor<T>& tensor, twin::Site site = twin::Site::Here()) {
    tensor = At<T>(state().Alloc(site));
  }
  template <typename T>
  bool EnQue(const LocalTensor<T>& tensor, twin::Site site = twin::Site::Here()) {
    state().EnQue(tensor.GetPhyAddr(), site);
    return true;
  }
  template <typename T>
  LocalTensor<T> DeQue(twin::Site site = twin::Site::Here()) {
    static_assert(depth >= 1, "a queue of depth 0 takes AllocTensor(tensor) and DeQue(tensor)");
    return At<T>(state().DeQue(site));
  }
  template <typename T>
  void DeQue(LocalTensor<T>& tensor, twin::Site site = twin::Site::Here()) { tensor = At<T>(state().DeQue(site)); }
  template <typename T>
  void FreeTensor(LocalTensor<T>& tensor, twin::Site site = twin::Site::Here()) {
    state().Free(tensor.GetPhyAddr(), site);
  }
  bool VacantInQue() const { return state().queued < (depth ? depth : 1); }
  bool HasTensorInQue() const { return state().queued > 0; }
  int32_t GetTensorCountInQue() const { return state().queued; }
  bool HasIdleBuffer() const {
    for (int i = 0; i < state().count; ++i)
      if (!state().buffers[i].taken) return true;
    return false;
  }

 private:
  friend class TPipe;
  static_assert(depth >= 0, "a queue's depth is not negative");
  // The state lives in the TPipe, which outlives the objects that hold queues.
  twin::QueueState& state() const {
    static thread_local twin::QueueState none;
    return state_ ? *state_ : none;
  }
  template <typename T>
  LocalTensor<T> At(int i) const {
    if (i < 0) return LocalTensor<T>();
    const twin::Buffer& buffer = state().buffers[i];
    return LocalTensor<T>::In(state().position, buffer.address, buffer.bytes / sizeof(T), buffer.address,
                              buffer.address + buffer.bytes);
  }
  twin::QueueState* state_ = nullptr;
};

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<position, position, depth, mask> {};

// A buffer without synchronisation.
template <TPosition position = TPosition::VECCALC>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get(uint32_t count) const { return GetWithOffset<T>(count, 0); }
  template <typename T>
  LocalTensor<T> Get() const { return GetWithOffset<T>(bytes_ / sizeof(T), 0); }
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t count, uint32_t byteOffset) const {
    return LocalTensor<T>::In(position, address_ + byteOffset, count, address_, address_ + bytes_);
  }
  // The same under the names of queues: there is nothing to wait for and nothing to free.
  template <typename T>
  LocalTensor<T> AllocTensor() const { return Get<T>(); }
  template <typename T>
  void FreeTensor(LocalTensor<T>&) const {}

 private:
  friend class TPipe;
  uint32_t address_ = 0, bytes_ = 0;
};

// Hands out UB from its start on, 32 bytes at a time, and event ids.
class TPipe {
 public:
  TPipe() { Init(); }
  ~TPipe() {
    if (twin::ThisCore().tpipe == this) Destroy();
  }
  TPipe(const TPipe&) = delete;
  TPipe& operator=(const TPipe&) = delete;

  void Init() {
    twin::ThisCore().tpipe = this;
    twin::KernelInitialised();
    used_ = 0;
    buffers_ = 0;
    queues_ = 0;
  }

  template <TPosition src, TPosition dst, int32_t depth, auto mask>
  bool InitBuffer(TQueBind<src, dst, depth, mask>& que, uint8_t num, uint32_t bytes,
                  twin::Site site = twin::Site::Here()) {
    if (queues_ == twin::kMaxQueues) {
      twin::Report("queue", site, "more than %d queues in one TPipe", twin::kMaxQueues);
      return false;
    }
    twin::QueueState& state = all_[queues_];
    if (num > twin::kMaxBuffers) {
      twin::Report("queue", site, "a queue with %u buffers; the limit is %d", num, twin::kMaxBuffers);
      return false;
    }
    state = twin::QueueState();
    state.position = src;
    state.producer = twin::ProducerOf(src);
    state.consumer = twin::ConsumerOf(dst);
    state.made = site;
    state.count = num;
    for (int i = 0; i < num; ++i) {
      state.buffers[i].address = Take(bytes, site);
      state.buffers[i].bytes = uint32_t(twin::RoundUp(bytes, 32));
    }
    que.state_ = &state;
    ++queues_;
    return true;
  }

  template <TPosition position>
  bool InitBuffer(TBuf<position>& buffer, uint32_t bytes, twin::Site site = twin::Site::Here()) {
    buffer.address_ = Take(bytes, site);
    buffer.bytes_ = uint32_t(twin::RoundUp(bytes, 32));
    return true;
  }

  // Waits for everything and forgets all buffers, so that the next phase can lay out UB anew.
  void Reset(twin::Site site = twin::Site::Here()) {
    CheckQueues();
    twin::Barrier(PIPE_ALL, site);
    used_ = 0;
    buffers_ = 0;
    queues_ = 0;
  }
  void Destroy(twin::Site site = twin::Site::Here()) {
    Reset(site);
    twin::ThisCore().tpipe = nullptr;
  }

  TEventID FetchEventID(HardEvent event, twin::Site site = twin::Site::Here()) {
    twin::EventEnds ends = twin::EndsOf(event);
    return TEventID(twin::EventFetch(ends.from, ends.to, site));
  }
  template <HardEvent event>
  TEventID FetchEventID(twin::Site site = twin::Site::Here()) { return FetchEventID(event, site); }
  template <HardEvent event>
  TEventID AllocEventID(twin::Site site = twin::Site::Here()) {
    return TEventID(twin::EventAlloc(twin::EndsOf(event).from, twin::EndsOf(event).to, site));
  }
  template <HardEvent event>
  void ReleaseEventID(TEventID id, twin::Site site = twin::Site::Here()) {
    twin::EventRelease(twin::EndsOf(event).from, twin::EndsOf(event).to, id, site);
  }

 private:
  uint32_t Take(uint32_t bytes, twin::Site site) {
    uint64_t size = twin::RoundUp(bytes, 32), capacity = twin::ThisCore().ubBytes;
    if (used_ + size > capacity)
      twin::Report("ub-capacity", site, "InitBuffer of %llu bytes with %llu in use: UB has %llu",
                   (unsigned long long)size, (unsigned long long)used_, (unsigned long long)capacity);
    if (++buffers_ == 65) twin::Report("ub-capacity", site, "this is the 65th buffer; a TPipe manages 64");
    uint32_t address = uint32_t(used_);
    used_ += size;
    return address;
  }
  void CheckQueues() {
    for (int i = 0; i < queues_; ++i) {
      int taken = 0;
      for (int k = 0; k < all_[i].count; ++k) taken += all_[i].buffers[k].taken;
      if (taken)
        twin::Report("tensor-not-freed", all_[i].made, "%d tensors of this queue were allocated and never freed",
                     taken);
    }
  }
  uint64_t used_ = 0;
  int buffers_ = 0;
  int queues_ = 0;
  twin::QueueState all_[twin::kMaxQueues];
};

inline TPipe* GetTPipePtr() { return static_cast<TPipe*>(twin::ThisCore().tpipe); }

}  // namespace AscendC
