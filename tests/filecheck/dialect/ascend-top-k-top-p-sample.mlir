// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @index(
// CHECK:         "ascend.top_k_top_p_sample"(%arg0, %arg1, %arg2, %arg3) {eps = 9.99999993E-9 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, target = "ascend910b", top_k_guess = 32 : i64} : (tensor<?x128256xbf16>, tensor<?xi32>, tensor<?xbf16>, tensor<?x128256xf32>) -> tensor<?xi64>
func.func @index(%x: tensor<?x128256xbf16>, %k: tensor<?xi32>, %p: tensor<?xbf16>, %q: tensor<?x128256xf32>) -> tensor<?xi64> {
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p, %q) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false, target = "ascend910b"} : (tensor<?x128256xbf16>, tensor<?xi32>, tensor<?xbf16>, tensor<?x128256xf32>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}

// Indices are 64 or 32 bits wide; a static batch meets a dynamic one.
// CHECK-LABEL: func.func @distribution(
// CHECK:         "ascend.top_k_top_p_sample"(%arg0, %arg1, %arg2, %arg3)
// CHECK-SAME:      operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>, resultSegmentSizes = array<i32: 0, 1, 1, 1>
// CHECK-SAME:      -> (tensor<4x9xf32>, tensor<?x9xi32>, tensor<4x9xf32>)
func.func @distribution(%x: tensor<4x9xf16>, %k: tensor<?xi32>, %p: tensor<4xf16>, %m: tensor<4xf16>) -> tensor<?x9xi32> {
  %0:3 = "ascend.top_k_top_p_sample"(%x, %k, %p, %m) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>, resultSegmentSizes = array<i32: 0, 1, 1, 1>, eps = 0.0 : f32, is_need_logits = true, top_k_guess = -1, ks_max = 8, input_is_logits = false, is_need_sample_result = true} : (tensor<4x9xf16>, tensor<?xi32>, tensor<4xf16>, tensor<4xf16>) -> (tensor<4x9xf32>, tensor<?x9xi32>, tensor<4x9xf32>)
  return %0#1 : tensor<?x9xi32>
}
