// RUN: jascend-opt %s --pass-pipeline='fuse-moe,remove-dead-ops' | FileCheck %s

// One launch; nobody else needs the experts.
// CHECK-LABEL: func.func @routed(
// CHECK-SAME:      %[[L:.*]]: tensor<6x16xf32>, %[[B:.*]]: tensor<16xf32>, %[[X:.*]]: tensor<6x64xf32>)
// CHECK-NEXT:    %[[R:.*]]:4 = "ascend.moe_gating_routing"(%[[L]], %[[X]], %[[B]])
// CHECK-SAME:      expert_num = 16 : i64
// CHECK-SAME:      k = 2 : i64
// CHECK-SAME:      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>
// CHECK-SAME:      resultSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 0>
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3
func.func @routed(%l: tensor<6x16xf32>, %b: tensor<16xf32>, %x: tensor<6x64xf32>) -> (tensor<6x2xf32>, tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>) {
  %g:2 = "ascend.moe_gating_top_k"(%l, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %r:3 = "ascend.moe_init_routing"(%x, %g#1) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return %g#0, %r#0, %r#1, %r#2 : tensor<6x2xf32>, tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>
}

// Dynamic quantization with a scale of the experts, all scores, the experts for somebody else too; one has a target.
// CHECK-LABEL: func.func @all_results(
// CHECK-SAME:      %[[L:.*]]: tensor<6x16xf32>, %[[X:.*]]: tensor<6x64xf32>, %[[S:.*]]: tensor<16x64xf32>)
// CHECK-NEXT:    %[[R:.*]]:7 = "ascend.moe_gating_routing"(%[[L]], %[[X]], %[[S]])
// CHECK-SAME:      operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 1, 0>
// CHECK-SAME:      quant_mode = 1 : i64
// CHECK-SAME:      target = "ascend910b"
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3, %[[R]]#4, %[[R]]#6
func.func @all_results(%l: tensor<6x16xf32>, %x: tensor<6x64xf32>, %s: tensor<16x64xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>, tensor<6x16xf32>, tensor<12x64xi8>, tensor<12xi32>, tensor<12xf32>) {
  %g:3 = "ascend.moe_gating_top_k"(%l) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = true, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1>
  } : (tensor<6x16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>, tensor<6x16xf32>)
  %r:4 = "ascend.moe_init_routing"(%x, %g#1, %s) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = 1 : i64, row_idx_type = 0 : i64, target = "ascend910b",
    operandSegmentSizes = array<i32: 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 1>
  } : (tensor<6x64xf32>, tensor<6x2xi32>, tensor<16x64xf32>) -> (tensor<12x64xi8>, tensor<12xi32>, tensor<16xi32>, tensor<12xf32>)
  return %g#0, %g#1, %g#2, %r#0, %r#1, %r#3 : tensor<6x2xf32>, tensor<6x2xi32>, tensor<6x16xf32>, tensor<12x64xi8>, tensor<12xi32>, tensor<12xf32>
}

// What is routed is there after the gating: it moves before it. What uses the weights stays behind.
// CHECK-LABEL: func.func @between(
// CHECK-SAME:      %[[L:.*]]: tensor<6x16xf32>, %[[B:.*]]: tensor<16xf32>, %[[X:.*]]: tensor<6x8x8xf32>)
// CHECK-NEXT:    %[[FLAT:.*]] = tensor.collapse_shape %[[X]]
// CHECK-NEXT:    %[[R:.*]]:4 = "ascend.moe_gating_routing"(%[[L]], %[[FLAT]], %[[B]])
// CHECK-NEXT:    %[[Y:.*]] = tensor.collapse_shape %[[R]]#0
// CHECK-NEXT:    return %[[Y]], %[[R]]#1
func.func @between(%l: tensor<6x16xf32>, %b: tensor<16xf32>, %x: tensor<6x8x8xf32>) -> (tensor<12xf32>, tensor<12x64xf32>) {
  %g:2 = "ascend.moe_gating_top_k"(%l, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %y = tensor.collapse_shape %g#0 [[0, 1]] : tensor<6x2xf32> into tensor<12xf32>
  %flat = tensor.collapse_shape %x [[0], [1, 2]] : tensor<6x8x8xf32> into tensor<6x64xf32>
  %r:3 = "ascend.moe_init_routing"(%flat, %g#1) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return %y, %r#0 : tensor<12xf32>, tensor<12x64xf32>
}

// Two routings by the same experts: one chooses them, and hands them to the other.
// CHECK-LABEL: func.func @two_routings(
// CHECK:         %[[R:.*]]:5 = "ascend.moe_gating_routing"
// CHECK:         "ascend.moe_init_routing"(%{{.*}}, %[[R]]#1)
func.func @two_routings(%l: tensor<6x16xf32>, %b: tensor<16xf32>, %x: tensor<6x64xf32>, %z: tensor<6x64xf32>) -> (tensor<12x64xf32>, tensor<12x64xf32>) {
  %g:2 = "ascend.moe_gating_top_k"(%l, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %r:3 = "ascend.moe_init_routing"(%x, %g#1) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  %s:3 = "ascend.moe_init_routing"(%z, %g#1) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return %r#0, %s#0 : tensor<12x64xf32>, tensor<12x64xf32>
}

// The rows that are copied come of the weights: they are not there while a core gates.
// CHECK-LABEL: func.func @rows_by_weights_not_fused(
// CHECK:         "ascend.moe_gating_top_k"
// CHECK:         "ascend.moe_init_routing"
func.func @rows_by_weights_not_fused(%l: tensor<6x16xf32>, %b: tensor<16xf32>) -> tensor<12x2xf32> {
  %g:2 = "ascend.moe_gating_top_k"(%l, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %r:3 = "ascend.moe_init_routing"(%g#0, %g#1) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<6x2xf32>, tensor<6x2xi32>) -> (tensor<12x2xf32>, tensor<12xi32>, tensor<16xi32>)
  return %r#0 : tensor<12x2xf32>
}

// Limits and meaning of two products.
// CHECK-LABEL: func.func @other_target_not_fused(
// CHECK:         "ascend.moe_gating_top_k"
// CHECK:         "ascend.moe_init_routing"
func.func @other_target_not_fused(%l: tensor<6x16xf32>, %b: tensor<16xf32>, %x: tensor<6x64xf32>) -> tensor<12x64xf32> {
  %g:2 = "ascend.moe_gating_top_k"(%l, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32, target = "ascend950",
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %r:3 = "ascend.moe_init_routing"(%x, %g#1) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64, target = "ascend910b",
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return %r#0 : tensor<12x64xf32>
}

// Experts from elsewhere.
// CHECK-LABEL: func.func @other_experts_not_fused(
// CHECK:         "ascend.moe_init_routing"(%{{.*}}, %arg3)
func.func @other_experts_not_fused(%l: tensor<6x16xf32>, %b: tensor<16xf32>, %x: tensor<6x64xf32>, %i: tensor<6x2xi32>) -> (tensor<6x2xf32>, tensor<12x64xf32>) {
  %g:2 = "ascend.moe_gating_top_k"(%l, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<16xf32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)
  %r:3 = "ascend.moe_init_routing"(%x, %i) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return %g#0, %r#0 : tensor<6x2xf32>, tensor<12x64xf32>
}

// Any number of tokens.
// CHECK-LABEL: func.func @any_tokens(
// CHECK-NEXT:    "ascend.moe_gating_routing"{{.*}} : (tensor<?x16xf32>, tensor<?x64xf32>, tensor<16xf32>) ->
// CHECK-NEXT:    return
func.func @any_tokens(%l: tensor<?x16xf32>, %b: tensor<16xf32>, %x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %g:2 = "ascend.moe_gating_top_k"(%l, %b) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<?x16xf32>, tensor<16xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %r:3 = "ascend.moe_init_routing"(%x, %g#1) {
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<?x64xf32>, tensor<?x2xi32>) -> (tensor<?x64xf32>, tensor<?xi32>, tensor<16xi32>)
  return %r#0 : tensor<?x64xf32>
}
