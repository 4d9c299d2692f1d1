// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @of_one_key(
// CHECK:         "ascend.random_exponential"(%arg0) {counts = "array", draw = "gumbel", length = 9 : i64, low = 1.17549435E-38 : f32} : (tensor<?x2xi32>) -> tensor<?x9xf32>
func.func @of_one_key(%key: tensor<?x2xi32>) -> tensor<?x9xf32> {
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "gumbel", low = 1.17549435E-38 : f32, counts = "array"} : (tensor<?x2xi32>) -> tensor<?x9xf32>
  return %0 : tensor<?x9xf32>
}

// CHECK-LABEL: func.func @of_keys(
// CHECK:         "ascend.random_exponential"(%arg0) {counts = "row", draw = "exponential", length = 9 : i64, low = 0.000000e+00 : f32} : (tensor<4x2xi32>) -> tensor<4x9xf32>
func.func @of_keys(%key: tensor<4x2xi32>) -> tensor<4x9xf32> {
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "exponential", low = 0.0 : f32, counts = "row"} : (tensor<4x2xi32>) -> tensor<4x9xf32>
  return %0 : tensor<4x9xf32>
}
