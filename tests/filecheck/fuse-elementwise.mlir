// RUN: jascend-opt %s --pass-pipeline='func.func(canonicalize),cluster-rows{operands=true},fuse-elementwise,remove-dead-ops' --split-input-file | FileCheck %s

// Only filters take the scaled rows, and compute them: no trip through memory.
// CHECK-LABEL: func.func @scaled(
// CHECK-NOT:     "ascend.row_wise"
// CHECK:         %[[S:.*]] = linalg.generic
// CHECK:         "ascend.apply_top_k_top_p"(%[[S]],
// CHECK:         "ascend.apply_top_k_top_p"(%[[S]],
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @scaled(%x: tensor<2x8xf32>, %t: tensor<2xf32>, %k: tensor<2xi32>, %l: tensor<2xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %empty = tensor.empty() : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<2x8xf32>, tensor<2xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %1 = "ascend.apply_top_k_top_p"(%s, %l) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0, %1 : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// The program returns the rows: they are in memory anyway.
// CHECK-LABEL: func.func @returned_not_fused(
// CHECK:         %[[R:.*]] = "ascend.row_wise"
// CHECK:         "ascend.apply_top_k_top_p"(%[[R]],
#all = affine_map<(i, j) -> (i, j)>
func.func @returned_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %empty = tensor.empty() : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x8xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %q = arith.addf %a, %a : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %s, %0 : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// A library takes its operands from memory.
// CHECK-LABEL: func.func @library_not_fused(
// CHECK:         %[[R:.*]] = "ascend.row_wise"
// CHECK:         "ascend.library_call"(%[[R]],
// CHECK:         "ascend.apply_top_k_top_p"(%[[R]],
#all = affine_map<(i, j) -> (i, j)>
func.func @library_not_fused(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %k: tensor<8xi32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %empty = tensor.empty() : tensor<8x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %q = arith.addf %a, %a : f32
    linalg.yield %q : f32
  } -> tensor<8x8xf32>
  %m = "ascend.library_call"(%s, %w) {callee = "aclnnMatmul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<8x8xf32>, tensor<8xi32>) -> tensor<8x8xf32>
  return %m, %0 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A reduction needs whole rows, which an operator's kernel does not have: only the difference is computed inside.
// CHECK-LABEL: func.func @reduced_not_fused(
// CHECK:         %[[MAX:.*]] = "ascend.row_wise"(%{{.*}}) : (tensor<2xf32>) -> tensor<2xf32>
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[MAX]]
// CHECK-NOT:     "ascend.row_wise"
// CHECK:         "ascend.apply_top_k_top_p"(%[[S]],
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @reduced_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %one = tensor.empty() : tensor<2xf32>
  %init = linalg.fill ins(%low : f32) outs(%one : tensor<2xf32>) -> tensor<2xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x8xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.maximumf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2xf32>
  %empty = tensor.empty() : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<2x8xf32>, tensor<2xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.subf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
