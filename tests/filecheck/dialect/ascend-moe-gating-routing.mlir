// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// Experts are a result where something else needs them.
// CHECK-LABEL: func.func @with_experts(
// CHECK:         "ascend.moe_gating_routing"(%arg0, %arg1, %arg2) {active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, eps = 0.000000e+00 : f32, expert_capacity = -1 : i64, expert_num = 16 : i64, {{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>, out_flag = false, quant_mode = 1 : i64, renorm = 0 : i64, resultSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 1>, {{.*}}} : (tensor<6x16xf32>, tensor<6x64xbf16>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>, tensor<12x64xi8>, tensor<12xi32>, tensor<16xi32>, tensor<12xf32>)
func.func @with_experts(%l: tensor<6x16xf32>, %x: tensor<6x64xbf16>, %b: tensor<16xf32>) {
  %0:6 = "ascend.moe_gating_routing"(%l, %x, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = 1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 1>
  } : (tensor<6x16xf32>, tensor<6x64xbf16>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>, tensor<12x64xi8>, tensor<12xi32>, tensor<16xi32>, tensor<12xf32>)
  return
}

// Any number of tokens, hash routing, all scores, a scale a row, padding for every expert; for one product.
// CHECK-LABEL: func.func @padded(
// CHECK:         "ascend.moe_gating_routing"(%arg0, %arg1, %arg2, %arg3, %arg4) {{{.*}}drop_pad_mode = 1 : i64, {{.*}}expert_capacity = 3 : i64, {{.*}}out_flag = true, {{.*}}target = "ascend910b"} : (tensor<?x16xf16>, tensor<?x64xf32>, tensor<?xi64>, tensor<100x2xi32>, tensor<?xf32>) -> (tensor<?x2xf16>, tensor<?x16xf32>, tensor<16x3x64xf32>, tensor<?xi32>, tensor<16xi64>, tensor<48xf32>)
func.func @padded(%l: tensor<?x16xf16>, %x: tensor<?x64xf32>, %t: tensor<?xi64>, %table: tensor<100x2xi32>, %s: tensor<?xf32>) {
  %0:6 = "ascend.moe_gating_routing"(%l, %x, %t, %table, %s) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 2 : i64,
    out_flag = true, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 1 : i64, expert_capacity = 3 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64, target = "ascend910b",
    operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 0, 0, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 1, 1, 1, 1, 1>
  } : (tensor<?x16xf16>, tensor<?x64xf32>, tensor<?xi64>, tensor<100x2xi32>, tensor<?xf32>) -> (tensor<?x2xf16>, tensor<?x16xf32>, tensor<16x3x64xf32>, tensor<?xi32>, tensor<16xi64>, tensor<48xf32>)
  return
}
