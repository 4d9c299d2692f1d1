// RUN: jascend-opt %s --pass-pipeline='call-libraries' | FileCheck %s

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#middle = affine_map<(d0, d1, d2) -> (d0, d2)>
#two = affine_map<(d0, d1, d2) -> (d2)>
#last = affine_map<(d0, d1, d2) -> (d0, d1)>
#turned = affine_map<(d0, d1, d2) -> (d2, d0)>

// CHECK-LABEL: func.func @over_rows(
// CHECK-SAME:      %[[X:.*]]: tensor<4x8x6xf32>
// CHECK:         %[[SUM:.*]] = "ascend.library_call"(%[[X]]) {callee = "aclnnReduceSum", dims = array<i32: 0, 1>,
// CHECK-NEXT:    return %[[SUM]]
func.func @over_rows(%x: tensor<4x8x6xf32>) -> tensor<6xf32> {
  %zero = arith.constant dense<0.0> : tensor<6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #two], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : tensor<4x8x6xf32>) outs(%zero : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %b, %a : f32
    linalg.yield %1 : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// Integers: also along the last axis.
// CHECK-LABEL: func.func @largest_integers(
// CHECK:         "ascend.library_call"(%{{.*}}) {callee = "aclnnAmax", dims = array<i32: 2>,
func.func @largest_integers(%x: tensor<4x8x6xi32>) -> tensor<4x8xi32> {
  %least = arith.constant dense<-2147483648> : tensor<4x8xi32>
  %0 = linalg.generic {indexing_maps = [#id, #last], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x8x6xi32>) outs(%least : tensor<4x8xi32>) {
  ^bb0(%a: i32, %b: i32):
    %1 = arith.maxsi %b, %a : i32
    linalg.yield %1 : i32
  } -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}

// A row's own reduction stays: it is computed with the row.
// CHECK-LABEL: func.func @along_rows_noop(
// CHECK-NOT:     library_call
func.func @along_rows_noop(%x: tensor<4x8x6xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #last], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x8x6xf32>) outs(%zero : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %b, %a : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// One that starts from something else is no sum.
// CHECK-LABEL: func.func @from_one_noop(
// CHECK-NOT:     library_call
func.func @from_one_noop(%x: tensor<4x8x6xf32>) -> tensor<4x6xf32> {
  %one = arith.constant dense<1.0> : tensor<4x6xf32>
  %0 = linalg.generic {indexing_maps = [#id, #middle], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<4x8x6xf32>) outs(%one : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %b, %a : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// Nor does the library turn the result around.
// CHECK-LABEL: func.func @transposed_noop(
// CHECK-NOT:     library_call
func.func @transposed_noop(%x: tensor<4x8x6xf32>) -> tensor<6x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<4x8x6xf32>) outs(%zero : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %b, %a : f32
    linalg.yield %1 : f32
  } -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// Products go one dimension after another, the last one first.
// CHECK-LABEL: func.func @products(
// CHECK-SAME:      %[[X:.*]]: tensor<4x8x6xf32>)
// CHECK:         %[[ROWS:.*]] = "ascend.library_call"(%[[X]]) {callee = "aclnnProdDim", dims = array<i32: 2>, {{.*}}} : (tensor<4x8x6xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[ALL:.*]] = "ascend.library_call"(%[[ROWS]]) {callee = "aclnnProdDim", dims = array<i32: 1>, {{.*}}} : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK-NEXT:    return %[[ALL]]
func.func @products(%x: tensor<4x8x6xf32>) -> tensor<4xf32> {
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (i)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x8x6xf32>) outs(%one : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %b, %a : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// That of bfloat16 is left, as the library has none.
// CHECK-LABEL: func.func @products_of_bf16_noop(
// CHECK-NOT:     library_call
func.func @products_of_bf16_noop(%x: tensor<4x8xbf16>) -> tensor<4xbf16> {
  %one = arith.constant dense<1.0> : tensor<4xbf16>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%one : tensor<4xbf16>) {
  ^bb0(%a: bf16, %b: bf16):
    %1 = arith.mulf %b, %a : bf16
    linalg.yield %1 : bf16
  } -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
