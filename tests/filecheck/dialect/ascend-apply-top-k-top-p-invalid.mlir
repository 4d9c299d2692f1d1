// RUN: jascend-opt %s --split-input-file --verify-diagnostics

// The rules of the operator, with its own words.
func.func @neither(%x: tensor<4x8xf32>) {
  // expected-error@below {{apply_top_k_top_p: p and k are both None: at least one is required}}
  %0 = "ascend.apply_top_k_top_p"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @p_dtype(%x: tensor<4x8xbf16>, %p: tensor<4xf32>) {
  // expected-error@below {{apply_top_k_top_p: p must have the dtype of logits (bfloat16), but is float32[4]}}
  %0 = "ascend.apply_top_k_top_p"(%x, %p) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xbf16>, tensor<4xf32>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @k_batch(%x: tensor<4x8xf32>, %k: tensor<5xi32>) {
  // expected-error@below {{apply_top_k_top_p: k must have one element a row, shape [4], but is int32[5]}}
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x8xf32>, tensor<5xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @result(%x: tensor<4x8xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{result 'out' must be float32[4, 8], got float32[4, 9]}}
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @unknown_target(%x: tensor<4x8xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{attribute 'target' must be one of "ascend910b", "ascend910_93", "ascend950", got "ascend310p"}}
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>, target = "ascend310p"} : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @no_tensor(%x: memref<4x8xf32>, %k: tensor<4xi32>) {
  // expected-error@below {{expected base type 'builtin.tensor' but got 'builtin.memref'}}
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (memref<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sorted_shapes(%v: tensor<4x8xf32>, %i: tensor<4x9xi32>, %k: tensor<4xi32>) {
  // expected-error@below {{sorted_indices must be shaped like sorted_value}}
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%v, %i, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<4x8xf32>, tensor<4x9xi32>, tensor<4xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sort_indices(%x: tensor<4x8xf32>) {
  // expected-error@below {{result 'indices' must be int32[4, 8], got int64[4, 8]}}
  %v, %i = "ascend.sort"(%x) {descending = true} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi64>)
  return
}

// -----

func.func @no_direction(%x: tensor<4x8xf32>) {
  // expected-error@below {{attribute "descending" is expected but not provided}}
  %v, %i = "ascend.sort"(%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
  return
}
