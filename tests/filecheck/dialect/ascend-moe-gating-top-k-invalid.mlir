// RUN: jascend-opt %s --split-input-file --verify-diagnostics

// The rules of the operator, with its own words.
func.func @k_too_large(%x: tensor<4x16xf32>) {
  // expected-error@below {{moe_gating_top_k: k must be at most k_group * (experts / group_count) = 1 * 4, but is 5}}
  %y, %idx = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 4, group_select_mode = 0, k = 5, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>) -> (tensor<4x5xf32>, tensor<4x5xi32>)
  return
}

// -----

func.func @bias_dtype(%x: tensor<4x16xf32>, %b: tensor<16xf16>) {
  // expected-error@below {{moe_gating_top_k: bias must have the dtype of x (float32), but is float16[16]}}
  %y, %idx = "ascend.moe_gating_top_k"(%x, %b) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 3, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>, tensor<16xf16>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return
}

// -----

func.func @half_of_the_hash_inputs(%x: tensor<4x16xf32>, %ids: tensor<4xi32>) {
  // expected-error@below {{moe_gating_top_k: tid2eid is required with input_ids, but is None}}
  %y, %idx = "ascend.moe_gating_top_k"(%x, %ids) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 3, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 1, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return
}

// -----

func.func @unknown_experts(%x: tensor<4x?xf32>) {
  // expected-error@below {{moe_gating_top_k: x must have a fixed number of experts, but is float32[4,?]}}
  %y, %idx = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 3, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x?xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return
}

// -----

// A limit of the target.
func.func @softplus_with_groups(%x: tensor<4x16xf32>) {
  // expected-error@below {{moe_gating_top_k: group_count must be 1 with norm_type 2 on ascend910_93, but is 4}}
  %y, %idx = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 4, group_select_mode = 0, k = 3, k_group = 1, norm_type = 2, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32, target = "ascend910_93",
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return
}

// -----

func.func @result_shape(%x: tensor<4x16xf32>) {
  // expected-error@below {{result 'expert_idx' must be int32[4, 3], got int32[4, 4]}}
  %y, %idx = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 3, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>) -> (tensor<4x3xf32>, tensor<4x4xi32>)
  return
}

// -----

func.func @out_not_asked_for(%x: tensor<4x16xf32>) {
  // expected-error@below {{result 'out' is not among the results of these out_flag}}
  %y, %idx, %out = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 3, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1>
  } : (tensor<4x16xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>, tensor<4x16xf32>)
  return
}

// -----

func.func @out_missing(%x: tensor<4x16xf32>) {
  // expected-error@below {{result 'out' is required by these out_flag}}
  %y, %idx = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 3, k_group = 1, norm_type = 1, out_flag = true, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return
}

// -----

func.func @no_k(%x: tensor<4x16xf32>) {
  // expected-error@below {{attribute "k" is expected but not provided}}
  %y, %idx = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return
}

// -----

func.func @unknown_target(%x: tensor<4x16xf32>) {
  // expected-error@below {{attribute 'target' must be one of "ascend910b", "ascend910_93", "ascend950", got "ascend310p"}}
  %y, %idx = "ascend.moe_gating_top_k"(%x) {
    eps = 1.0e-20 : f32, group_count = 1, group_select_mode = 0, k = 3, k_group = 1, norm_type = 1, out_flag = false, renorm = 0, routed_scaling_factor = 1.0 : f32, target = "ascend310p",
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<4x16xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return
}
