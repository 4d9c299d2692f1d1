// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @grouped(
// CHECK:         %{{.*}}:2 = "ascend.moe_gating_top_k"(%arg0, %arg1)
// CHECK-SAME:      eps = 9.99999968E-21 : f32
// CHECK-SAME:      k = 8 : i64, k_group = 4 : i64
// CHECK-SAME:      operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>
// CHECK-SAME:      resultSegmentSizes = array<i32: 1, 1, 0>
// CHECK-SAME:      target = "ascend910b"
// CHECK-SAME:    (tensor<?x256xbf16>, tensor<256xbf16>) -> (tensor<?x8xbf16>, tensor<?x8xi32>)
func.func @grouped(%x: tensor<?x256xbf16>, %bias: tensor<256xbf16>) -> (tensor<?x8xbf16>, tensor<?x8xi32>) {
  %y, %idx = "ascend.moe_gating_top_k"(%x, %bias) {
    eps = 1.0e-20 : f32, group_count = 8, group_select_mode = 1, k = 8, k_group = 4, norm_type = 1, out_flag = false,
    renorm = 0, routed_scaling_factor = 2.5 : f32, target = "ascend910b",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<?x256xbf16>, tensor<256xbf16>) -> (tensor<?x8xbf16>, tensor<?x8xi32>)
  return %y, %idx : tensor<?x8xbf16>, tensor<?x8xi32>
}

// CHECK-LABEL: func.func @hashed_with_scores(
// CHECK:         %[[R:.*]]:3 = "ascend.moe_gating_top_k"(%arg0, %arg1, %arg2) {{.*}} (tensor<4x64xf32>, tensor<4xi64>, tensor<?x6xi32>)
// CHECK:         return %[[R]]#2
func.func @hashed_with_scores(%x: tensor<4x64xf32>, %ids: tensor<4xi64>, %table: tensor<?x6xi32>) -> tensor<4x64xf32> {
  %y, %idx, %out = "ascend.moe_gating_top_k"(%x, %ids, %table) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 6, k_group = 1, norm_type = 2, out_flag = true,
    renorm = 0, routed_scaling_factor = 1.5 : f32,
    operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1>
  } : (tensor<4x64xf32>, tensor<4xi64>, tensor<?x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x64xf32>)
  return %out : tensor<4x64xf32>
}

// A static number of tokens meets a dynamic one.
// CHECK-LABEL: func.func @masked(
// CHECK:         "ascend.moe_gating_top_k"(%arg0, %arg1, %arg2) {{.*}}operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 1>
func.func @masked(%x: tensor<?x64xf16>, %bias: tensor<64xf16>, %mask: tensor<5xi1>) -> tensor<5x6xi32> {
  %y, %idx = "ascend.moe_gating_top_k"(%x, %bias, %mask) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 6, k_group = 1, norm_type = 0, out_flag = false,
    renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<?x64xf16>, tensor<64xf16>, tensor<5xi1>) -> (tensor<5x6xf16>, tensor<5x6xi32>)
  return %idx : tensor<5x6xi32>
}
