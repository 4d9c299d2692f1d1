// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error@below {{attribute 'callee' must be one of "aclnnMatmul"}}
  %0 = "ascend.library_call"(%x) {callee = "aclnnNone", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @mismatch(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  // expected-error@below {{aclnnMatmul takes matrices that fit each other, got float32[4,8], float32[6,8]}}
  %0 = "ascend.library_call"(%x, %w) {callee = "aclnnMatmul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

func.func @wrong_result(%x: tensor<4x8xi8>, %w: tensor<3x8x6xi8>, %n: tensor<3xi32>) -> tensor<4x6xi8> {
  // expected-error@below {{result 'out' must be int32[4, 6], got int8[4, 6]}}
  %0 = "ascend.library_call"(%x, %w, %n) {callee = "aclnnGroupedMatmulV5", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x8xi8>, tensor<3x8x6xi8>, tensor<3xi32>) -> tensor<4x6xi8>
  return %0 : tensor<4x6xi8>
}

// -----

func.func @transposed_rows(%x: tensor<8x4xf32>, %w: tensor<3x8x6xf32>, %n: tensor<3xi32>) -> tensor<4x6xf32> {
  // expected-error@below {{aclnnGroupedMatmulV5 has no use for 'transposed' = [1, 0, 0]}}
  %0 = "ascend.library_call"(%x, %w, %n) {callee = "aclnnGroupedMatmulV5", transposed = array<i32: 1, 0, 0>, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x4xf32>, tensor<3x8x6xf32>, tensor<3xi32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
