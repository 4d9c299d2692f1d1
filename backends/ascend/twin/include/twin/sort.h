// Sorting: 8-byte pairs of a score and a 32-bit index, in descending order of the score. Ties keep the lower position
// (Sort32) or the earlier list (MrgSort). A half score sits in the lower 2 bytes of its pair. NaN sorts before every
// number.
#pragma once
#include "twin/gather.h"

namespace twin {
inline namespace TWIN_ABI {

struct Pair {
  uint32_t score, index;  // the score's bits, as they are stored
};

template <typename T> inline float ScoreOf(const Pair& pair) {
  if constexpr (std::is_same<T, half>::value) return HalfToFloat(uint16_t(pair.score));
  return BitCast<float>(pair.score);
}
template <typename T> inline Pair PairOf(T score, uint32_t index) {
  Pair pair{0, index};
  std::memcpy(&pair.score, &score, sizeof(T));
  return pair;
}
// Strictly before: a total order on scores, so that merging is defined for any input.
inline bool Before(float a, float b) { return a > b || (a != a && b == b); }

template <typename T>
inline void SortRun(Pair* pairs, uint32_t n) {
  for (uint32_t i = 1; i < n; ++i) {
    Pair pair = pairs[i];
    uint32_t j = i;
    for (; j > 0 && Before(ScoreOf<T>(pair), ScoreOf<T>(pairs[j - 1])); --j) pairs[j] = pairs[j - 1];
    pairs[j] = pair;
  }
}

// Merges `lists` descending runs into out until all are used up, or (suspend) the first one is. Returns the pairs
// written; taken[i] counts what was used of run i.
template <typename T>
inline uint32_t MergeRuns(Pair* out, const Pair* const* runs, const uint32_t* lengths, uint32_t lists, bool suspend,
                          uint32_t* taken) {
  uint32_t written = 0;
  for (uint32_t i = 0; i < lists; ++i) taken[i] = 0;
  for (;;) {
    int best = -1;
    for (uint32_t i = 0; i < lists; ++i) {
      if (taken[i] == lengths[i]) {
        if (suspend) return written;
        continue;
      }
      if (best < 0 || Before(ScoreOf<T>(runs[i][taken[i]]), ScoreOf<T>(runs[best][taken[best]]))) best = int(i);
    }
    if (best < 0) return written;
    out[written++] = runs[best][taken[best]++];
  }
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T>
struct MrgSortSrcList {
  MrgSortSrcList() {}
  MrgSortSrcList(const LocalTensor<T>& src1, const LocalTensor<T>& src2, const LocalTensor<T>& src3,
                 const LocalTensor<T>& src4)
      : src1(src1), src2(src2), src3(src3), src4(src4) {}
  LocalTensor<T> src1, src2, src3, src4;
};

// Elements of T that n pairs take.
template <typename T> inline uint32_t GetSortLen(const uint32_t count) {
  TWIN_TYPES(GetSortLen, half, float);
  return uint32_t(count * 8 / sizeof(T));
}
template <typename T> inline uint32_t GetSortOffset(const uint32_t offset) { return GetSortLen<T>(offset); }

// Sorts each 32 scores, with their indices, into 32 pairs.
template <typename T>
TWIN_OUTLINE void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<uint32_t>& src1,
                   const int32_t repeatTime, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Sort32, half, float);
  twin::Call call("Sort32", PIPE_V, site);
  uint32_t n = twin::CheckRepeat(call, repeatTime) * 32;
  uint64_t d = dst.View().address, a = src0.View().address, b = src1.View().address;
  twin::Touch(call, "src0", false, src0, n);
  twin::Touch(call, "src1", false, src1, n);
  twin::Touch(call, "dst", true, dst, n * 8 / sizeof(T));
  twin::CheckDisjoint(call, "src0", d, n * 8, a, n * sizeof(T));
  twin::CheckDisjoint(call, "src1", d, n * 8, b, n * 4);
  if (!call.Issue(n / 32)) return;
  const T* scores = twin::As<T>(call.core.ub + a);
  const uint32_t* index = twin::As<uint32_t>(call.core.ub + b);
  twin::Pair* out = twin::As<twin::Pair>(call.core.ub + d);
  for (uint32_t i = 0; i < n; i += 32) {
    twin::Pair run[32];
    for (uint32_t j = 0; j < 32; ++j) run[j] = twin::PairOf(scores[i + j], index[i + j]);
    twin::SortRun<T>(run, 32);
    std::memcpy(out + i, run, sizeof(run));
  }
}

// Merges two to four descending lists of pairs.
template <typename T>
TWIN_OUTLINE void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& params,
                    twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(MrgSort, half, float);
  twin::Call call("MrgSort", PIPE_V, site);
  const LocalTensor<T>* tensors[4] = {&src.src1, &src.src2, &src.src3, &src.src4};
  uint32_t lists = params.validBit == 3 ? 2 : params.validBit == 7 ? 3 : 4;
  if (params.validBit != 3 && params.validBit != 7 && params.validBit != 15)
    call.Problem(true, "merge", "validBit is %u; 3, 7 and 15 are allowed", params.validBit);
  uint32_t lengths[4] = {0, 0, 0, 0}, total = 0, repeats = params.repeatTimes;
  bool readable = true, contiguous = lists == 4 && !params.ifExhaustedSuspension;
  uint64_t at[4] = {0, 0, 0, 0};
  for (uint32_t i = 0; i < lists; ++i) {
    lengths[i] = params.elementLengths[i];
    at[i] = tensors[i]->View().address;
    if (lengths[i] > 4095) call.Problem(true, "merge", "list %u has %u elements, the limit is 4095", i, lengths[i]);
    contiguous = contiguous && lengths[i] == lengths[0] && at[i] == at[0] + uint64_t(i) * lengths[0] * 8;
    total += lengths[i];
  }
  if (repeats > 255) call.Problem(true, "repeat-limit", "repeat is %u, the limit is 255", repeats);
  if (repeats > 1 && !contiguous)
    call.Problem(true, "merge", "repeat %u needs four adjacent lists of one length and no suspension", repeats);
  for (uint32_t i = 0; i < lists; ++i)
    readable = readable && call.InUb(at[i], uint64_t(lengths[i]) * 8 + (repeats ? repeats - 1 : 0) * total * 8ull);
  twin::Pair* merged =
      reinterpret_cast<twin::Pair*>(twin::ScratchBytes(uint64_t(total) * (repeats ? repeats : 1) * 8 + 8));
  uint32_t written = 0, taken[4] = {0, 0, 0, 0};
  for (uint32_t r = 0; readable && r < repeats; ++r) {
    const twin::Pair* runs[4];
    for (uint32_t i = 0; i < lists; ++i) runs[i] = twin::As<twin::Pair>(call.core.ub + at[i]) + uint64_t(r) * total;
    written += twin::MergeRuns<T>(merged + written, runs, lengths, lists, params.ifExhaustedSuspension, taken);
  }
  uint64_t d = dst.View().address;
  static const char* const names[4] = {"src1", "src2", "src3", "src4"};
  for (uint32_t i = 0; i < lists && repeats; ++i) {
    twin::View view = tensors[i]->View();
    uint64_t bytes = (repeats > 1 ? (i == 0 ? uint64_t(total) * repeats : 0) : lengths[i]) * 8;
    call.Ub(names[i], false, view.address, bytes, view.low, view.high, 8);
    twin::CheckDisjoint(call, names[i], d, uint64_t(written) * 8, view.address, bytes);
  }
  twin::View to = dst.View();
  call.Ub("dst", true, d, uint64_t(written) * 8, to.low, to.high, 32);
  if (!call.Issue(uint32_t((written + 31) / 32))) return;
  std::memcpy(call.core.ub + d, merged, uint64_t(written) * 8);
  uint16_t counts[4];
  for (uint32_t i = 0; i < 4; ++i) counts[i] = uint16_t(i < lists ? taken[i] : 0);
  twin::KeepMergeCounts(call, counts);
}

