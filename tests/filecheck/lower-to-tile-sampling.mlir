// RUN: jascend-opt %s --lower-to-tile --split-input-file | FileCheck %s

// As many rows as cores: each is read once. A sample tells a bound; the elements that reach it are collected with their
// lanes, in chunks of 8192 and as they are; the list is closed up and sorted, 512 of it where that is all. q is read for the
// survivors.
// CHECK-LABEL: func.func private @sample(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x50257xbf16, "gm">, %[[K:[a-z0-9]+]]: memref<?xi32, "gm">, %[[P:[a-z0-9]+]]: memref<?xbf16, "gm">, %[[Q:[a-z0-9]+]]: memref<?x50257xf32, "gm">, %[[INDEX:[a-z0-9]+]]: memref<?xi32, "gm">)
// CHECK:         %[[LANE:.*]] = "tile.iota"() : () -> tensor<8192xi16>
// CHECK:         scf.for
// CHECK:           "tile.load"(%[[K]],
// CHECK:           "tile.load"(%[[P]],
// CHECK:           "tile.load_rows"(%[[X]],{{.*}} {gm_pitch = 1570 : i64, pitch = 64 : i64, row_length = 64 : i64}{{.*}} -> tensor<2048xbf16>
// CHECK:           "tile.sort"({{.*}}) {{.*}}run = 256 : i64}
// CHECK:           scf.for
// CHECK:             %[[RAW:.*]] = "tile.load"(%[[X]],{{.*}} -> tensor<8192xbf16>
// CHECK:             %[[WIDE:.*]] = arith.extf %[[RAW]]
// CHECK:             %[[REACHES:.*]] = arith.cmpf uge, %[[WIDE]],
// CHECK:             "tile.compress"(%[[RAW]], %[[REACHES]])
// CHECK:             "tile.compress"(%[[LANE]], %[[REACHES]])
// CHECK:           } {ascend.comment = "The elements that reach the bound."{{.*}}}
// CHECK:           scf.if
// CHECK:           } {ascend.comment = "Too many for the list, or too few:
// CHECK:           "tile.sort"({{.*}}) {{.*}}run = 512 : i64}
// CHECK:           "tile.sort"({{.*}}) {{.*}}run = 2048 : i64}
// CHECK:           "tile.cumsum"
// CHECK:           "tile.load"(%[[Q]],{{.*}} -> tensor<128xf32>
// CHECK:           "tile.store"(%{{.*}}, %[[INDEX]],
// CHECK-NOT:     tile.sync_all
func.func private @sample(%x: tensor<96x50257xbf16>, %k: tensor<96xi32>, %p: tensor<96xbf16>, %q: tensor<96x50257xf32>) -> tensor<96xi32> attributes {ascend.kernel} {
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p, %q) {
    eps = 1.0e-8 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64,
    top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>
  } : (tensor<96x50257xbf16>, tensor<96xi32>, tensor<96xbf16>, tensor<96x50257xf32>) -> tensor<96xi32>
  return %0 : tensor<96xi32>
}

// -----

// Without q the first element in descending order is the one: no exponentials, and no list but the short one.
// CHECK-LABEL: func.func private @greedy(
// CHECK:         "tile.load_rows"
// CHECK-NOT:     "tile.cumsum"
// CHECK:         } {ascend.comment = "The elements that reach the bound."{{.*}}}
// CHECK-NOT:     "tile.cumsum"
// CHECK-NOT:     run = 4096 : i64
// CHECK:         return
func.func private @greedy(%x: tensor<96x50257xbf16>, %k: tensor<96xi32>, %p: tensor<96xbf16>) -> tensor<96xi32> attributes {ascend.kernel} {
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p) {
    eps = 1.0e-8 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64,
    top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>
  } : (tensor<96x50257xbf16>, tensor<96xi32>, tensor<96xbf16>) -> tensor<96xi32>
  return %0 : tensor<96xi32>
}

// -----

// A short row is sorted whole, or taken as it is.
// CHECK-LABEL: func.func private @short(
// CHECK:         "tile.sort"({{.*}}) {{.*}}run = 384 : i64}
// CHECK-NOT:     "tile.sort"
// CHECK:         return
func.func private @short(%x: tensor<2x300xf16>, %k: tensor<2xi32>, %p: tensor<2xf16>, %q: tensor<2x300xf32>) -> tensor<2xi32> attributes {ascend.kernel} {
  %0 = "ascend.top_k_top_p_sample"(%x, %k, %p, %q) {
    eps = 1.0e-8 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64,
    top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>
  } : (tensor<2x300xf16>, tensor<2xi32>, tensor<2xf16>, tensor<2x300xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// Two rows for 48 cores: four cores share one. A part stays in the unified buffer, with a bound by maxima; its list goes to
// global memory, all meet, and the first core of the group merges the lists, those of 128 or those of 1024.
// CHECK-LABEL: func.func private @split(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x8192xf32, "gm">
// CHECK:         "tile.block_rows"(%{{.*}}) {parts = 4 : i64}
// CHECK:         %[[LISTS:.*]] = "tile.workspace"() {elements = 4096 : i64, name = "lists", per = "core"}
// CHECK:         "tile.load"(%[[X]],{{.*}} -> tensor<2048xf32>
// CHECK:         {ascend.comment = "Maxima over the positions that are equal mod 256."{{.*}}}
// CHECK:         "tile.store"(%{{.*}}, %[[LISTS]],
// CHECK:         "tile.sync_all"
// CHECK:         "tile.load"(%[[LISTS]],{{.*}} -> tensor<256xf32>
// CHECK:         "tile.merge_lists"
// CHECK:         "tile.load"(%[[LISTS]],{{.*}} -> tensor<2048xf32>
// CHECK:         "tile.merge_lists"
// CHECK:         return
func.func private @split(%x: tensor<2x8192xf32>, %k: tensor<2xi32>, %p: tensor<2xf32>) -> (tensor<2x8192xi32>, tensor<2x8192xf32>) attributes {ascend.kernel} {
  %0:2 = "ascend.top_k_top_p_sample"(%x, %k, %p) {
    eps = 1.0e-8 : f32, input_is_logits = true, is_need_logits = false, is_need_sample_result = true, ks_max = 1024 : i64,
    top_k_guess = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 1, 1>
  } : (tensor<2x8192xf32>, tensor<2xi32>, tensor<2xf32>) -> (tensor<2x8192xi32>, tensor<2x8192xf32>)
  return %0#0, %0#1 : tensor<2x8192xi32>, tensor<2x8192xf32>
}
