// RUN: jascend-opt %s --lower-to-tile --split-input-file | FileCheck %s

// A core gates its tokens, two at a time, and orders the pairs of what it chose, which it has at hand. Only if it has more
// tokens are they put aside. Counts go to the workspace, all meet once, and rows go where they belong.
// CHECK-LABEL: func.func private @together(
// CHECK-SAME:      %[[L:.*]]: memref<?x64xf32, "gm">, %[[X:.*]]: memref<?x128xf16, "gm">, %[[Y:.*]]: memref<?x8xf32, "gm">, %[[ROWS:.*]]: memref<?x128xf16, "gm">, %[[INDEX:.*]]: memref<?xi32, "gm">, %[[COUNTS:.*]]: memref<?xi32, "gm">)
// CHECK-SAME:      ascend.fill = array<i64: 0, 0, -1, 0>
// CHECK-SAME:      ascend.rows_of = 1 : i64
// CHECK:         %[[SHARE:.*]]:4 = "tile.block_rows"
// CHECK:         %[[TABLE:.*]] = "tile.workspace"() {elements = 128 : i64, name = "counts", per = "core"}
// CHECK:         %[[OWN:.*]] = arith.subi %[[SHARE]]#1, %[[SHARE]]#0
// CHECK:         %[[SEVERAL:.*]] = arith.cmpi sgt, %[[OWN]],
// CHECK:         %[[EXPERTS:.*]] = "tile.workspace"() {elements = 400 : i64, name = "experts", per = "launch"}
// CHECK:         %[[KEPT:.*]]:3 = scf.for %{{.*}} = %[[SHARE]]#0 to %[[SHARE]]#1
// CHECK:           "tile.load_rows"(%[[L]],{{.*}} -> tensor<128xf32>
// CHECK:           "tile.store_rows"(%{{.*}}, %[[Y]],
// CHECK:           "tile.sort"({{.*}}) {run = 64 : i64}
// CHECK:           "tile.merge_lists"
// CHECK:           scf.if %[[SEVERAL]]
// CHECK:             "tile.store"(%{{.*}}, %[[EXPERTS]],
// CHECK:         "tile.store"(%[[KEPT]]#0, %[[TABLE]],
// CHECK:         "tile.sync_all"
// CHECK-NOT:     "tile.sync_all"
// CHECK:         "tile.load_rows"(%[[TABLE]],
// CHECK:         scf.if
// CHECK:           "tile.store"(%{{.*}}, %[[COUNTS]],
// CHECK:         scf.for %{{.*}} = %[[SHARE]]#0 to %[[SHARE]]#1
// CHECK:           scf.if %[[SEVERAL]]
// CHECK:             "tile.load"(%[[EXPERTS]],
// CHECK:           else
// CHECK:             scf.yield %[[KEPT]]#1, %[[KEPT]]#2
// CHECK:           "tile.store"(%{{.*}}, %[[INDEX]],
// CHECK:           "tile.load_rows"(%[[X]],
// CHECK:             "tile.store"(%{{.*}}, %[[ROWS]],
func.func private @together(%l: tensor<50x64xf32>, %x: tensor<50x128xf16>) -> (tensor<50x8xf32>, tensor<400x128xf16>, tensor<400xi32>, tensor<64xi32>) attributes {ascend.kernel} {
  %0:4 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 8 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 64 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 1, 1, 1, 0>
  } : (tensor<50x64xf32>, tensor<50x128xf16>) -> (tensor<50x8xf32>, tensor<400x128xf16>, tensor<400xi32>, tensor<64xi32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<50x8xf32>, tensor<400x128xf16>, tensor<400xi32>, tensor<64xi32>
}

// -----

// Few tokens: every core gates all of them, none waits. The last one writes what gating gives. Three experts a token take a
// whole block of lanes each, until they are gathered.
// CHECK-LABEL: func.func private @alone(
// CHECK-SAME:      %[[L:.*]]: memref<?x64xf32, "gm">, %[[X:.*]]: memref<?x128xf16, "gm">, %[[Y:.*]]: memref<?x3xf32, "gm">, %[[IDS:.*]]: memref<?x3xi32, "gm">
// CHECK-NOT:     "tile.workspace"
// CHECK-NOT:     "tile.sync_all"
// CHECK:         %[[LAST:.*]] = arith.andi
// CHECK:         "tile.load_rows"(%[[L]],{{.*}} -> tensor<384xf32>
// CHECK:         scf.if %[[LAST]]
// CHECK:           "tile.store_rows"(%{{.*}}, %[[Y]],
// CHECK:           "tile.store_rows"(%{{.*}}, %[[IDS]],
// CHECK:         tensor.insert_slice %{{.*}} into %{{.*}} : tensor<48xi32> into tensor<64xi32>
// CHECK:         "tile.gather"
// CHECK:         "tile.sort"({{.*}}) {run = 64 : i64}
func.func private @alone(%l: tensor<5x64xf32>, %x: tensor<5x128xf16>) -> (tensor<5x3xf32>, tensor<5x3xi32>, tensor<15x128xf16>, tensor<15xi32>) attributes {ascend.kernel} {
  %0:4 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 3 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 64 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 1, 1, 0, 0>
  } : (tensor<5x64xf32>, tensor<5x128xf16>) -> (tensor<5x3xf32>, tensor<5x3xi32>, tensor<15x128xf16>, tensor<15xi32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<5x3xf32>, tensor<5x3xi32>, tensor<15x128xf16>, tensor<15xi32>
}

// -----

// Any number of tokens: every core gates up to 16, and cores meet for more; scratch is that of each token.
// CHECK-LABEL: func.func private @any_tokens(
// CHECK-SAME:      ascend.any_rows
// CHECK:         arith.cmpi sle, %{{.*}}, %c16 : index
// CHECK:         scf.if
// CHECK-NOT:       "tile.sync_all"
// CHECK:           "tile.sort"({{.*}}) {run = 64 : i64}
// CHECK:         } else {
// CHECK:           "tile.workspace"() {elements = 8 : i64, name = "experts", per = "row"}
// CHECK:           "tile.workspace"() {elements = 8 : i64, name = "ranks", per = "row"}
// CHECK:           "tile.sync_all"
func.func private @any_tokens(%l: tensor<?x64xf32>, %x: tensor<?x128xf16>) -> (tensor<?x3xf32>, tensor<?x128xf16>, tensor<?xi32>) attributes {ascend.kernel} {
  %0:3 = "ascend.moe_gating_routing"(%l, %x) {
    eps = 0.0 : f32, group_count = 1 : i64, group_select_mode = 0 : i64, k = 3 : i64, k_group = 1 : i64, norm_type = 1 : i64,
    out_flag = false, renorm = 0 : i64, routed_scaling_factor = 1.0 : f32,
    active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 64 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64, row_idx_type = 0 : i64,
    operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 1, 1, 0, 0>
  } : (tensor<?x64xf32>, tensor<?x128xf16>) -> (tensor<?x3xf32>, tensor<?x128xf16>, tensor<?xi32>)
  return %0#0, %0#1, %0#2 : tensor<?x3xf32>, tensor<?x128xf16>, tensor<?xi32>
}
