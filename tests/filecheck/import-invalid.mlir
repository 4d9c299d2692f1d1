// RUN: jascend-opt %s --allow-unregistered-dialect --import --split-input-file --verify-diagnostics

// All of them are reported, not the first alone.
func.func @foreign(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{unsupported operation 'stablehlo.sort': kernels compute elementwise work}}
  %0 = "stablehlo.sort"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@below {{unsupported operation 'stablehlo.while'}}
  %1 = "stablehlo.while"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @reduction(%x: tensor<2x8xf32>, %init: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@below {{unsupported operation 'linalg.generic': a reduction that does not start from 0.0}}
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x8xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %a, %acc : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// An elementwise operation that the vector unit has no instruction for.
func.func @no_such_instruction(%x: tensor<8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  // expected-error@below {{unsupported operation 'linalg.generic': kernels do not compute 'math.atan'}}
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.atan %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A permuted access is no broadcast.
func.func @transposed(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %empty = tensor.empty() : tensor<8x4xf32>
  // expected-error@below {{a result that is not in iteration order}}
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @varied_constant() -> tensor<2xf32> {
  // expected-error@below {{a constant that is not one value throughout}}
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