template <typename T, bool isExhaustedSuspension = false>
TWIN_OUTLINE void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const uint16_t elementCountList[4],
                    uint32_t sortedNum[4], uint16_t validBit, const int32_t repeatTime,
                    twin::Site site = twin::Site::Here()) {
  MrgSort(dst, src, MrgSort4Info(elementCountList, isExhaustedSuspension, validBit, uint16_t(repeatTime)), site);
  for (int i = 0; i < 4; ++i) sortedNum[i] = twin::ThisCore().mergeCounts[i];
}

// How many pairs the last MrgSort used of each list: a register, which the scalar unit reads when it gets here.
inline void GetMrgSortResult(uint16_t& list1, uint16_t& list2, uint16_t& list3, uint16_t& list4,
                             twin::Site site = twin::Site::Here()) {
  const uint16_t* counts = twin::MergeCounts(site);
  list1 = counts[0];
  list2 = counts[1];
  list3 = counts[2];
  list4 = counts[3];
}

// On these products the scores need no packing: concat is src.
template <typename T>
inline void Concat(LocalTensor<T>& concat, const LocalTensor<T>& src, const LocalTensor<T>&, const int32_t repeatTime,
                   twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Concat, half, float);
  if (repeatTime < 0 || repeatTime > 255)
    twin::Report("repeat-limit", site, "repeat is %d, the limit is 255", repeatTime);
  concat = src;
}

