// RUN: jascend-opt %s --emit -o /dev/null | FileCheck %s

// A kernel whose stages are functions is a class. What it knows before it begins, and in a turn of its rows, are members, and
// so are buffers that more than one function uses; each function declares its own. Numbers that differ are parameters, one
// result is returned, several are assigned, and go straight to where a branch's results go.
// CHECK:      class Rows {
// CHECK-NEXT: public:
// CHECK-NEXT:     __aicore__ inline explicit Rows(const RowsTiling &tilingData)
// CHECK-NEXT:         : tilingData(tilingData) {}
// CHECK:          __aicore__ inline void Init(GM_ADDR logits, GM_ADDR workspace)
// CHECK-NEXT:     {
// CHECK-NEXT:         logitsGm_.SetGlobalBuffer((__gm__ float *)logits);
// CHECK-NEXT:         // model.py:7
// CHECK-NEXT:         core_ = GetBlockIdx();
// CHECK-NEXT:         rowsPerCore_ = tilingData.rowsPerCore;
// CHECK-NEXT:     }
// CHECK:          __aicore__ inline void Process()
// CHECK-NEXT:     {
// CHECK-NEXT:         for (int64_t i = 0; i < rowsPerCore_; ++i) {
// CHECK-NEXT:             row_ = core_ + i;
// CHECK-NEXT:             const float sum = AddUp(64);
// CHECK-NEXT:             float low = 0.0f;
// CHECK-NEXT:             float high = 1.0f;
// CHECK-NEXT:             if (sum > 0.0f) {
// CHECK-NEXT:                 FindEnds(low, high);
// CHECK-NEXT:             }
// CHECK:              }
// CHECK-NEXT:         PipeBarrier<PIPE_ALL>();
// CHECK-NEXT:     }
// CHECK:      private:
// CHECK-NEXT:     // The sum of a row.
// CHECK-NEXT:     __aicore__ inline float AddUp(int64_t count)
// CHECK-NEXT:     {
// CHECK-NEXT:         // model.py:9
// CHECK-NEXT:         LocalTensor<float> yLocal(TPosition::VECCALC, 256, 64);
// CHECK-EMPTY:
// CHECK-NEXT:         CopyIn(xLocal_, logitsGm_[row_], static_cast<uint32_t>(count));
// CHECK-NEXT:         Exp(yLocal, xLocal_, 64);
// CHECK-NEXT:         const float y = yLocal.GetValue(0);
// CHECK-NEXT:         return y;
// CHECK-NEXT:     }
// CHECK:          __aicore__ inline void FindEnds(float &low, float &high)
// CHECK-NEXT:     {
// CHECK-NEXT:         // model.py:9
// CHECK-NEXT:         const float x = xLocal_.GetValue(0);
// CHECK-NEXT:         const float x2 = xLocal_.GetValue(1);
// CHECK-NEXT:         low = x;
// CHECK-NEXT:         high = x2;
// CHECK-NEXT:     }
// CHECK:          const RowsTiling &tilingData;
// CHECK-NEXT:     GlobalTensor<float> logitsGm_;
// CHECK-NEXT:     // Unified buffer, by hand: (position, byte address, elements).
// CHECK-NEXT:     LocalTensor<float> xLocal_{TPosition::VECCALC, 0, 64};
// CHECK-NEXT:     int64_t core_;
// CHECK-NEXT:     int64_t rowsPerCore_;
// CHECK-NEXT:     int64_t row_;
// CHECK-NEXT: };
// CHECK:      }  // namespace
// CHECK:          Rows kernel(tilingData);
// CHECK-NEXT:     kernel.Init(logits, workspace);
// CHECK-NEXT:     kernel.Process();
func.func @rows(%in: memref<?x64xf32, "gm"> loc("logits")) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %core = "ascendc.block_idx"() {ascend.member} : () -> index loc("core"("model.py":7:1))
  %rows = "ascendc.tiling"() {field = "rows_per_core"} : () -> index loc("rows_per_core"("model.py":7:1))
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %rows step %c1 {
    %row = arith.addi %core, %i {ascend.member} : index loc("row"("model.py":7:1))
    %sum = func.call @rows.AddUp(%in, %row, %c64) : (memref<?x64xf32, "gm">, index, index) -> f32
    %any = arith.cmpf ogt, %sum, %zero : f32
    %ends:2 = scf.if %any -> (f32, f32) {
      %both:2 = func.call @rows.FindEnds() : () -> (f32, f32)
      scf.yield %both#0, %both#1 : f32, f32
    } else {
      %low = arith.constant 0.0 : f32
      %high = arith.constant 1.0 : f32
      scf.yield %low, %high : f32, f32
    } loc("low,high")
    %all = arith.addf %ends#0, %ends#1 : f32
    "ascendc.duplicate"(%x, %all) : (memref<64xf32, "ub">, f32) -> () loc("model.py":10:1)
  }
  return
}
func.func private @rows.AddUp(%in: memref<?x64xf32, "gm"> {ascend.member}, %row: index {ascend.member}, %count: index loc("count")) -> f32
    attributes {ascend.stage_of = @rows, ascend.comment = "The sum of a row.", ascend.results = ["sum"]} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %y = "ascendc.local_tensor"() {name_hint = "y", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c0 = arith.constant 0 : index
  "ascendc.copy_in"(%x, %in, %row, %count) : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> () loc("model.py":9:1)
  "ascendc.exp"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> () loc("model.py":9:1)
  %v = "ascendc.get_value"(%y, %c0) : (memref<64xf32, "ub">, index) -> f32 loc("model.py":9:1)
  return %v : f32
} loc("model.py":9:1)
func.func private @rows.FindEnds() -> (f32, f32)
    attributes {ascend.stage_of = @rows, ascend.comment = "The first and the second element.", ascend.results = ["low", "high"]} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = "ascendc.get_value"(%x, %c0) : (memref<64xf32, "ub">, index) -> f32 loc("model.py":9:1)
  %high = "ascendc.get_value"(%x, %c1) : (memref<64xf32, "ub">, index) -> f32 loc("model.py":9:1)
  return %low, %high : f32, f32
} loc("model.py":9:1)
