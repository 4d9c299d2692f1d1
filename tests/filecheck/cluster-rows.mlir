// RUN: jascend-opt %s --cluster-rows --split-input-file | FileCheck %s

// What the program returns is in memory: it gets a kernel of its own, and the operator reads it.
// CHECK-LABEL: func.func @returned(
// CHECK:         %[[S:.*]] = linalg.generic
// CHECK:         %[[OUT:.*]] = "ascend.row_wise"(%[[S]]) : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK:         %[[F:.*]] = "ascend.apply_top_k_top_p"(%[[OUT]],
// CHECK:         return %[[OUT]], %[[F]]
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @returned(%x: tensor<2x8xf32>, %t: tensor<2xf32>, %k: tensor<2xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %empty = tensor.empty() : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<2x8xf32>, tensor<2xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %s, %0 : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// An operator's kernel cannot reduce its rows; it computes the division.
// CHECK-LABEL: func.func @reduced(
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}}"reduction"
// CHECK:         %[[OUT:.*]] = "ascend.row_wise"(%[[SUM]]) : (tensor<2xf32>) -> tensor<2xf32>
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[OUT]]
// CHECK-NOT:     "ascend.row_wise"
// CHECK:         "ascend.apply_top_k_top_p"(%[[S]],
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @reduced(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %sums = tensor.empty() : tensor<2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sums : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x8xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2xf32>
  %empty = tensor.empty() : tensor<2x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<2x8xf32>, tensor<2xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// What only an operator takes stays with it; arguments are in memory, and so are reshapes of them.
// CHECK-LABEL: func.func @nothing_to_do(
// CHECK-NOT:     "ascend.row_wise"
func.func @nothing_to_do(%x: tensor<2x2x4xf32>, %k: tensor<2xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %s = tensor.collapse_shape %x [[0], [1, 2]] : tensor<2x2x4xf32> into tensor<2x8xf32>
  %0 = "ascend.apply_top_k_top_p"(%s, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %s, %0 : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// One value has no rows: it is written as one of one element.
// CHECK-LABEL: func.func @scalar(
// CHECK:         %[[ONE:.*]] = tensor.expand_shape %{{.*}} [] output_shape [1]
// CHECK:         %[[OUT:.*]] = "ascend.row_wise"(%[[ONE]]) : (tensor<1xf32>) -> tensor<1xf32>
// CHECK:         %[[R:.*]] = tensor.collapse_shape %[[OUT]] []
// CHECK:         return %[[R]]
func.func @scalar(%x: tensor<8xf32>) -> tensor<f32> {
  %low = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %max = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<8xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.maximumf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<f32>
  return %max : tensor<f32>
}

// -----

// What is computed and set side by side is one row of one kernel; a library joins what is in memory.
// CHECK-LABEL: func.func @side_by_side(
// CHECK:         %[[N:.*]] = linalg.generic
// CHECK:         %[[JOINED:.*]] = tensor.concat dim(1) %[[N]], %arg1
// CHECK:         "ascend.row_wise"(%[[JOINED]])
// CHECK-NOT:     "ascend.row_wise"
// CHECK:         "ascend.library_call"(%arg0, %arg1) {callee = "aclnnCat"
func.func @side_by_side(%x: tensor<8x4xf32>, %y: tensor<8x3xf32>) -> (tensor<8x7xf32>, tensor<8x7xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.negf %a : f32
    linalg.yield %q : f32
  } -> tensor<8x4xf32>
  %0 = "ascend.library_call"(%n, %y) {callee = "aclnnCat", dims = array<i32: 1>, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<8x7xf32>
  %1 = "ascend.library_call"(%x, %y) {callee = "aclnnCat", dims = array<i32: 1>, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<8x7xf32>
  return %0, %1 : tensor<8x7xf32>, tensor<8x7xf32>
}

// -----

// A matrix of those that are stacked is in memory as it is; half of a row of each is not.
// CHECK-LABEL: func.func @stacked(
// CHECK:         %[[SECOND:.*]] = tensor.extract_slice %arg1[1, 0, 0]
// CHECK-NEXT:    %[[MATRIX:.*]] = tensor.collapse_shape %[[SECOND]]
// CHECK:         %[[HALF:.*]] = "ascend.row_wise"
// CHECK:         "ascend.library_call"(%[[HALF]], %[[MATRIX]])
func.func @stacked(%x: tensor<8x16xf32>, %w: tensor<2x8x4xf32>) -> tensor<8x4xf32> {
  %0 = tensor.extract_slice %w[1, 0, 0] [1, 8, 4] [1, 1, 1] : tensor<2x8x4xf32> to tensor<1x8x4xf32>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<1x8x4xf32> into tensor<8x4xf32>
  %2 = tensor.extract_slice %x[0, 8] [8, 8] [1, 1] : tensor<8x16xf32> to tensor<8x8xf32>
  %3 = "ascend.library_call"(%2, %1) {callee = "aclnnMatmul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// A sum that is returned beside what is computed from it: one kernel gives both.
// CHECK-LABEL: func.func @residual(
// CHECK:         %[[SUM:.*]] = linalg.generic
// CHECK:         %[[EXP:.*]] = linalg.generic
// CHECK:         %[[BOTH:.*]]:2 = "ascend.row_wise_pair"(%[[EXP]], %[[SUM]])
// CHECK-NEXT:    return %[[BOTH]]#1, %[[BOTH]]#0
#same = affine_map<(i, j) -> (i, j)>
func.func @residual(%x: tensor<8x4xf32>, %r: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %sum = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<8x4xf32>, tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.addf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<8x4xf32>
  %exp = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<8x4xf32>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %q = math.exp %a : f32
    linalg.yield %q : f32
  } -> tensor<8x4xf32>
  return %sum, %exp : tensor<8x4xf32>, tensor<8x4xf32>
}
