// RUN: jascend-opt %s --lower-to-tile --split-input-file | FileCheck %s
// RUN: jascend-opt %s --lower-to-tile='tile=1024' --split-input-file | FileCheck %s --check-prefix=SMALL

// A row that fits is loaded once; its weights, the same for all rows, once a core.
// CHECK-LABEL: func.func @weighted_sum(
// CHECK-SAME:      %[[X:.*]]: memref<?x1536xf32, "gm">, %[[W:.*]]: memref<?xf32, "gm">, %[[OUT:.*]]: memref<?x1536xf32, "gm">)
// CHECK:         "tile.load"(%[[W]],
// CHECK:         scf.for
// CHECK:           "tile.load"(%[[X]],
// CHECK:           %[[INSIDE:.*]] = arith.cmpf olt
// CHECK:           %[[MASKED:.*]] = arith.select %[[INSIDE]]
// CHECK:           %[[LOW:.*]] = tensor.extract_slice %[[MASKED]][0]
// CHECK:           %[[HIGH:.*]] = tensor.extract_slice %[[MASKED]][1024]
// CHECK:           %[[LANES:.*]] = arith.addf %[[LOW]], %[[HIGH]]
// CHECK:           "tile.reduce"(%[[LANES]]) {group = 1024 : i64, kind = "add"}
// CHECK-NOT:       "tile.load"
// CHECK:           "tile.store"({{.*}}) {once = true}
// A longer one is gone through twice, and sums in the same order.
// SMALL-LABEL: func.func @weighted_sum(
// SMALL:         scf.for
// SMALL:           scf.for {{.*}} -> (tensor<1024xf32>)
// SMALL:             arith.addf
// SMALL:           } {ascend.comment = "Along the row."{{.*}}}
// SMALL:           scf.for
// SMALL:             "tile.store"
// SMALL:           } {ascend.comment = "The result."{{.*}}}
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @weighted_sum(%x: tensor<2x1536xf32>, %w: tensor<1536xf32>) -> tensor<2x1536xf32> attributes {ascend.kernel} {
  %zero = arith.constant 0.0 : f32
  %sums = tensor.empty() : tensor<2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sums : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x1536xf32>) outs(%init : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2xf32>
  %empty = tensor.empty() : tensor<2x1536xf32>
  %s = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %w : tensor<2x1536xf32>, tensor<2xf32>, tensor<1536xf32>) outs(%empty : tensor<2x1536xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    %r = arith.mulf %q, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x1536xf32>
  %0 = "ascend.row_wise"(%s) : (tensor<2x1536xf32>) -> tensor<2x1536xf32>
  return %0 : tensor<2x1536xf32>
}

// -----

// Without broadcasts, all elements are one sequence.
// CHECK-LABEL: func.func @flat(
// CHECK:         %[[SHARE:.*]]:4 = "tile.block_rows"
// CHECK:         %[[FIRST:.*]] = arith.muli %[[SHARE]]#0, %c12
// CHECK:         %[[LAST:.*]] = arith.muli %[[SHARE]]#1, %c12
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
// CHECK:           "tile.load"
// CHECK-NOT:       scf.for
// CHECK:           "tile.store"
func.func @flat(%x: tensor<5x3x4xf32>) -> tensor<5x3x4xf32> attributes {ascend.kernel} {
  %empty = tensor.empty() : tensor<5x3x4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<5x3x4xf32>) outs(%empty : tensor<5x3x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %q = arith.negf %a : f32
    linalg.yield %q : f32
  } -> tensor<5x3x4xf32>
  %0 = "ascend.row_wise"(%s) : (tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
  return %0 : tensor<5x3x4xf32>
}

// -----

// Short rows: many in a tile, loaded and stored together, each reduced and its sum spread over it.
// CHECK-LABEL: func.func @short_rows(
// CHECK-SAME:      %[[X:.*]]: memref<?x40xf32, "gm">, %[[OUT:.*]]: memref<?x40xf32, "gm">)
// CHECK:         %[[INSIDE:.*]] = arith.cmpf olt
// CHECK:         scf.for
// CHECK:           %[[ROWS:.*]] = "tile.load_rows"(%[[X]],{{.*}} {gm_pitch = 40 : i64, {{.*}}pitch = 64 : i64, row_length = 40 : i64}
// CHECK:           %[[MASKED:.*]] = arith.select %[[INSIDE]], %[[ROWS]]
// CHECK:           %[[SUMS:.*]] = "tile.reduce"(%[[MASKED]]) {group = 64 : i64, kind = "add"}
// CHECK:           %[[SPREAD:.*]] = "tile.broadcast"(%[[SUMS]]) {width = 64 : i64}
// CHECK:           %[[SHARES:.*]] = arith.divf %[[ROWS]], %[[SPREAD]]
// CHECK:           "tile.store_rows"(%[[SHARES]], %[[OUT]],
#whole = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i)>
func.func @short_rows(%x: tensor<2000x40xf32>) -> tensor<2000x40xf32> attributes {ascend.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2000xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2000xf32>) -> tensor<2000xf32>
  %sum = linalg.generic {indexing_maps = [#whole, #first], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2000x40xf32>) outs(%init : tensor<2000xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %b, %a : f32
    linalg.yield %q : f32
  } -> tensor<2000xf32>
  %empty = tensor.empty() : tensor<2000x40xf32>
  %share = linalg.generic {indexing_maps = [#whole, #first, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<2000x40xf32>, tensor<2000xf32>) outs(%empty : tensor<2000x40xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<2000x40xf32>
  %0 = "ascend.row_wise"(%share) : (tensor<2000x40xf32>) -> tensor<2000x40xf32>
  return %0 : tensor<2000x40xf32>
}
