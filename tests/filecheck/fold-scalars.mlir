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

// A number that all elements are divided by moves to where the guard against 0 is, which folds.
// CHECK-LABEL: func.func @divided(
// CHECK:         %[[SEVEN:.*]] = arith.constant 7 : i32
// CHECK-NOT:     arith.cmpi
// CHECK:         arith.divsi %{{.*}}, %[[SEVEN]] : i32
func.func @divided(%x: tensor<8xi32>) -> tensor<8xi32> {
  %seven = arith.constant dense<7> : tensor<8xi32>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %empty = tensor.empty() : tensor<8xi32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %seven : tensor<8xi32>, tensor<8xi32>) outs(%empty : tensor<8xi32>) {
  ^bb0(%a: i32, %b: i32, %out: i32):
    %isZero = arith.cmpi eq, %b, %zero : i32
    %divisor = arith.select %isZero, %one, %b : i32
    %q = arith.divsi %a, %divisor : i32
    linalg.yield %q : i32
  } -> tensor<8xi32>
  return %0 : tensor<8xi32>
}
