// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @neither(%x: tensor<4x9xf32>, %q: tensor<4x9xf32>) {
  // expected-error@below {{p and k}}
  %0 = "ascend.filter_sample"(%x, %q) {eps = 0.0 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (tensor<4x9xf32>, tensor<4x9xf32>) -> tensor<4xi32>
  return
}

// -----

func.func @shape_of_q(%x: tensor<4x9xf32>, %q: tensor<4x8xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{must be shaped like logits float32[4,9], but is float32[4,8]}}
  %0 = "ascend.filter_sample"(%x, %q, %k) {eps = 0.0 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x9xf32>, tensor<4x8xf32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @dtype_of_q(%x: tensor<4x9xf16>, %q: tensor<4x9xf16>, %k: tensor<4xi32>) {
  // expected-error@below {{q must be float32, but is float16[4,9]}}
  %0 = "ascend.filter_sample"(%x, %q, %k) {eps = 0.0 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x9xf16>, tensor<4x9xf16>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @index(%x: tensor<4x9xf32>, %q: tensor<4x9xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{result 'index' must be int64[4], got float32[4]}}
  %0 = "ascend.filter_sample"(%x, %q, %k) {eps = 0.0 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x9xf32>, tensor<4x9xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @negative_eps(%x: tensor<4x9xf32>, %q: tensor<4x9xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{eps must not be negative, but is -0.5}}
  %0 = "ascend.filter_sample"(%x, %q, %k) {eps = -0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x9xf32>, tensor<4x9xf32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @neither_q_nor_key(%x: tensor<4x9xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{q and key are both None: one is required}}
  %0 = "ascend.filter_sample"(%x, %k) {eps = 0.0 : f32, operandSegmentSizes = array<i32: 1, 0, 0, 1, 0>} : (tensor<4x9xf32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @q_and_key(%x: tensor<4x9xf32>, %q: tensor<4x9xf32>, %k: tensor<4xi32>, %key: tensor<4x2xi32>) {
  // expected-error@below {{key must be None where there is q}}
  %0 = "ascend.filter_sample"(%x, %q, %k, %key) {eps = 0.0 : f32, draw = "gumbel", low = 0.0 : f32, counts = "row", operandSegmentSizes = array<i32: 1, 1, 0, 1, 1>} : (tensor<4x9xf32>, tensor<4x9xf32>, tensor<4xi32>, tensor<4x2xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @draw_without_key(%x: tensor<4x9xf32>, %q: tensor<4x9xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{draw must be there with a key, and only with one, but is gumbel}}
  %0 = "ascend.filter_sample"(%x, %q, %k) {eps = 0.0 : f32, draw = "gumbel", operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x9xf32>, tensor<4x9xf32>, tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @key_without_counts(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %key: tensor<4x2xi32>) {
  // expected-error@below {{counts must be there with a key, and only with one, but is None}}
  %0 = "ascend.filter_sample"(%x, %k, %key) {eps = 0.0 : f32, draw = "gumbel", low = 0.0 : f32, operandSegmentSizes = array<i32: 1, 0, 0, 1, 1>} : (tensor<4x9xf32>, tensor<4xi32>, tensor<4x2xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @keys_of_other_rows(%x: tensor<4x9xf32>, %k: tensor<4xi32>, %keys: tensor<5x2xi32>) {
  // expected-error@below {{must have two words for each row, shape [4, 2], but is int32[5,2]}}
  %0 = "ascend.filter_sample"(%x, %k, %keys) {eps = 0.0 : f32, draw = "gumbel", low = 0.0 : f32, counts = "row", operandSegmentSizes = array<i32: 1, 0, 0, 1, 1>} : (tensor<4x9xf32>, tensor<4xi32>, tensor<5x2xi32>) -> tensor<4xi32>
  return
}
