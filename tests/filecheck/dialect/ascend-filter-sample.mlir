// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @both(
// CHECK:         "ascend.filter_sample"(%arg0, %arg1, %arg2, %arg3) {eps = 0.000000e+00 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, target = "ascend910b"} : (tensor<?x9xbf16>, tensor<?x9xf32>, tensor<?xbf16>, tensor<?xi32>) -> tensor<?xi64>
func.func @both(%x: tensor<?x9xbf16>, %q: tensor<?x9xf32>, %p: tensor<?xbf16>, %k: tensor<?xi32>) -> tensor<?xi64> {
  %0 = "ascend.filter_sample"(%x, %q, %p, %k) {eps = 0.0 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, target = "ascend910b"} : (tensor<?x9xbf16>, tensor<?x9xf32>, tensor<?xbf16>, tensor<?xi32>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}

// CHECK-LABEL: func.func @top_k(
// CHECK:         "ascend.filter_sample"(%arg0, %arg1, %arg2) {eps = 9.99999993E-9 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x9xf32>, tensor<4x9xf32>, tensor<4xi32>) -> tensor<4xi32>
func.func @top_k(%x: tensor<4x9xf32>, %q: tensor<4x9xf32>, %k: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "ascend.filter_sample"(%x, %q, %k) {eps = 1.0e-8 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x9xf32>, tensor<4x9xf32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func.func @with_a_key(
// CHECK:         "ascend.filter_sample"(%arg0, %arg1, %arg2) {counts = "row", draw = "gumbel", eps = 0.000000e+00 : f32, low = 1.000000e-01 : f32, operandSegmentSizes = array<i32: 1, 0, 0, 1, 1>} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4x2xi32>) -> tensor<4xi32>
func.func @with_a_key(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %key: tensor<4x2xi32>) -> tensor<4xi32> {
  %0 = "ascend.filter_sample"(%x, %k, %key) {eps = 0.0 : f32, draw = "gumbel", low = 0.1 : f32, counts = "row", operandSegmentSizes = array<i32: 1, 0, 0, 1, 1>} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4x2xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
