// RUN: jascend-opt %s --pass-pipeline='outline-kernels{prefix=demo}' --split-input-file | FileCheck %s

// The division moves into the kernel with the operator.
// CHECK-LABEL: func.func @producer_inside(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8xf32>, %[[T:.*]]: tensor<2xf32>, %[[K:.*]]: tensor<2xi32>
// CHECK-NEXT:    %[[OUT:.*]] = call @demo_apply_top_k_top_p(%[[X]], %[[T]], %[[K]]) {ascend.launch}
// CHECK-NEXT:    return %[[OUT]]
// CHECK-LABEL: func.func private @demo_apply_top_k_top_p(
// CHECK-SAME:      tensor<2x8xf32>, %{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2xi32>) -> tensor<2x8xf32> attributes {ascend.kernel, no_inline}
// CHECK:         %[[SCALED:.*]] = linalg.generic
// CHECK:           arith.divf
// CHECK:         "ascend.apply_top_k_top_p"(%[[SCALED]],
func.func @producer_inside(%x: tensor<2x8xf32>, %t: tensor<2xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %empty = tensor.empty() : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<2x8xf32>, tensor<2xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// Two operators, two kernels; what the first computes reaches the second through memory.
// CHECK-LABEL: func.func @two_launches(
// CHECK:         %[[A:.*]] = call @demo_apply_top_k_top_p(
// CHECK:         %[[B:.*]] = call @demo_apply_top_k_top_p2(%[[A]],
// CHECK:         return %[[B]]
// CHECK:       func.func private @demo_apply_top_k_top_p(
// CHECK:       func.func private @demo_apply_top_k_top_p2(
func.func @two_launches(%x: tensor<2x8xf32>, %p: tensor<2xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %1 = "ascend.apply_top_k_top_p"(%0, %p) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x8xf32>, tensor<2xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// -----

// Leading dimensions that vmap added are folded outside: a reshape moves nothing.
// CHECK-LABEL: func.func @reshape_outside(
// CHECK:         %[[FLAT:.*]] = tensor.collapse_shape
// CHECK:         %[[OUT:.*]] = call @demo_apply_top_k_top_p(%[[FLAT]],
// CHECK:         tensor.expand_shape %[[OUT]]
func.func @reshape_outside(%x: tensor<3x2x8xf32>, %k: tensor<6xi32>) -> tensor<3x2x8xf32> {
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<3x2x8xf32> into tensor<6x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%flat, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<6x8xf32>, tensor<6xi32>) -> tensor<6x8xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [3, 2, 8] : tensor<6x8xf32> into tensor<3x2x8xf32>
  return %1 : tensor<3x2x8xf32>
}
