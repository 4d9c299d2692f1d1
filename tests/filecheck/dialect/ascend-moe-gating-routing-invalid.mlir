// RUN: jascend-opt %s --split-input-file --verify-diagnostics

// The rules of both operators, each with its own words.
func.func @gating(%l: tensor<6x16xf32>, %x: tensor<6x64xf32>) {
  // expected-error@below {{moe_gating_top_k: k must be at most k_group * (experts / group_count) = 1 * 16, but is 17}}
  %0:4 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 17 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<6x64xf32>) -> (tensor<6x2xf32>, tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return
}

// -----

func.func @routing(%l: tensor<6x16xf32>, %x: tensor<6x64xf32>) {
  // expected-error@below {{moe_init_routing: expert_num must be from 1 to 10240, but is 0}}
  %0:4 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 0 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<6x64xf32>) -> (tensor<6x2xf32>, tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return
}

// -----

// As many rows are routed as are gated.
func.func @tokens(%l: tensor<6x16xf32>, %x: tensor<5x64xf32>) {
  // expected-error@below {{moe_init_routing: expert_idx must have one row for each row of x float32[5,64], but is int32[6,2]}}
  %0:4 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<5x64xf32>) -> (tensor<6x2xf32>, tensor<10x64xf32>, tensor<10xi32>, tensor<16xi32>)
  return
}

// -----

func.func @no_scales(%l: tensor<6x16xf32>, %x: tensor<6x64xf32>) {
  // expected-error@below {{result 'expanded_scale' is required by these out_flag, expert_tokens_num_flag, quant_mode and scale}}
  %0:4 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = 1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<6x64xf32>) -> (tensor<6x2xf32>, tensor<12x64xi8>, tensor<12xi32>, tensor<16xi32>)
  return
}

// -----

func.func @experts(%l: tensor<6x16xf32>, %x: tensor<6x64xf32>) {
  // expected-error@below {{result 'expert_idx' must be int32[6, 2], got int32[6, 3]}}
  %0:5 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 2 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 16 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 1, 1, 1, 0>
  } : (tensor<6x16xf32>, tensor<6x64xf32>) -> (tensor<6x2xf32>, tensor<6x3xi32>, tensor<12x64xf32>, tensor<12xi32>, tensor<16xi32>)
  return
}
