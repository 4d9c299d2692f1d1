// RUN: jascend-opt %s --split-input-file --verify-diagnostics

// The rules of the operator, with its own words.
func.func @logits_dtype(%x: tensor<4x9xi32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{top_k_top_p_sample: logits must be float32 or float16 or bfloat16, but is int32[4,9]}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xi32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @top_k_batch(%x: tensor<4x9xf32>, %k: tensor<5xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{top_k_top_p_sample: top_k must have one element a row, shape [4], but is int32[5]}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<5xi32>, tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @q_and_distribution(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>, %q: tensor<4x9xf32>) {
  // expected-error@below {{top_k_top_p_sample: q must be None where is_need_sample_result is set, but is float32[4,9]}}
  %0:2 = "ascend.top_k_top_p_sample"(%x, %k, %p, %q) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 0, 0, 1, 1>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = true} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4x9xf32>) -> (tensor<4x9xi64>, tensor<4x9xf32>)
  return
}

// -----

func.func @long_row(%x: tensor<4x1048577xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{top_k_top_p_sample: logits may have at most 1048576 elements a row, but is float32[4,1048577]}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x1048577xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @ks_max(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{top_k_top_p_sample: ks_max must be at least 1, but is 0}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 0, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

// Which results there are follows from the attributes.
func.func @result_missing(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{result 'logits_top_kp_select' is required by these is_need_logits and is_need_sample_result}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = true, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @result_unasked(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{result 'logits_top_kp_select' is not among the results of these is_need_logits and is_need_sample_result}}
  %0:2 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4xi64>, tensor<4x9xf32>)
  return
}

// -----

func.func @result_shape(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{result 'logits_select_idx' must be int64[4], got int64[5]}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<5xi64>
  return
}

// -----

func.func @index_dtype(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{result 'logits_select_idx' must be int64[4], got int16[4]}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xi16>
  return
}

// -----

func.func @probability_dtype(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{result 'logits_sort_masked' must be float32[4, 9], got float16[4, 9]}}
  %0:2 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 1, 1>, eps = 1.0e-8 : f32, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = true} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4x9xi32>, tensor<4x9xf16>)
  return
}

// -----

func.func @no_eps(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{attribute "eps" is expected but not provided}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @eps_type(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %p: tensor<4xf32>) {
  // expected-error@below {{expected base attribute 'builtin.float' but got 'builtin.integer'}}
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, eps = 1 : i64, is_need_logits = false, top_k_guess = 32, ks_max = 1024, input_is_logits = true, is_need_sample_result = false} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xi64>
  return
}
