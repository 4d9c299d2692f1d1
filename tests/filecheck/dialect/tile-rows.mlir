// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @every_op(
// CHECK:         "tile.block_rows"(%arg2) {parts = 4 : i64} : (index) -> (index, index, index, index)
// CHECK:         "tile.core"() : () -> (index, index)
// CHECK:         "tile.workspace"() {elements = 8 : i64, name = "one", per = "launch"} : () -> memref<8xf32, "gm">
// CHECK:         "tile.workspace"() {elements = 16 : i64, name = "many", per = "core"} : () -> memref<?x16xf32, "gm">
// CHECK:         "tile.sync_all"() : () -> ()
// CHECK:         %[[X:.*]] = "tile.load_rows"(%arg0, %arg2, %arg2) {gm_pitch = 100 : i64, pad = 0.000000e+00 : f32, pitch = 104 : i64, row_length = 99 : i64} : (memref<?x100xf32, "gm">, index, index) -> tensor<832xf32>
// CHECK:         "tile.store_rows"(%[[X]], %arg1, %arg2, %arg2) {gm_pitch = 99 : i64, pitch = 104 : i64, row_length = 99 : i64} : (tensor<832xf32>, memref<?x99xf32, "gm">, index, index) -> ()
// CHECK:         %[[TAKEN:.*]] = "tile.take"(%[[X]]) {count = 1 : i64, group = 104 : i64, start = 3 : i64} : (tensor<832xf32>) -> tensor<8xf32>
// CHECK:         "tile.broadcast"(%[[TAKEN]]) {width = 104 : i64} : (tensor<8xf32>) -> tensor<832xf32>
// CHECK:         "tile.spread"(%[[X]]) {fill = 1.000000e+00 : f32, group = 104 : i64, width = 128 : i64} : (tensor<832xf32>) -> tensor<1024xf32>
// CHECK:         "tile.repeat"(%[[TAKEN]]) {group = 8 : i64} : (tensor<8xf32>) -> tensor<32xf32>
func.func @every_op(%in: memref<?x100xf32, "gm">, %out: memref<?x99xf32, "gm">, %n: index) {
  %first, %last, %part, %rounds = "tile.block_rows"(%n) {parts = 4 : i64} : (index) -> (index, index, index, index)
  %core, %cores = "tile.core"() : () -> (index, index)
  %one = "tile.workspace"() {name = "one", elements = 8 : i64, per = "launch"} : () -> memref<8xf32, "gm">
  %many = "tile.workspace"() {name = "many", elements = 16 : i64, per = "core"} : () -> memref<?x16xf32, "gm">
  "tile.sync_all"() : () -> ()
  %x = "tile.load_rows"(%in, %n, %n) {row_length = 99 : i64, gm_pitch = 100 : i64, pitch = 104 : i64, pad = 0.0 : f32}
    : (memref<?x100xf32, "gm">, index, index) -> tensor<832xf32>
  "tile.store_rows"(%x, %out, %n, %n) {row_length = 99 : i64, gm_pitch = 99 : i64, pitch = 104 : i64}
    : (tensor<832xf32>, memref<?x99xf32, "gm">, index, index) -> ()
  %taken = "tile.take"(%x) {group = 104 : i64, start = 3 : i64, count = 1 : i64} : (tensor<832xf32>) -> tensor<8xf32>
  %again = "tile.broadcast"(%taken) {width = 104 : i64} : (tensor<8xf32>) -> tensor<832xf32>
  %wide = "tile.spread"(%x) {group = 104 : i64, width = 128 : i64, fill = 1.0 : f32} : (tensor<832xf32>) -> tensor<1024xf32>
  %four = "tile.repeat"(%taken) {group = 8 : i64} : (tensor<8xf32>) -> tensor<32xf32>
  return
}
