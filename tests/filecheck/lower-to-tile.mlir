// RUN: jascend-opt %s --lower-to-tile --split-input-file | FileCheck %s
// RUN: jascend-opt %s --lower-to-tile='tile=1024' --split-input-file | FileCheck %s --check-prefix=SMALL

// Top-k alone: one statistics pass, a bisection on counts, one pass that writes. No exponentials, no ramp.
// CHECK-LABEL: func.func private @top_k(
// CHECK-SAME:      %[[X:.*]]: memref<?x8192xf32, "gm">, %[[K:.*]]: memref<?xi32, "gm">, %[[OUT:.*]]: memref<?x8192xf32, "gm">)
// CHECK-SAME:      attributes {ascend.fill = array<i64: 0>, ascend.kernel, ascend.rows_of = 2 : i64, ascend.summary = "Keeps the k largest
// CHECK-NOT:     "tile.iota"
// CHECK-NOT:     math.exp
// CHECK:         %[[ROWS:.*]] = memref.dim %{{arg2}}
// CHECK:         %[[SHARE:.*]]:4 = "tile.block_rows"(%[[ROWS]])
// CHECK:         scf.for %[[ROW:.*]] = %[[SHARE]]#0 to %[[SHARE]]#1
// CHECK:           "tile.load"(%[[K]], %[[ROW]]
// CHECK:           scf.for
// CHECK:             "tile.load"(%[[X]],{{.*}}) {pad = 0xFF800000 : f32}{{.*}} -> tensor<4096xf32>
// CHECK:             "tile.reduce"(%{{.*}}) {group = 4096 : i64, kind = "max"}
// CHECK:           } {ascend.comment = "The maximum of the row, and its NaN."}
// CHECK:           scf.while
// CHECK:             scf.for
// CHECK:               arith.cmpf oge
// CHECK:           } attributes {ascend.comment = "Top-k: the largest value that at least k elements reach."}
// Unordered, so that NaN stays.
// CHECK:             arith.cmpf uge
// CHECK:             "tile.store"(%{{.*}}, %[[OUT]],
// CHECK:         return
// SMALL-LABEL: func.func private @top_k(
// SMALL:         "tile.load"({{.*}} -> tensor<1024xf32>
func.func private @top_k(%x: tensor<4x8192xf32>, %k: tensor<4xi32>) -> tensor<4x8192xf32> attributes {ascend.kernel} {
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x8192xf32>, tensor<4xi32>) -> tensor<4x8192xf32>
  return %0 : tensor<4x8192xf32>
}
// The call passes buffers.
// CHECK-LABEL: func.func @main(
// CHECK:         %[[OUT:.*]] = memref.alloc() : memref<4x8192xf32, "gm">
// CHECK:         call @top_k(%{{.*}}) {ascend.launch} : (memref<?x8192xf32, "gm">, memref<?xi32, "gm">, memref<?x8192xf32, "gm">) -> ()
// CHECK:         bufferization.to_tensor %[[OUT]]
func.func @main(%x: tensor<4x8192xf32>, %k: tensor<4xi32>) -> tensor<4x8192xf32> {
  %0 = call @top_k(%x, %k) {ascend.launch} : (tensor<4x8192xf32>, tensor<4xi32>) -> tensor<4x8192xf32>
  return %0 : tensor<4x8192xf32>
}

// -----

// The division is computed on every chunk, in float32 and rounded to the dtype; the temperature once a row. A row that
// ends inside a chunk is padded after the arithmetic, whatever that made of the padding.
// CHECK-LABEL: func.func private @scaled(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x50257xbf16, "gm">, %[[T:[a-z0-9]+]]: memref<?xbf16, "gm">
// CHECK:         %[[RAMP:.*]] = "tile.iota"
// CHECK:         scf.for %[[ROW:[a-z0-9]+]] =
// CHECK:           %[[T16:.*]] = "tile.load"(%[[T]], %[[ROW]],
// CHECK:           %[[T32:.*]] = arith.extf %[[T16]]
// CHECK:           %[[SCALAR:.*]] = "tile.extract"(%[[T32]]
// CHECK:           %[[SPLAT:.*]] = tensor.splat %[[SCALAR]] : tensor<4096xf32>
// CHECK:           scf.for
// CHECK:             %[[RAW:.*]] = "tile.load"(%[[X]],{{.*}}) {pad = 0.000000e+00 : f32}
// CHECK:             %[[WIDE:.*]] = arith.extf %[[RAW]]
// CHECK:             %[[QUOTIENT:.*]] = arith.divf %[[WIDE]], %[[SPLAT]]
// CHECK:             %[[ROUNDED:.*]] = arith.truncf %[[QUOTIENT]]
// CHECK:             %[[SCALED:.*]] = arith.extf %[[ROUNDED]]
// CHECK:             %[[INSIDE:.*]] = arith.cmpf olt, %[[RAMP]]
// CHECK:             arith.select %[[INSIDE]], %[[SCALED]]
// SMALL-LABEL: func.func private @scaled(
// SMALL:         tensor.splat %{{.*}} : tensor<1024xf32>
func.func private @scaled(%x: tensor<8x50257xbf16>, %t: tensor<8xbf16>, %p: tensor<8xbf16>) -> tensor<8x50257xbf16> attributes {ascend.kernel} {
  %empty = tensor.empty() : tensor<8x50257xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<8x50257xbf16>, tensor<8xbf16>) outs(%empty : tensor<8x50257xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %q = arith.divf %a, %b : bf16
    linalg.yield %q : bf16
  } -> tensor<8x50257xbf16>
  %0 = "ascend.apply_top_k_top_p"(%s, %p) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x50257xbf16>, tensor<8xbf16>) -> tensor<8x50257xbf16>
  return %0 : tensor<8x50257xbf16>
}

// -----

// A function that is no kernel is left alone.
// CHECK-LABEL: func.func @no_kernel(
// CHECK-NEXT:    "ascend.apply_top_k_top_p"
// SMALL-LABEL: func.func @no_kernel(
// SMALL-NEXT:    "ascend.apply_top_k_top_p"
func.func @no_kernel(%x: tensor<4x8xf32>, %k: tensor<4xi32>) -> tensor<4x8xf32> {
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
