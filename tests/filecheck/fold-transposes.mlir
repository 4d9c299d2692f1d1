// RUN: jascend-opt %s --pass-pipeline='fold-transposes,remove-dead-ops' | FileCheck %s

// CHECK-LABEL: func.func @weights(
// CHECK-SAME:      %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<6x8xf32>
// CHECK-NEXT:    "ascend.library_call"(%[[X]], %[[W]]) {callee = "aclnnMatmul", operandSegmentSizes = array<i32: 1, 1, 0>, transposed = array<i32: 0, 1>}
func.func @weights(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %t = "ascend.library_call"(%w) {callee = "aclnnPermute", dims = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %0 = "ascend.library_call"(%x, %t) {callee = "aclnnMatmul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// Rows in groups are not transposed; their weights are.
// CHECK-LABEL: func.func @grouped(
// CHECK:         %[[X:.*]] = "ascend.library_call"(%{{.*}}) {callee = "aclnnPermute"
// CHECK:         "ascend.library_call"(%[[X]], %arg1, %arg2) {callee = "aclnnGroupedMatmulV5", {{.*}}transposed = array<i32: 0, 1, 0>}
func.func @grouped(%x: tensor<8x6xf32>, %w: tensor<3x4x8xf32>, %n: tensor<3xi32>) -> tensor<6x4xf32> {
  %a = "ascend.library_call"(%x) {callee = "aclnnPermute", dims = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %b = "ascend.library_call"(%w) {callee = "aclnnPermute", dims = array<i32: 0, 2, 1>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<3x4x8xf32>) -> tensor<3x8x4xf32>
  %0 = "ascend.library_call"(%a, %b, %n) {callee = "aclnnGroupedMatmulV5", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<6x8xf32>, tensor<3x8x4xf32>, tensor<3xi32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// Another order of dimensions has to be made.
// CHECK-LABEL: func.func @another_order(
// CHECK:         callee = "aclnnPermute"
// CHECK-NOT:     transposed
func.func @another_order(%x: tensor<4x2x8xf32>, %w: tensor<2x8x6xf32>) -> tensor<2x4x6xf32> {
  %t = "ascend.library_call"(%x) {callee = "aclnnPermute", dims = array<i32: 1, 0, 2>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x2x8xf32>) -> tensor<2x4x8xf32>
  %0 = "ascend.library_call"(%t, %w) {callee = "aclnnBatchMatMul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}
