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

// All stages off: what is drawn from filtered rows is drawn by the filter. Of q the sampler takes the absolute value.
// CHECK-LABEL: func.func @filtered_then_drawn(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8xf32>, %[[P:.*]]: tensor<2xf32>, %[[K:.*]]: tensor<2xi32>, %[[Q:.*]]: tensor<2x8xf32>
// CHECK:         %[[ABS:.*]] = linalg.generic {{.*}} ins(%[[Q]] : tensor<2x8xf32>)
// CHECK:           math.absf
// CHECK:         %[[INDEX:.*]] = "ascend.filter_sample"(%[[X]], %[[ABS]], %[[P]], %[[K]]) {eps = 1.250000e-01 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, target = "ascend910b"}
// CHECK-NEXT:    return %[[INDEX]]
func.func @filtered_then_drawn(%x: tensor<2x8xf32>, %p: tensor<2xf32>, %k: tensor<2xi32>, %q: tensor<2x8xf32>) -> tensor<2xi32> {
  %off = arith.constant dense<0> : tensor<2xi32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %empty = tensor.empty() : tensor<2xf32>
  %ones = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%one : tensor<f32>) outs(%empty : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %p, %k) {operandSegmentSizes = array<i32: 1, 1, 1>, target = "ascend910b"} : (tensor<2x8xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%rows, %off, %ones, %q) {eps = 0.125 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// A batch of any size; without p.
// CHECK-LABEL: func.func @any_batch(
// CHECK:         "ascend.filter_sample"(%{{.*}}, %{{.*}}, %{{.*}}) {eps = 0.000000e+00 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>}
func.func @any_batch(%x: tensor<?x8xf16>, %k: tensor<?xi32>, %q: tensor<?x8xf32>, %batch: index) -> tensor<?xi64> {
  %off = arith.constant 0 : i32
  %one = arith.constant 1.0 : f16
  %ks = tensor.empty(%batch) : tensor<?xi32>
  %ps = tensor.empty(%batch) : tensor<?xf16>
  %offs = linalg.fill ins(%off : i32) outs(%ks : tensor<?xi32>) -> tensor<?xi32>
  %ones = linalg.fill ins(%one : f16) outs(%ps : tensor<?xf16>) -> tensor<?xf16>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<?x8xf16>, tensor<?xi32>) -> tensor<?x8xf16>
  %0 = "ascend.top_k_top_p_sample"(%rows, %offs, %ones, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<?x8xf16>, tensor<?xi32>, tensor<?xf16>, tensor<?x8xf32>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}

// With a top-k of its own, the sampler breaks ties in another way and takes q by rank.
// CHECK-LABEL: func.func @own_top_k_not_fused(
// CHECK:         "ascend.apply_top_k_top_p"
// CHECK:         "ascend.top_k_top_p_sample"
func.func @own_top_k_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>, %q: tensor<2x8xf32>) -> tensor<2xi32> {
  %ones = arith.constant dense<1.0> : tensor<2xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%rows, %k, %ones, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// So with a top-p.
// CHECK-LABEL: func.func @own_top_p_not_fused(
// CHECK:         "ascend.top_k_top_p_sample"
func.func @own_top_p_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>, %q: tensor<2x8xf32>) -> tensor<2xi32> {
  %off = arith.constant dense<0> : tensor<2xi32>
  %half = arith.constant dense<0.5> : tensor<2xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%rows, %off, %half, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// Without q the largest probability is chosen, which filter_sample does not.
// CHECK-LABEL: func.func @greedy_not_fused(
// CHECK:         "ascend.top_k_top_p_sample"
func.func @greedy_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>) -> tensor<2xi32> {
  %off = arith.constant dense<0> : tensor<2xi32>
  %ones = arith.constant dense<1.0> : tensor<2xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%rows, %off, %ones) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// The filtered rows are written for somebody else too: filtering again would not spare it.
// CHECK-LABEL: func.func @rows_needed_not_fused(
// CHECK:         "ascend.top_k_top_p_sample"
func.func @rows_needed_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>, %q: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2xi32>) {
  %off = arith.constant dense<0> : tensor<2xi32>
  %ones = arith.constant dense<1.0> : tensor<2xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%rows, %off, %ones, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %rows, %0 : tensor<2x8xf32>, tensor<2xi32>
}

