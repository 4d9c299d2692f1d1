// RUN: jascend-opt %s --lower-to-tile --split-input-file --verify-diagnostics

// expected-error@below {{exactly one operator with a lowering to tiles, this one has: ascend.sort, ascend.sort}}
func.func @sorted_twice(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>) attributes {ascend.kernel} {
  %0, %1 = "ascend.sort"(%x) {descending = false} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  %2, %3 = "ascend.sort"(%0) {descending = true} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  return %2, %3 : tensor<2x8xf32>, tensor<2x8xi32>
}

// -----

func.func @returns_more(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) attributes {ascend.kernel} {
  // expected-error@below {{a kernel returns the results of its operator, in order, and nothing else}}
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0, %x : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// Counts are float32 sums of ones: exact up to 2^24.
func.func @too_long(%x: tensor<2x16777217xf32>, %k: tensor<2xi32>) -> tensor<2x16777217xf32> attributes {ascend.kernel} {
  // expected-error@below {{generated for a fixed row length of 1 to 1048576}}
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x16777217xf32>, tensor<2xi32>) -> tensor<2x16777217xf32>
  return %0 : tensor<2x16777217xf32>
}

// -----

func.func @dynamic_row(%x: tensor<2x?xf32>, %k: tensor<2xi32>) -> tensor<2x?xf32> attributes {ascend.kernel} {
  // expected-error@below {{generated for a fixed row length}}
  %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x?xf32>, tensor<2xi32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

func.func @producer(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> attributes {ascend.kernel} {
  %empty = tensor.empty() : tensor<2x8xf32>
  // expected-error@below {{'linalg.generic' cannot be computed inside a kernel: kernels do not compute 'math.atan'}}
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x8xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %q = math.atan %a : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
