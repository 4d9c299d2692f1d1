// RUN: jascend-opt %s --lower-to-tile --split-input-file | FileCheck %s

// Two rows at a time, a list for every group of 32. What is ordered by is the biased score; what is stored comes from the
// score without bias.
// CHECK-LABEL: func.func private @grouped(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: memref<?x256xbf16, "gm">, %[[BIAS:[a-z0-9]+]]: memref<?xbf16, "gm">, %[[Y:[a-z0-9]+]]: memref<?x8xbf16, "gm">, %[[IDS:[a-z0-9]+]]: memref<?x8xi32, "gm">)
// CHECK:         %[[SHARE:.*]]:4 = "tile.block_rows"
// CHECK:         %[[ROWS:.*]] = "tile.repeat"(%{{.*}}) {group = 256 : i64} : (tensor<256xf32>) -> tensor<512xf32>
// CHECK:         scf.for %[[ROW:.*]] = %[[SHARE]]#0 to %[[SHARE]]#1 step %c2
// CHECK:           "tile.load_rows"(%[[X]],{{.*}} -> tensor<512xbf16>
// CHECK:           %[[SCORES:.*]] = arith.divf
// CHECK:           %[[BIASED:.*]] = arith.addf %[[SCORES]], %[[ROWS]]
// CHECK:           %[[PAIRS:.*]] = "tile.sort"(%{{.*}}, %{{.*}}) {{.*}}run = 32 : i64} : (tensor<512xf32>, tensor<512xi32>)
// CHECK:           "tile.merge"({{.*}}) {{.*}}run = 8 : i64, ways = 4 : i64}
// CHECK:           "tile.merge"({{.*}}) {{.*}}run = 8 : i64, ways = 4 : i64}
// CHECK:           %{{.*}}:2 = "tile.unpack"
// CHECK:           "tile.gather"(%[[SCORES]],
// CHECK:           "tile.store_rows"(%{{.*}}, %[[Y]],{{.*}}) {gm_pitch = 8 : i64, pitch = 32 : i64, row_length = 8 : i64}
// CHECK:           "tile.store_rows"(%{{.*}}, %[[IDS]],
func.func private @grouped(%x: tensor<96x256xbf16>, %bias: tensor<256xbf16>) -> (tensor<96x8xbf16>, tensor<96x8xi32>) attributes {ascend.kernel} {
  %0:2 = "ascend.moe_gating_top_k"(%x, %bias) {
    k = 8 : i64, k_group = 4 : i64, group_count = 8 : i64, group_select_mode = 1 : i64, renorm = 0 : i64, norm_type = 1 : i64,
    out_flag = false, routed_scaling_factor = 2.5 : f32, eps = 1.0e-20 : f32,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<96x256xbf16>, tensor<256xbf16>) -> (tensor<96x8xbf16>, tensor<96x8xi32>)
  return %0#0, %0#1 : tensor<96x8xbf16>, tensor<96x8xi32>
}

// -----

// Hash routing does not sort. A table of 50 rows stays in the unified buffer.
// CHECK-LABEL: func.func private @hashed(
// CHECK-SAME:      %{{[a-z0-9]+}}: memref<?x64xf32, "gm">, %[[TOKENS:[a-z0-9]+]]: memref<?xi64, "gm">, %[[TABLE:[a-z0-9]+]]: memref<?x6xi32, "gm">
// CHECK:         "tile.load"(%[[TABLE]],
// CHECK:         scf.for
// CHECK:           "tile.load"(%[[TOKENS]],{{.*}} -> tensor<{{.*}}xi32>
// CHECK:           "tile.gather"
// CHECK:           "tile.gather"
// CHECK-NOT:     "tile.sort"
func.func private @hashed(%x: tensor<96x64xf32>, %tokens: tensor<96xi64>, %table: tensor<50x6xi32>) -> (tensor<96x6xf32>, tensor<96x6xi32>) attributes {ascend.kernel} {
  %0:2 = "ascend.moe_gating_top_k"(%x, %tokens, %table) {
    k = 6 : i64, k_group = 1 : i64, group_count = 1 : i64, group_select_mode = 0 : i64, renorm = 0 : i64, norm_type = 1 : i64,
    out_flag = false, routed_scaling_factor = 1.0 : f32, eps = 1.0e-20 : f32,
    operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0>
  } : (tensor<96x64xf32>, tensor<96xi64>, tensor<50x6xi32>) -> (tensor<96x6xf32>, tensor<96x6xi32>)
  return %0#0, %0#1 : tensor<96x6xf32>, tensor<96x6xi32>
}
