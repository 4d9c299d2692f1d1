// RUN: jascend-opt %s --pass-pipeline='fold-scalars,func.func(canonicalize)' | FileCheck %s

// Work on what is known is folded.
// CHECK-LABEL: func.func @known(
// CHECK-NEXT:    %[[C:.*]] = arith.constant dense<6.000000e+00> : tensor<f32>
// CHECK-NEXT:    return %[[C]]
func.func @known() -> tensor<f32> {
  %c = arith.constant dense<4.0> : tensor<f32>
  %two = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%c : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %in, %two : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// What is not stays where kernels compute it.
// CHECK-LABEL: func.func @unknown(
// CHECK:         linalg.generic
func.func @unknown(%c: tensor<f32>) -> tensor<f32> {
  %empty = tensor.empty() : tensor<f32>
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%c : tensor<f32>) outs(%empty : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}