// Sort32 over repeatTime runs, and with isFullSort the merges that make one list of them. tmp takes 8 bytes an element.
template <typename T, bool isFullSort>
TWIN_OUTLINE void Sort(const LocalTensor<T>& dst, const LocalTensor<T>& concat, const LocalTensor<uint32_t>& index,
                 LocalTensor<T>& tmp, const int32_t repeatTime, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Sort, half, float);
  twin::Call call("Sort", PIPE_V, site);
  uint32_t n = twin::CheckRepeat(call, repeatTime) * 32;
  twin::View to = dst.View(), scratch = tmp.View();
  twin::Touch(call, "concat", false, concat, n);
  twin::Touch(call, "index", false, index, n);
  uint64_t scratchBytes = isFullSort && n > 32 ? uint64_t(n) * 8 : 0;
  call.Ub("tmp", true, scratch.address, scratchBytes, scratch.low, scratch.high, 32);
  twin::Touch(call, "dst", true, dst, n * 8 / sizeof(T));
  twin::CheckDisjoint(call, "concat", to.address, n * 8, concat.View().address, n * sizeof(T));
  twin::CheckDisjoint(call, "index", to.address, n * 8, index.View().address, n * 4);
  twin::CheckDisjoint(call, "tmp", to.address, n * 8, scratch.address, scratchBytes);
  if (!call.Issue(n / 32)) return;
  const T* scores = twin::As<T>(call.core.ub + concat.View().address);
  const uint32_t* indices = twin::As<uint32_t>(call.core.ub + index.View().address);
  twin::Pair* from = reinterpret_cast<twin::Pair*>(twin::ScratchBytes(uint64_t(n) * 16 + 16));
  twin::Pair* into = from + n;
  for (uint32_t i = 0; i < n; ++i) from[i] = twin::PairOf(scores[i], indices[i]);
  for (uint32_t i = 0; i < n; i += 32) twin::SortRun<T>(from + i, 32);
  for (uint32_t run = 32; isFullSort && run < n; run *= 2) {
    for (uint32_t i = 0; i < n; i += 2 * run) {
      uint32_t middle = i + run < n ? i + run : n, end = i + 2 * run < n ? i + 2 * run : n;
      const twin::Pair* runs[2] = {from + i, from + middle};
      uint32_t lengths[2] = {middle - i, end - middle}, taken[2];
      twin::MergeRuns<T>(into + i, runs, lengths, 2, false, taken);
    }
    twin::Pair* swap = from;
    from = into;
    into = swap;
  }
  call.Undefined(scratch.address, scratchBytes);
  std::memcpy(call.core.ub + to.address, from, uint64_t(n) * 8);
}

// Takes 32 pairs a repeat apart.
template <typename T>
TWIN_OUTLINE void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex,
                          const LocalTensor<T>& sorted, const int32_t repeatTime,
                          twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Extract, half, float);
  twin::Call call("Extract", PIPE_V, site);
  uint32_t n = twin::CheckRepeat(call, repeatTime) * 32;
  uint64_t from = sorted.View().address, bytes = uint64_t(n) * 8;
  twin::Touch(call, "sorted", false, sorted, n * 8 / sizeof(T));
  twin::Touch(call, "dstValue", true, dstValue, n);
  twin::Touch(call, "dstIndex", true, dstIndex, n);
  if (!call.Issue(twin::RepeatsOf(bytes))) return;
  twin::Pair* pairs = reinterpret_cast<twin::Pair*>(twin::ScratchBytes(bytes + 8));
  std::memcpy(pairs, call.core.ub + from, bytes);
  T* values = twin::As<T>(call.core.ub + dstValue.View().address);
  uint32_t* indices = twin::As<uint32_t>(call.core.ub + dstIndex.View().address);
  for (uint32_t i = 0; i < n; ++i) {
    std::memcpy(values + i, &pairs[i].score, sizeof(T));
    indices[i] = pairs[i].index;
  }
}

}  // namespace AscendC
