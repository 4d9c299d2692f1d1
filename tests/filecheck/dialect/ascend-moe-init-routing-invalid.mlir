// RUN: jascend-opt %s --split-input-file --verify-diagnostics

// The rules of the operator, with its own words.
func.func @rule(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{moe_init_routing: expert_num must be from 1 to 10240, but is 0}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 0 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @no_mode_10(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{quant_mode must be -1 to 9 or 11 to 17, but is 10}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 10 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @range(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{active_expert_range must end within expert_num 8, but is [0, 9]}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 9>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @rank(%x: tensor<64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{x must have shape [N, H], but is float32[64] of rank 1}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @rows_of_x(%x: tensor<5x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{expert_idx must have one row for each row of x float32[5,64], but is int32[6,2]}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<5x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @expert_dtype(%x: tensor<6x64xf32>, %e: tensor<6x2xi64>) {
  // expected-error@below {{expert_idx must be int32, but is int64[6,2]}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi64>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @mode_of_another_product(%x: tensor<6x64xbf16>, %e: tensor<6x2xi32>) {
  // expected-error@below {{quant_mode must be -1 or 0 or 1 on A2 and A3, but is 3}}
  %0:4 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 3 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64, target = "ascend910_93"} : (tensor<6x64xbf16>, tensor<6x2xi32>) -> (tensor<12x64xf8E4M3FN>, tensor<12xi32>, tensor<8xi64>, tensor<12x2xf8E8M0FNU>)
  return
}

// -----

func.func @result_dtype(%x: tensor<6x64xbf16>, %e: tensor<6x2xi32>) {
  // expected-error@below {{result 'expanded_x' must be float8_e4m3fn[12, 64], got float8_e5m2[12, 64]}}
  %0:4 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 3 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64} : (tensor<6x64xbf16>, tensor<6x2xi32>) -> (tensor<12x64xf8E5M2>, tensor<12xi32>, tensor<8xi64>, tensor<12x2xf8E8M0FNU>)
  return
}

// -----

func.func @result_rows(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{result 'expanded_x' must be float32[12, 64], got float32[13, 64]}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<13x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @limited_rows(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{result 'expanded_x' must be float32[5, 64], got float32[12, 64]}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = 5 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @missing_counts(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{result 'expert_tokens' is required by these expert_tokens_num_flag, quant_mode and scale}}
  %0:2 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 0, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>)
  return
}

// -----

func.func @scales_of_nothing(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{result 'expanded_scale' is not among the results of these expert_tokens_num_flag, quant_mode and scale}}
  %0:4 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>, tensor<12xf32>)
  return
}

// -----

func.func @counts_dtype(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{result 'expert_tokens' must be int64[8], got int16[8]}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi16>)
  return
}

// -----

func.func @batches_differ(%x: tensor<2x6x64xf32>, %e: tensor<3x6x2xi32>) {
  // expected-error@below {{'x' must have the batch of 'expert_idx' int32[3, 6, 2], got float32[2, 6, 64]}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<2x6x64xf32>, tensor<3x6x2xi32>) -> (tensor<3x12x64xf32>, tensor<3x12xi32>, tensor<3x8xi64>)
  return
}

// -----

func.func @range_attribute(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{expected base attribute 'builtin.dense_array' but got 'builtin.array'}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = [0, 8], active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @range_of_64_bits(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{attribute 'active_expert_range' must be an int32 list attribute, got array<i64: 0, 8>}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i64: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// -----

func.func @no_mode(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  // expected-error@below {{attribute "quant_mode" is expected but not provided}}
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}
