// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @some(
// CHECK:         "ascend.library_call"(%arg1) {callee = "aclnnPermute", dims = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<6x8xf32>) -> tensor<8x6xf32>
// CHECK:         "ascend.library_call"(%arg0, %arg1) {callee = "aclnnMatmul", operandSegmentSizes = array<i32: 1, 1, 0>, transposed = array<i32: 0, 1>}
func.func @some(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) {
  %t = "ascend.library_call"(%w) {callee = "aclnnPermute", dims = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %0 = "ascend.library_call"(%x, %w) {callee = "aclnnMatmul", operandSegmentSizes = array<i32: 1, 1, 0>, transposed = array<i32: 0, 1>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return
}
