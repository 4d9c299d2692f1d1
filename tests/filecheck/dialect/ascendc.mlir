// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @every_op(
func.func @every_op(%gm: memref<?x64xf32, "gm">, %n: index, %s: f32) {
  // CHECK: %[[X:.*]] = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  // CHECK: "ascendc.local_tensor"() {name_hint = "y"}
  %y = "ascendc.local_tensor"() {name_hint = "y"} : () -> memref<64xf32, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m"} : () -> memref<8xui8, "ub">
  %h = "ascendc.local_tensor"() {name_hint = "h"} : () -> memref<64xbf16, "ub">
  %r = "ascendc.local_tensor"() {name_hint = "r"} : () -> memref<8xf32, "ub">
  // CHECK: "ascendc.block_idx"() : () -> index
  %core = "ascendc.block_idx"() : () -> index
  // CHECK: "ascendc.tiling"() {field = "rows_per_core"} : () -> index
  %rows = "ascendc.tiling"() {field = "rows_per_core"} : () -> index
  // CHECK: "ascendc.copy_in"(%[[X]], %arg0, %arg1, %arg1) {pad = 0.000000e+00 : f32}
  "ascendc.copy_in"(%x, %gm, %n, %n) {pad = 0.0 : f32} : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> ()
  // CHECK: "ascendc.copy_out"(%arg0, %[[X]], %arg1, %arg1)
  "ascendc.copy_out"(%gm, %x, %n, %n) : (memref<?x64xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  // CHECK: "ascendc.duplicate"
  "ascendc.duplicate"(%x, %s) : (memref<64xf32, "ub">, f32) -> ()
  // CHECK: "ascendc.create_vec_index"
  "ascendc.create_vec_index"(%x) : (memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.cast"(%{{.*}}, %[[X]]) {round_mode = "CAST_RINT"}
  "ascendc.cast"(%h, %x) {round_mode = "CAST_RINT"} : (memref<64xbf16, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.add"
  "ascendc.add"(%y, %x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.sub"
  "ascendc.sub"(%y, %x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.mul"
  "ascendc.mul"(%y, %x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.div"
  "ascendc.div"(%y, %x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.max"
  "ascendc.max"(%y, %x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.min"
  "ascendc.min"(%y, %x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.adds"
  "ascendc.adds"(%y, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f32) -> ()
  // CHECK: "ascendc.muls"
  "ascendc.muls"(%y, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f32) -> ()
  // CHECK: "ascendc.maxs"
  "ascendc.maxs"(%y, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f32) -> ()
  // CHECK: "ascendc.mins"
  "ascendc.mins"(%y, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f32) -> ()
  // CHECK: "ascendc.exp"
  "ascendc.exp"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.ln"
  "ascendc.ln"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.sqrt"
  "ascendc.sqrt"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.abs"
  "ascendc.abs"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.compare"(%{{.*}}, %[[X]], %{{.*}}) {mode = "LT"}
  "ascendc.compare"(%m, %x, %y) {mode = "LT"} : (memref<8xui8, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.compare_scalar"(%{{.*}}, %[[X]], %arg2) {mode = "GE"}
  "ascendc.compare_scalar"(%m, %x, %s) {mode = "GE"} : (memref<8xui8, "ub">, memref<64xf32, "ub">, f32) -> ()
  // CHECK: "ascendc.bitwise_not"
  "ascendc.bitwise_not"(%m, %m) : (memref<8xui8, "ub">, memref<8xui8, "ub">) -> ()
  // CHECK: "ascendc.select"
  "ascendc.select"(%y, %m, %x, %y) : (memref<64xf32, "ub">, memref<8xui8, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.select_scalar"
  "ascendc.select_scalar"(%y, %m, %x, %s) : (memref<64xf32, "ub">, memref<8xui8, "ub">, memref<64xf32, "ub">, f32) -> ()
  // CHECK: "ascendc.block_reduce_sum"(%{{.*}}) {repeat = 1 : i64}
  "ascendc.block_reduce_sum"(%r, %x) {repeat = 1 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.block_reduce_max"
  "ascendc.block_reduce_max"(%r, %x) {repeat = 1 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.block_reduce_min"
  "ascendc.block_reduce_min"(%r, %x) {repeat = 1 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.whole_reduce_sum"(%{{.*}}) {mask = 16 : i64, repeat = 4 : i64, src_rep_stride = 2 : i64}
  "ascendc.whole_reduce_sum"(%r, %x) {mask = 16 : i64, repeat = 4 : i64, src_rep_stride = 2 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.whole_reduce_max"
  "ascendc.whole_reduce_max"(%r, %x) {mask = 64 : i64, repeat = 1 : i64, src_rep_stride = 8 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.whole_reduce_min"
  "ascendc.whole_reduce_min"(%r, %x) {mask = 64 : i64, repeat = 1 : i64, src_rep_stride = 8 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  // CHECK: "ascendc.gather_mask"(%{{.*}}) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<8xui8, "ub">) -> index
  %kept = "ascendc.gather_mask"(%y, %x, %m) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<8xui8, "ub">) -> index
  // CHECK: "ascendc.get_value"(%{{.*}}) : (memref<64xf32, "ub">, index) -> f32
  %v = "ascendc.get_value"(%x, %kept) : (memref<64xf32, "ub">, index) -> f32
  // CHECK: "ascendc.set_flag"() {event = "V_MTE3", event_id = 5 : i64}
  "ascendc.set_flag"() {event = "V_MTE3", event_id = 5 : i64} : () -> ()
  // CHECK: "ascendc.wait_flag"() {event = "V_MTE3", event_id = 5 : i64}
  "ascendc.wait_flag"() {event = "V_MTE3", event_id = 5 : i64} : () -> ()
  // CHECK: "ascendc.pipe_barrier"() {pipe = "ALL"}
  "ascendc.pipe_barrier"() {pipe = "ALL"} : () -> ()
  return
}
