// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @filter(
// CHECK:         "ascend.apply_top_k_top_p"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1>, target = "ascend910b"} : (tensor<?x128256xbf16>, tensor<?xbf16>, tensor<?xi32>) -> tensor<?x128256xbf16>
func.func @filter(%x: tensor<?x128256xbf16>, %p: tensor<?xbf16>, %k: tensor<?xi32>) -> tensor<?x128256xbf16> {
  %0 = "ascend.apply_top_k_top_p"(%x, %p, %k) {operandSegmentSizes = array<i32: 1, 1, 1>, target = "ascend910b"} : (tensor<?x128256xbf16>, tensor<?xbf16>, tensor<?xi32>) -> tensor<?x128256xbf16>
  return %0 : tensor<?x128256xbf16>
}

// A static batch meets a dynamic one.
// CHECK-LABEL: func.func @mixed_batch(
// CHECK:         "ascend.apply_top_k_top_p"
func.func @mixed_batch(%x: tensor<4x8xf32>, %k: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x8xf32>, tensor<?xi32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @sorted(
// CHECK:         %[[S:.*]]:2 = "ascend.sort"(%arg0) {descending = false} : (tensor<4x8xf16>) -> (tensor<4x8xf16>, tensor<4x8xi32>)
// CHECK:         "ascend.apply_top_k_top_p_with_sorted"(%[[S]]#0, %[[S]]#1, %arg1, %arg0) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>}
func.func @sorted(%x: tensor<4x8xf16>, %p: tensor<4xf16>) -> tensor<4x8xf16> {
  %v, %i = "ascend.sort"(%x) {descending = false} : (tensor<4x8xf16>) -> (tensor<4x8xf16>, tensor<4x8xi32>)
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%v, %i, %p, %x) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>} : (tensor<4x8xf16>, tensor<4x8xi32>, tensor<4xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  return %0 : tensor<4x8xf16>
}
