// RUN: jascend-opt %s --lower-to-tile --split-input-file | FileCheck %s
// RUN: jascend-opt %s --lower-to-tile='tile=1024' --split-input-file | FileCheck %s --check-prefix=SMALL

// Two rows for 48 cores: each is split over four. A core finds the largest elements of its part, in a list of 128 pairs
// that it writes to global memory; all meet; each merges the lists of its row, and writes its part.
// CHECK-LABEL: func.func private @top_k(
// CHECK-SAME:      %[[X:.*]]: memref<?x8192xf32, "gm">, %[[K:.*]]: memref<?xi32, "gm">, %[[OUT:.*]]: memref<?x8192xf32, "gm">)
// CHECK-SAME:      attributes {ascend.fill = array<i64: 0>, ascend.kernel, ascend.rows_of = 2 : i64, ascend.summary = "Keeps the k largest
// CHECK:         %[[ROWS:.*]] = memref.dim %{{arg2}}
// CHECK:         %[[SHARE:.*]]:4 = "tile.block_rows"(%[[ROWS]]) {parts = 4 : i64}
// CHECK:         %[[LISTS:.*]] = "tile.workspace"() {elements = 512 : i64, name = "lists", per = "core"}
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[SHARE]]#3
// CHECK:           "tile.load"(%[[K]],
// The part stays in the unified buffer.
// CHECK:           %[[PART:.*]] = "tile.load"(%[[X]],{{.*}}) {pad = 0xFF800000 : f32}{{.*}} -> tensor<2048xf32>
// CHECK:           scf.if
// It is one chunk: no loop.
// CHECK-NOT:         scf.for
// CHECK:             tensor.extract_slice %[[PART]]{{.*}} {ascend.comment = "Maxima over the positions that are equal mod 256."{{.*}}}
// CHECK:             arith.cmpf uge, %[[PART]], %{{.*}} {ascend.comment = "The elements that reach the bound."{{.*}}}
// CHECK-NEXT:        "tile.compress"(%[[PART]],
// CHECK:             "tile.store"(%{{.*}}, %[[LISTS]],
// With another k, the part's elements between two values that a sample of the row gives.
// CHECK:           } else {
// CHECK:             "tile.load_rows"(%[[X]],{{.*}} -> tensor<1024xf32>
// CHECK:             {ascend.comment = "The elements that the k-th largest can be; how many are above them."{{.*}}}
// CHECK:             "tile.compress"
// CHECK:           "tile.sync_all"
// CHECK:           "tile.load"(%[[LISTS]],{{.*}} -> tensor<1024xf32>
// CHECK:           "tile.merge"({{.*}}) {run = 128 : i64, ways = 4 : i64}
// CHECK:           } {ascend.comment = "The lists of all parts, one behind the other."{{.*}}}
// CHECK:           } attributes {ascend.comment = "The smallest value above which is too little."{{.*}}}
// CHECK-NOT:       "tile.sync_all"
// Unordered, so that NaN stays.
// CHECK:             arith.cmpf uge
// CHECK:             "tile.store"(%{{.*}}, %[[OUT]],
// CHECK:         return
// SMALL-LABEL: func.func private @top_k(
// SMALL:         scf.for
// SMALL:         tensor.extract_slice {{.*}} to tensor<1024xf32>
func.func private @top_k(%x: tensor<2x8192xf32>, %k: tensor<2xi32>) -> tensor<2x8192xf32> attributes {ascend.kernel} {
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8192xf32>, tensor<2xi32>) -> tensor<2x8192xf32>
  return %0 : tensor<2x8192xf32>
}
// The call passes buffers.
// CHECK-LABEL: func.func @main(
// CHECK:         %[[OUT:.*]] = memref.alloc() : memref<2x8192xf32, "gm">
// CHECK:         call @top_k(%{{.*}}) {ascend.launch} : (memref<?x8192xf32, "gm">, memref<?xi32, "gm">, memref<?x8192xf32, "gm">) -> ()
// CHECK:         bufferization.to_tensor %[[OUT]]
func.func @main(%x: tensor<2x8192xf32>, %k: tensor<2xi32>) -> tensor<2x8192xf32> {
  %0 = call @top_k(%x, %k) {ascend.launch} : (tensor<2x8192xf32>, tensor<2xi32>) -> tensor<2x8192xf32>
  return %0 : tensor<2x8192xf32>
}

// -----

// A short row is one sorted list; without top-p there are no exponentials.
// CHECK-LABEL: func.func private @short(
// CHECK-NOT:     math.exp
// CHECK:         "tile.sort"({{.*}}) {run = 512 : i64}
// CHECK-NOT:     math.exp
// CHECK:         return
// SMALL-LABEL: func.func private @short(
func.func private @short(%x: tensor<2x300xf16>, %k: tensor<2xi32>) -> tensor<2x300xf16> attributes {ascend.kernel} {
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x300xf16>, tensor<2xi32>) -> tensor<2x300xf16>
  return %0 : tensor<2x300xf16>
}

// -----

// Top-p alone is searched for, by six cores a row. The division is computed on every chunk, in float32 and rounded to the dtype; the
// temperature once a row. The sample is computed from strided loads. A row that ends inside a chunk is padded after the
// arithmetic, whatever that made of the padding.
// CHECK-LABEL: func.func private @scaled(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x50257xbf16, "gm">, %[[T:[a-z0-9]+]]: memref<?xbf16, "gm">
// CHECK:         %[[RAMP:.*]] = "tile.iota"{{.*}} tensor<3072xf32>
// CHECK:         scf.for
// CHECK:           %[[ROW:[a-z0-9]+]] = arith.minsi
// CHECK:           %[[T16:.*]] = "tile.load"(%[[T]], %[[ROW]],
// CHECK:           %[[LANES:.*]] = tensor.extract_slice %[[T16]][0] [8]
// CHECK:           %[[T32:.*]] = arith.extf %[[LANES]]
// CHECK:           %[[SCALAR:.*]] = "tile.extract"(%[[T32]]
// CHECK:           "tile.load_rows"(%[[X]],{{.*}}gm_pitch = 785{{.*}} tensor<1024xbf16>
// CHECK:           %[[SPLAT:.*]] = tensor.splat %[[SCALAR]] : tensor<3072xf32>
// CHECK:           scf.for
// CHECK:             %[[RAW:.*]] = "tile.load"(%[[X]],{{.*}}) {pad = 0.000000e+00 : f32}
// CHECK:             %[[WIDE:.*]] = arith.extf %[[RAW]]
// CHECK:             %[[QUOTIENT:.*]] = arith.divf %[[WIDE]], %[[SPLAT]]
// CHECK:             %[[ROUNDED:.*]] = arith.truncf %[[QUOTIENT]]
// CHECK:             %[[SCALED:.*]] = arith.extf %[[ROUNDED]]
// CHECK:             %[[INSIDE:.*]] = arith.cmpf olt, %[[RAMP]]
// CHECK:             arith.select %[[INSIDE]], %[[SCALED]]
// CHECK:             math.exp
// CHECK:           } {ascend.comment = "Weights, summed in units of 1024."{{.*}}}
// SMALL-LABEL: func.func private @scaled(
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
