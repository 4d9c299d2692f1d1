// RUN: jascend-opt %s --lower-to-tile --split-input-file | FileCheck %s

// 50 pairs a core, 64 experts. A core sorts its pairs by expert, merges an entry for every expert in, and sorts back. Counts
// by expert go to the workspace, all meet, and every core adds those of the others up. Then rows, eight tokens at a time.
// CHECK-LABEL: func.func private @together(
// CHECK-SAME:      %[[X:.*]]: memref<?x128xf16, "gm">, %[[IDS:.*]]: memref<?x4xi32, "gm">, %[[ROWS:.*]]: memref<?x128xf16, "gm">, %[[INDEX:.*]]: memref<?xi32, "gm">, %[[COUNTS:.*]]: memref<?xi32, "gm">)
// CHECK-SAME:      ascend.fill = array<i64: 0, -1, 0>
// CHECK-SAME:      ascend.rows_of = 1 : i64
// CHECK:         %[[SHARE:.*]]:4 = "tile.block_rows"
// CHECK:         %[[TABLE:.*]] = "tile.workspace"() {elements = 128 : i64, name = "counts", per = "core"}
// CHECK:         %[[RANKS:.*]] = "tile.workspace"() {elements = 2400 : i64, name = "ranks", per = "launch"}
// CHECK:         scf.for %{{.*}} = %[[SHARE]]#0 to %[[SHARE]]#1
// CHECK:           "tile.load"(%[[IDS]],
// CHECK:           %[[ORDER:.*]] = "tile.sort"({{.*}}) {run = 64 : i64}
// CHECK:           "tile.sort"({{.*}}) {run = 64 : i64}
// CHECK:           %[[ENTRIES:.*]] = "tile.sort"({{.*}}) {run = 32 : i64} : (tensor<128xf32>
// CHECK:           "tile.merge_lists"(%[[ENTRIES]], %[[ORDER]])
// CHECK:           "tile.compress"
// CHECK:           "tile.store"(%{{.*}}, %[[RANKS]],
// CHECK:         "tile.store"(%{{.*}}, %[[TABLE]],
// CHECK:         "tile.sync_all"
// CHECK-NOT:     "tile.sync_all"
// CHECK:         "tile.load_rows"(%[[TABLE]],{{.*}} -> tensor<6144xi32>
// CHECK:         scf.if
// CHECK:           "tile.store"(%{{.*}}, %[[COUNTS]],
// CHECK:         scf.for %{{.*}} = %[[SHARE]]#0 to %[[SHARE]]#1
// CHECK:           "tile.load"(%[[RANKS]],
// CHECK:           "tile.store"(%{{.*}}, %[[INDEX]],
// The rows of the next tokens are loaded before those at hand are written.
// CHECK:           %[[FIRST:.*]] = "tile.load_rows"(%[[X]],{{.*}} -> tensor<1024xf16>
// CHECK:           scf.for {{.*}} iter_args(%[[HERE:.*]] = %[[FIRST]])
// CHECK:             %[[NEXT:.*]] = "tile.load_rows"(%[[X]],
// CHECK:             scf.for
// CHECK:               %[[ROW:.*]] = tensor.extract_slice %[[HERE]]
// CHECK:               "tile.store"(%[[ROW]], %[[ROWS]],
// CHECK:             scf.yield %[[NEXT]]
func.func private @together(%x: tensor<600x128xf16>, %ids: tensor<600x4xi32>) -> (tensor<2400x128xf16>, tensor<2400xi32>, tensor<64xi32>) attributes {ascend.kernel} {
  %0:3 = "ascend.moe_init_routing"(%x, %ids) {
    active_expert_range = array<i32: 0, 64>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 64 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64,
    row_idx_type = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<600x128xf16>, tensor<600x4xi32>) -> (tensor<2400x128xf16>, tensor<2400xi32>, tensor<64xi32>)
  return %0#0, %0#1, %0#2 : tensor<2400x128xf16>, tensor<2400xi32>, tensor<64xi32>
}

// -----

