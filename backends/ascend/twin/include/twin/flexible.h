// What 950 adds to the instructions with a scalar: Subs, Divs, Ands and Ors, and forms in which either side is the
// scalar, or a tensor of which one element is. 910B has none of them.
#pragma once
#include "twin/sort.h"

#if __NPU_ARCH__ == 3510

namespace AscendC {

struct BinaryDefaultType {};
struct BinaryConfig {
  int8_t scalarTensorIndex = 1;  // of two tensors, the one whose first element is the scalar
};
inline constexpr BinaryConfig DEFAULT_BINARY_CONFIG = {1};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

template <typename T> struct ElementOfTensor { using type = void; };
template <typename T> struct ElementOfTensor<AscendC::LocalTensor<T>> { using type = T; };
template <typename T> using TensorElement = typename ElementOfTensor<std::decay_t<T>>::type;
template <typename T> inline constexpr bool IsTensor = !std::is_void<TensorElement<T>>::value;

// scalar op element
template <typename Op> struct Reversed {
  template <typename C> static C Of(C a, C b) { return Op::Of(b, a); }
};

// What both forms share: which operand is the scalar, and its value, which the vector unit reads where it is in UB.
template <bool first, typename T, typename S, typename V>
struct Sides {
  const Local<T>* vector;
  const Local<T>* point = nullptr;  // where the scalar is an element of UB
  T scalar{};
  Sides(const S& src0, const V& src1) {
    if constexpr (first) Take(src1, src0);
    else Take(src0, src1);
  }

 private:
  template <typename A, typename B>
  void Take(const A& tensor, const B& other) {
    vector = &tensor;
    if constexpr (IsTensor<B>) point = &other;
    else scalar = other;
  }
};

template <typename Op, bool first, typename T, typename S, typename V>
TWIN_OUTLINE void FlexibleCount(const char* api, const Local<T>& dst, const S& src0, const V& src1, int32_t count,
                                Site site) {
  Sides<first, T, S, V> sides(src0, src1);
  Call call(api, PIPE_V, site);
  uint64_t n = CountOf(call, count, true), bytes = n * sizeof(T);
  uint64_t d = dst.View().address, a = sides.vector->View().address;
  Touch(call, first ? "src1" : "src0", false, *sides.vector, n);
  if (sides.point) {
    View view = sides.point->View();
    call.Ub("scalar", false, view.address, sizeof(T), view.low, view.high, sizeof(T));
    CheckDisjoint(call, "scalar", d, bytes, view.address, sizeof(T));
  }
  Touch(call, "dst", true, dst, n);
  CheckOverlap(call, "src", d, bytes, a, bytes);
  if (!call.Issue(RepeatsOf(bytes))) return;
  uint8_t* ub = call.core.ub;
  const T scalar = sides.point ? *As<T>(ub + sides.point->View().address) : sides.scalar;
  MapScalar<Op>(As<T>(ub + d), As<T>(ub + a), scalar, n);
}

template <typename Op, bool first, typename T, typename S, typename V, typename M>
TWIN_OUTLINE void FlexibleLanes(const char* api, const Local<T>& dst, const S& src0, const V& src1, M mask,
                                const Repeat& repeat, const AscendC::UnaryRepeatParams& p, bool setMask, Site site) {
  Sides<first, T, S, V> sides(src0, src1);
  Call call(api, PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), setMask);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{sides.vector->View().address, sizeof(T), p.srcBlkStride, p.srcRepStride};
  Touch(call, first ? "src1" : "src0", false, sides.vector->View(), a, lanes);
  if (sides.point) {
    View view = sides.point->View();
    call.Ub("scalar", false, view.address, sizeof(T), view.low, view.high, sizeof(T));
  }
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (!call.Issue(lanes.repeats)) return;
  const T scalar = sides.point ? *As<T>(call.core.ub + sides.point->View().address) : sides.scalar;
  WalkLanes(call.core, lanes, d, a,
            [=](uint8_t* x, uint8_t* y, uint64_t n) { MapScalar<Op>(As<T>(x), As<T>(y), scalar, n); });
}

}  // inline namespace
}  // namespace twin