// The unsorted rows are there: nobody needs the sorted ones.
// CHECK-LABEL: func.func @with_logits(
// CHECK-NEXT:    %[[OUT:.*]] = "ascend.apply_top_k_top_p"(%arg2, %arg3)
// CHECK-NEXT:    return %[[OUT]]
func.func @with_logits(%v: tensor<2x8xf32>, %i: tensor<2x8xi32>, %x: tensor<2x8xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%v, %i, %k, %x) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 1>} : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<2xi32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// Numbers that are drawn for nothing else are drawn inside.
// CHECK-LABEL: func.func @numbers_drawn_inside(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8xf32>, %[[K:.*]]: tensor<2xi32>, %[[KEY:.*]]: tensor<2x2xi32>
// CHECK:         %[[INDEX:.*]] = "ascend.filter_sample"(%[[X]], %[[K]], %[[KEY]]) {counts = "array", draw = "gumbel", eps = 0.000000e+00 : f32, low = 1.17549435E-38 : f32, operandSegmentSizes = array<i32: 1, 0, 0, 1, 1>}
// CHECK-NEXT:    return %[[INDEX]]
func.func @numbers_drawn_inside(%x: tensor<2x8xf32>, %k: tensor<2xi32>, %key: tensor<2x2xi32>) -> tensor<2xi32> {
  %off = arith.constant dense<0> : tensor<2xi32>
  %one = arith.constant dense<1.0> : tensor<2xf32>
  %q = "ascend.random_exponential"(%key) {length = 8 : i64, draw = "gumbel", low = 1.17549435E-38 : f32, counts = "array"} : (tensor<2x2xi32>) -> tensor<2x8xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%rows, %off, %one, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, top_k_guess = 32 : i64} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// Numbers that something else needs are there, and read where the filter keeps something.
// CHECK-LABEL: func.func @numbers_used_twice(
// CHECK:         %[[Q:.*]] = "ascend.random_exponential"
// CHECK:         "ascend.filter_sample"({{.*}}) {eps = 0.000000e+00 : f32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>}
// CHECK-NEXT:    return %{{.*}}, %[[Q]]
func.func @numbers_used_twice(%x: tensor<2x8xf32>, %k: tensor<2xi32>, %key: tensor<2x2xi32>) -> (tensor<2xi32>, tensor<2x8xf32>) {
  %off = arith.constant dense<0> : tensor<2xi32>
  %one = arith.constant dense<1.0> : tensor<2xf32>
  %q = "ascend.random_exponential"(%key) {length = 8 : i64, draw = "gumbel", low = 1.17549435E-38 : f32, counts = "array"} : (tensor<2x2xi32>) -> tensor<2x8xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%rows, %off, %one, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, top_k_guess = 32 : i64} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0, %q : tensor<2xi32>, tensor<2x8xf32>
}

// Without a filter the draw makes its numbers itself, for all elements.
// CHECK-LABEL: func.func @numbers_drawn_for_all(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8xf32>, %[[KEY:.*]]: tensor<2x2xi32>
// CHECK:         %[[INDEX:.*]] = "ascend.filter_sample"(%[[X]], %[[KEY]]) {counts = "row", draw = "gumbel", eps = 0.000000e+00 : f32, low = 1.17549435E-38 : f32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>}
// CHECK-NEXT:    return %[[INDEX]]
func.func @numbers_drawn_for_all(%x: tensor<2x8xf32>, %key: tensor<2x2xi32>) -> tensor<2xi32> {
  %off = arith.constant dense<0> : tensor<2xi32>
  %one = arith.constant dense<1.0> : tensor<2xf32>
  %q = "ascend.random_exponential"(%key) {length = 8 : i64, draw = "gumbel", low = 1.17549435E-38 : f32, counts = "row"} : (tensor<2x2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%x, %off, %one, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, top_k_guess = 32 : i64} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// A top-k that may be on takes its numbers by rank.
// CHECK-LABEL: func.func @numbers_by_rank_not_fused(
// CHECK:         "ascend.random_exponential"
// CHECK:         "ascend.top_k_top_p_sample"
func.func @numbers_by_rank_not_fused(%x: tensor<2x8xf32>, %k: tensor<2xi32>, %key: tensor<2x2xi32>) -> tensor<2xi32> {
  %one = arith.constant dense<1.0> : tensor<2xf32>
  %q = "ascend.random_exponential"(%key) {length = 8 : i64, draw = "gumbel", low = 1.17549435E-38 : f32, counts = "row"} : (tensor<2x2xi32>) -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %one, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, top_k_guess = 32 : i64} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// A filter of bfloat16, whose rows are widened for the draw.
// CHECK-LABEL: func.func @widened_between(
// CHECK-SAME:      %[[X:.*]]: tensor<2x8xbf16>
// CHECK:         "ascend.filter_sample"(%[[X]],
#rows = affine_map<(i, j) -> (i, j)>
func.func @widened_between(%x: tensor<2x8xbf16>, %k: tensor<2xi32>, %q: tensor<2x8xf32>) -> tensor<2xi32> {
  %off = arith.constant dense<0> : tensor<2xi32>
  %one = arith.constant dense<1.0> : tensor<2xf32>
  %rows = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<2x8xbf16>, tensor<2xi32>) -> tensor<2x8xbf16>
  %empty = tensor.empty() : tensor<2x8xf32>
  %wide = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<2x8xbf16>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %y = arith.extf %in : bf16 to f32
    linalg.yield %y : f32
  } -> tensor<2x8xf32>
  %0 = "ascend.top_k_top_p_sample"(%wide, %off, %one, %q) {eps = 0.0 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, top_k_guess = 32 : i64} : (tensor<2x8xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x8xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