// Few pairs: every core orders all of them, none waits. One writes what is the same for all. Long rows go one at a time, and
// the index holds the pair of each row.
// CHECK-LABEL: func.func private @alone(
// CHECK-SAME:      %[[X:.*]]: memref<?x4096xbf16, "gm">, %[[IDS:.*]]: memref<?x8xi32, "gm">, %[[ROWS:.*]]: memref<?x4096xbf16, "gm">, %[[INDEX:.*]]: memref<?xi32, "gm">)
// CHECK-NOT:     "tile.workspace"
// CHECK-NOT:     "tile.sync_all"
// CHECK:         "tile.load"(%[[IDS]],{{.*}} -> tensor<128xi32>
// CHECK:         %[[BLOCKS:.*]] = "tile.broadcast"({{.*}}) {width = 8 : i64}
// CHECK:         scf.for
// CHECK:           "tile.load"(%[[X]],{{.*}} -> tensor<4096xbf16>
// CHECK:             "tile.store"(%{{.*}}, %[[ROWS]],
// CHECK:             %[[PAIR:.*]] = tensor.extract_slice %[[BLOCKS]]
// CHECK:             "tile.store"(%[[PAIR]], %[[INDEX]],
func.func private @alone(%x: tensor<9x4096xbf16>, %ids: tensor<9x8xi32>) -> (tensor<72x4096xbf16>, tensor<72xi32>) attributes {ascend.kernel} {
  %0:2 = "ascend.moe_init_routing"(%x, %ids) {
    active_expert_range = array<i32: 2, 6>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 64 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64,
    row_idx_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0>
  } : (tensor<9x4096xbf16>, tensor<9x8xi32>) -> (tensor<72x4096xbf16>, tensor<72xi32>)
  return %0#0, %0#1 : tensor<72x4096xbf16>, tensor<72xi32>
}

// -----

// Codes are made of four tokens at a time, an iteration before they are written: the loop carries the rows of the next tokens,
// and codes and scales of these.
// CHECK-LABEL: func.func private @codes(
// CHECK-SAME:      %[[X:.*]]: memref<?x2048xbf16, "gm">, %{{.*}}: memref<?x2xi32, "gm">, %[[ROWS:.*]]: memref<?x2048xi8, "gm">, %{{.*}}: memref<?xi32, "gm">, %[[SCALES:.*]]: memref<?xf32, "gm">)
// CHECK:         %[[FIRST:.*]] = "tile.quantize"(%{{.*}}) {ascend.ahead} : (tensor<8192xf32>) -> tensor<8192xi8>
// CHECK:         %[[SECOND:.*]] = "tile.load_rows"(%[[X]],{{.*}} -> tensor<8192xbf16>
// CHECK:         scf.for {{.*}} iter_args(%[[NEXT:.*]] = %[[SECOND]], %[[CODES:.*]] = %[[FIRST]], %[[OF:.*]] = %{{.*}})
// CHECK:           %[[AFTER:.*]] = "tile.load_rows"(%[[X]],
// CHECK:           arith.extf %[[NEXT]]
// CHECK:           "tile.reduce"({{.*}}) {group = 2048 : i64, kind = "max"}
// CHECK:           %[[MADE:.*]] = "tile.quantize"(%{{.*}}) {ascend.ahead}
// CHECK:             tensor.extract_slice %[[CODES]]
// CHECK:             "tile.store"(%{{.*}}, %[[ROWS]],
// CHECK:             tensor.extract_slice %[[OF]]
// CHECK:             "tile.store"(%{{.*}}, %[[SCALES]],
// CHECK:           scf.yield %[[AFTER]], %[[MADE]],
func.func private @codes(%x: tensor<96x2048xbf16>, %ids: tensor<96x2xi32>) -> (tensor<192x2048xi8>, tensor<192xi32>, tensor<192xf32>) attributes {ascend.kernel} {
  %0:3 = "ascend.moe_init_routing"(%x, %ids) {
    active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 8 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, quant_mode = 1 : i64,
    row_idx_type = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 1>
  } : (tensor<96x2048xbf16>, tensor<96x2xi32>) -> (tensor<192x2048xi8>, tensor<192xi32>, tensor<192xf32>)
  return %0#0, %0#1, %0#2 : tensor<192x2048xi8>, tensor<192xi32>, tensor<192xf32>
}

// -----

