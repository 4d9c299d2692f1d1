// RUN: jascend-opt %s --allow-unregistered-dialect --import --split-input-file 2>&1 | FileCheck %s

// What JAX adds to modules and functions goes.
// CHECK-LABEL: module @jit_next_token {
// CHECK:         func.func public @main(%arg0: tensor<2x8xf32>, %arg1: tensor<2xi32>) -> tensor<2x8xf32> {
// CHECK-NEXT:      %[[OUT:.*]] = "ascend.apply_top_k_top_p"(%arg0, %arg1)
// CHECK-NEXT:      return %[[OUT]]
module @jit_next_token attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<2x8xf32> {jax.buffer_donor = true}, %k: tensor<2xi32>) -> (tensor<2x8xf32> {jax.result_info = "result"}) {
    %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
    return %0 : tensor<2x8xf32>
  }
}

// -----

// Elementwise work, broadcasts and splat constants are ours to compute.
// CHECK-LABEL: func.func @elementwise
// CHECK:         linalg.generic
// CHECK:           arith.divf
func.func @elementwise(%x: tensor<2x8xf32>, %t: tensor<2xf32>) -> tensor<2x8xf32> {
  %empty = tensor.empty() : tensor<2x8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<2x8xf32>, tensor<2xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// Words without a sign are words: legalization computes with i32 and casts, the casts go.
// CHECK-LABEL: func.func @words(
// CHECK-SAME:      %[[KEY:.*]]: tensor<2xi32>) -> tensor<2xi32>
// CHECK-NEXT:    return %[[KEY]] : tensor<2xi32>
func.func @words(%key: tensor<2xui32>) -> tensor<2xui32> {
  %0 = builtin.unrealized_conversion_cast %key : tensor<2xui32> to tensor<2xi32>
  %1 = builtin.unrealized_conversion_cast %0 : tensor<2xi32> to tensor<2xui32>
  return %1 : tensor<2xui32>
}

// -----

// So do bit casts of words to words.
// CHECK-LABEL: func.func @the_same_bits(
// CHECK-SAME:      %[[KEY:.*]]: tensor<2xi32>
// CHECK:         return %[[KEY]] : tensor<2xi32>
func.func @the_same_bits(%key: tensor<2xui32>) -> tensor<2xi32> {
  %0 = builtin.unrealized_conversion_cast %key : tensor<2xui32> to tensor<2xi32>
  %empty = tensor.empty() : tensor<2xi32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%0 : tensor<2xi32>) outs(%empty : tensor<2xi32>) {
  ^bb0(%a: i32, %out: i32):
    %word = arith.bitcast %a : i32 to i32
    linalg.yield %word : i32
  } -> tensor<2xi32>
  return %1 : tensor<2xi32>
}