// The scalar has the tensor's type exactly. Of two tensors `config` says which is the scalar.
#define TWIN_FLEXIBLE_CHECK(Name)                                                                                     \
  using E = twin::TensorElement<U>;                                                                                   \
  static_assert(twin::IsTensor<S> || twin::IsTensor<V>, #Name " takes at least one tensor");                          \
  static_assert((twin::IsTensor<S> ? std::is_same<twin::TensorElement<S>, E>::value : std::is_same<S, E>::value) &&   \
                    (twin::IsTensor<V> ? std::is_same<twin::TensorElement<V>, E>::value                               \
                                       : std::is_same<V, E>::value),                                                  \
                #Name " takes operands of one type");                                                                 \
  constexpr bool first = !twin::IsTensor<S> || (twin::IsTensor<V> && config.scalarTensorIndex == 0);                  \
  using Op = std::conditional_t<first, twin::Reversed<TwinOp>, TwinOp>

#define TWIN_FLEXIBLE_LANES(Name, Operation, MaskType, LaneTypes)                                                     \
  template <typename T = BinaryDefaultType, bool isSetMask = true,                                                    \
            const BinaryConfig& config = DEFAULT_BINARY_CONFIG, typename U, typename S, typename V>                   \
  inline auto Name(const U& dst, const S& src0, const V& src1, MaskType, const twin::Repeat repeat,                   \
                   const UnaryRepeatParams& params, twin::Site site = twin::Site::Here())                             \
      -> std::enable_if_t<twin::IsTensor<U> && std::is_same<T, BinaryDefaultType>::value> {                           \
    using TwinOp = twin::Operation;                                                                                   \
    TWIN_FLEXIBLE_CHECK(Name);                                                                                        \
    static_assert(twin::OneOf<E, LaneTypes>, #Name " does not take this type by lanes");                              \
    twin::FlexibleLanes<Op, first, E>(#Name, dst, src0, src1, mask, repeat, params, isSetMask, site);                 \
  }
#define TWIN_COMMA_TYPES(...) __VA_ARGS__
#define TWIN_FLEXIBLE(Name, Operation, CountTypes, LaneTypes)                                                         \
  template <typename T = BinaryDefaultType, bool isSetMask = true,                                                    \
            const BinaryConfig& config = DEFAULT_BINARY_CONFIG, typename U, typename S, typename V>                   \
  inline auto Name(const U& dst, const S& src0, const V& src1, const int32_t& count,                                  \
                   twin::Site site = twin::Site::Here())                                                              \
      -> std::enable_if_t<twin::IsTensor<U> && std::is_same<T, BinaryDefaultType>::value> {                           \
    using TwinOp = twin::Operation;                                                                                   \
    TWIN_FLEXIBLE_CHECK(Name);                                                                                        \
    static_assert(twin::OneOf<E, TWIN_COMMA_TYPES CountTypes>, #Name " does not take this type");                     \
    twin::FlexibleCount<Op, first, E>(#Name, dst, src0, src1, count, site);                                           \
  }                                                                                                                   \
  TWIN_FLEXIBLE_LANES(Name, Operation, uint64_t mask[], TWIN_COMMA_TYPES LaneTypes)                                   \
  TWIN_FLEXIBLE_LANES(Name, Operation, uint64_t mask, TWIN_COMMA_TYPES LaneTypes)

#define TWIN_LANE_TYPES half, bfloat16_t, float, int16_t, int32_t
namespace AscendC {
TWIN_FLEXIBLE(Adds, AddOp, (TWIN_NUMBERS), (TWIN_LANE_TYPES))
TWIN_FLEXIBLE(Muls, MulOp, (TWIN_NUMBERS), (TWIN_LANE_TYPES))
TWIN_FLEXIBLE(Maxs, MaxOp, (TWIN_NUMBERS), (TWIN_LANE_TYPES))
TWIN_FLEXIBLE(Mins, MinOp, (TWIN_NUMBERS), (TWIN_LANE_TYPES))
TWIN_FLEXIBLE(Subs, SubOp, (half, bfloat16_t, float, int16_t, int32_t, int64_t, uint64_t),
              (TWIN_LANE_TYPES))
TWIN_FLEXIBLE(Divs, DivOp, (half, float, int64_t, uint64_t), (half, float))
TWIN_FLEXIBLE(Ands, AndOp, (int16_t, uint16_t, int64_t, uint64_t), (int16_t, uint16_t))
TWIN_FLEXIBLE(Ors, OrOp, (int16_t, uint16_t, int64_t, uint64_t), (int16_t, uint16_t))
}  // namespace AscendC
#undef TWIN_LANE_TYPES
#undef TWIN_FLEXIBLE
#undef TWIN_FLEXIBLE_LANES
#undef TWIN_COMMA_TYPES
#undef TWIN_FLEXIBLE_CHECK

#else

// A message in place of "was not declared".
namespace AscendC {
#define TWIN_ONLY_950(Name)                                                                                           \
  template <typename... Args>                                                                                         \
  inline void Name(const Args&...) {                                                                                  \
    static_assert(sizeof...(Args) == size_t(-1), #Name " is on 950 only: use Muls, Adds or a second tensor");         \
  }
TWIN_ONLY_950(Subs)
TWIN_ONLY_950(Divs)
TWIN_ONLY_950(Ands)
TWIN_ONLY_950(Ors)
#undef TWIN_ONLY_950
}  // namespace AscendC

#endif