// Groups of 32: the bits of bfloat16 magnitudes, as whole numbers, have the largest one of each group, four blocks of eight lanes
// on top of each other. From its bits comes the power of two, the inverse of which all values of the group are multiplied with.
// CHECK-LABEL: func.func private @groups(
// CHECK-SAME:      %[[X:.*]]: memref<?x1024xbf16, "gm">, %{{.*}}: memref<?x2xi32, "gm">, %[[ROWS:.*]]: memref<?x1024xf8E4M3FN, "gm">, %{{.*}}: memref<?xi32, "gm">, %[[SCALES:.*]]: memref<?x32xf8E8M0FNU, "gm">)
// CHECK:         %[[ROW:.*]] = "tile.load_rows"(%[[X]],
// CHECK:         arith.bitcast %[[ROW]] : tensor<8192xbf16> to tensor<8192xi16>
// CHECK-COUNT-4: "tile.take"({{.*}}) {count = 8 : i64, group = 32 : i64
// CHECK:         "tile.reduce"({{.*}}) {group = 8 : i64, kind = "max"} : (tensor<2048xf32>) -> tensor<256xf32>
// CHECK:         "tile.quantize"({{.*}}) {ascend.ahead} : (tensor<256xf32>) -> tensor<256xf8E8M0FNU>
// CHECK:         "tile.broadcast"({{.*}}) {width = 32 : i64}
// CHECK:         "tile.quantize"({{.*}}) {ascend.ahead} : (tensor<8192xf32>) -> tensor<8192xf8E4M3FN>
// CHECK:         scf.for
// CHECK:             "tile.store"(%{{.*}}, %[[ROWS]],
// CHECK:             tensor.extract_slice %{{.*}} : tensor<256xf8E8M0FNU> to tensor<32xf8E8M0FNU>
// CHECK:             "tile.store"(%{{.*}}, %[[SCALES]],
func.func private @groups(%x: tensor<96x1024xbf16>, %ids: tensor<96x2xi32>) -> (tensor<192x1024xf8E4M3FN>, tensor<192xi32>, tensor<192x32xf8E8M0FNU>) attributes {ascend.kernel} {
  %0:3 = "ascend.moe_init_routing"(%x, %ids) {
    active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 8 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, quant_mode = 3 : i64,
    row_idx_type = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 1>
  } : (tensor<96x1024xbf16>, tensor<96x2xi32>) -> (tensor<192x1024xf8E4M3FN>, tensor<192xi32>, tensor<192x32xf8E8M0FNU>)
  return %0#0, %0#1, %0#2 : tensor<192x1024xf8E4M3FN>, tensor<192xi32>, tensor<192x32xf8E8M0FNU>
}

// -----

// Any number of tokens. Up to 127 of them, of eight experts each, are less than a run of 1024 pairs, and every core orders all; of
// more, cores meet. Scratch is that of each token. What is read at once is no more than there is, and a place that no token fills
// is zeros. The first core writes what is the same for all, since there may be no tokens. 9 rows are written at most.
// CHECK-LABEL: func.func private @any_tokens(
// CHECK-SAME:      ascend.any_rows = 0 : i64
// CHECK-SAME:      ascend.rows_of = 1 : i64
// CHECK:         %[[TOKENS:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<?x8xi32, "gm">
// CHECK:         %[[FEW:.*]] = arith.cmpi sle, %[[TOKENS]], %c127 : index
// CHECK-NEXT:    scf.if %[[FEW]] {
// CHECK-NOT:       "tile.workspace"
// CHECK-NOT:       "tile.sync_all"
// CHECK:           %[[AT_ONCE:.*]] = arith.minsi %[[TOKENS]], %{{.*}} : index
// CHECK:           %[[LAST:.*]] = arith.subi %[[TOKENS]], %[[AT_ONCE]] : index
// CHECK:           %[[PAIRS:.*]] = arith.muli %[[TOKENS]], %{{.*}} : index
// CHECK:           "tile.load"(%{{.*}}, %{{.*}}, %[[PAIRS]]){{.*}} -> tensor<1024xi32>
// CHECK:           %[[CORE:.*]]:2 = "tile.core"
// CHECK:           %[[WRITES:.*]] = arith.cmpi eq, %[[CORE]]#0, %c0 : index
// CHECK:           scf.if %[[WRITES]]
// CHECK:           arith.minsi %{{.*}}, %[[LAST]] : index
// CHECK:           "tile.load_rows"(%{{.*}}, %{{.*}}, %[[AT_ONCE]]) {{.*}}pad = 0.000000e+00
// CHECK:         } else {
// CHECK:           "tile.workspace"() {elements = 128 : i64, name = "counts", per = "core"}
// CHECK:           "tile.workspace"() {elements = 8 : i64, name = "ranks", per = "row"}
// CHECK:           "tile.sync_all"
// CHECK:           arith.cmpi slt, %{{.*}}, %c9 : index
// CHECK:         return
func.func private @any_tokens(%x: tensor<?x128xf32>, %ids: tensor<?x8xi32>, %scale: tensor<1xf32>, %offset: tensor<1xf32>) -> (tensor<?x128xi8>, tensor<?xi32>, tensor<64xi32>) attributes {ascend.kernel} {
  %0:3 = "ascend.moe_init_routing"(%x, %ids, %scale, %offset) {
    active_expert_range = array<i32: 0, 64>, active_num = 9 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 64 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, quant_mode = 0 : i64,
    row_idx_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 0>
  } : (tensor<?x128xf32>, tensor<?x8xi32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<?x128xi8>, tensor<?xi32>, tensor<64xi32>)
  return %0#0, %0#1, %0#2 : tensor<?x128xi8>, tensor<?xi32>, tensor<64xi32>
}
