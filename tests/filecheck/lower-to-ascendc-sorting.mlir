// RUN: jascend-opt %s --lower-to-ascendc --split-input-file | FileCheck %s

// 384 pairs: 12 lists of 32, three merges of four at once, then one of three; the last one writes the result.
// CHECK-LABEL: func.func @sort(
// CHECK:         %[[RESULT:.*]] = "ascendc.local_tensor"() {name_hint = "sort"} : () -> memref<768xf32, "ub">
// CHECK:         %[[OTHER:.*]] = "ascendc.local_tensor"() {name_hint = "merged"}
// CHECK:         "ascendc.sort32"(%[[RESULT]], %{{.*}}, %{{.*}})
// CHECK:         "ascendc.mrg_sort"(%[[OTHER]], %[[RESULT]]) {repeat = 3 : i64, run = 32 : i64, ways = 4 : i64}
// CHECK:         "ascendc.mrg_sort"(%[[RESULT]], %[[OTHER]]) {{.*}}repeat = 1 : i64, run = 128 : i64, ways = 3 : i64}
// CHECK:         "ascendc.gather_pattern"(%{{.*}}, %[[RESULT]]) {pattern = 2 : i64} : (memref<384xi32, "ub">, memref<768xf32, "ub">)
// CHECK-NOT:     "ascendc.gather_pattern"
func.func @sort(%x: memref<384xf32, "gm">, %y: memref<384xi32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c384 = arith.constant 384 : index
  %s = "tile.load"(%x, %c0, %c384) : (memref<384xf32, "gm">, index, index) -> tensor<384xf32>
  %i = "tile.iota"() : () -> tensor<384xi32>
  %p = "tile.sort"(%s, %i) {run = 384 : i64} : (tensor<384xf32>, tensor<384xi32>) -> tensor<768xf32>
  %v, %w = "tile.unpack"(%p) : (tensor<768xf32>) -> (tensor<384xf32>, tensor<384xi32>)
  "tile.store"(%w, %y, %c0, %c384) : (tensor<384xi32>, memref<384xi32, "gm">, index, index) -> ()
  return
}

// -----

// Only merges of four repeat: two pairs of lists are two calls.
// CHECK-LABEL: func.func @merge(
// CHECK:         %[[TO:.*]] = "ascendc.view"(%{{.*}}) : (memref<256xf32, "ub">, index) -> memref<128xf32, "ub">
// CHECK:         "ascendc.mrg_sort"(%[[TO]], %{{.*}}) {repeat = 1 : i64, run = 32 : i64, ways = 2 : i64}
// CHECK:         "ascendc.mrg_sort"(%{{.*}}, %{{.*}}) {repeat = 1 : i64, run = 32 : i64, ways = 2 : i64}
func.func @merge(%x: memref<256xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %p = "tile.load"(%x, %c0, %c256) : (memref<256xf32, "gm">, index, index) -> tensor<256xf32>
  %m = "tile.merge"(%p) {run = 32 : i64, ways = 2 : i64} : (tensor<256xf32>) -> tensor<256xf32>
  "tile.store"(%m, %x, %c0, %c256) : (tensor<256xf32>, memref<256xf32, "gm">, index, index) -> ()
  return
}

// -----

// A ramp that the kernel has made is used again.
// CHECK-LABEL: func.func @find(
// CHECK-COUNT-1: "ascendc.create_vec_index"
// CHECK:         "ascendc.gather_mask"
// CHECK-NOT:     "ascendc.create_vec_index"
// CHECK:         return
func.func @find(%x: memref<64xi32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %v = "tile.load"(%x, %c0, %c64) : (memref<64xi32, "gm">, index, index) -> tensor<64xi32>
  %ramp = "tile.iota"() : () -> tensor<64xi32>
  %m = arith.cmpi eq, %v, %ramp : tensor<64xi32>
  %first = "tile.find_first"(%m) : (tensor<64xi1>) -> index
  "tile.store"(%ramp, %x, %c0, %first) : (tensor<64xi32>, memref<64xi32, "gm">, index, index) -> ()
  return
}
