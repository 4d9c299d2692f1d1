// RUN: jascend-opt %s --pass-pipeline='fuse-sampling,remove-dead-ops' | FileCheck %s

// CHECK-LABEL: func.func @sorted_then_filtered(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8xf32>, %[[P:.*]]: tensor<2xf32>, %[[K:.*]]: tensor<2xi32>
// CHECK-NEXT:    %[[OUT:.*]] = "ascend.apply_top_k_top_p"(%[[X]], %[[P]], %[[K]]) {operandSegmentSizes = array<i32: 1, 1, 1>, target = "ascend950"}
// CHECK-NEXT:    return %[[OUT]]
func.func @sorted_then_filtered(%x: tensor<2x8xf32>, %p: tensor<2xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %values, %indices = "ascend.sort"(%x) {descending = false} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%values, %indices, %p, %k) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, target = "ascend950"} : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<2xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// Absent operands stay absent.
// CHECK-LABEL: func.func @k_only(
// CHECK:         "ascend.apply_top_k_top_p"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 1>}
func.func @k_only(%x: tensor<?x8xf16>, %k: tensor<?xi32>) -> tensor<?x8xf16> {
  %values, %indices = "ascend.sort"(%x) {descending = false} : (tensor<?x8xf16>) -> (tensor<?x8xf16>, tensor<?x8xi32>)
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%values, %indices, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<?x8xf16>, tensor<?x8xi32>, tensor<?xi32>) -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}

// The sort stays where something else uses it; the filter does not need it any more.
// CHECK-LABEL: func.func @sorted_values_used(
// CHECK:         %[[SORT:.*]]:2 = "ascend.sort"
// CHECK:         %[[OUT:.*]] = "ascend.apply_top_k_top_p"(
// CHECK:         return %[[OUT]], %[[SORT]]#0
func.func @sorted_values_used(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %values, %indices = "ascend.sort"(%x) {descending = false} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%values, %indices, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0, %values : tensor<2x8xf32>, tensor<2x8xf32>
}

// A descending sort breaks the operator's contract: the filter means something else then.
// CHECK-LABEL: func.func @descending_not_fused(
// CHECK:         "ascend.apply_top_k_top_p_with_sorted"
func.func @descending_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %values, %indices = "ascend.sort"(%x) {descending = true} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%values, %indices, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// Indices of another sort put the values elsewhere.
// CHECK-LABEL: func.func @other_indices_not_fused(
// CHECK:         "ascend.apply_top_k_top_p_with_sorted"
func.func @other_indices_not_fused(%x: tensor<2x8xf32>, %indices: tensor<2x8xi32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %values, %own = "ascend.sort"(%x) {descending = false} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%values, %indices, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
