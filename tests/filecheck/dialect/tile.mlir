// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @every_op(
// CHECK:         "tile.block_rows"(%arg2) : (index) -> (index, index, index, index)
// CHECK:         %[[X:.*]] = "tile.load"(%arg0, %arg2, %arg2) {pad = 0xFF800000 : f32} : (memref<?x8xf32, "gm">, index, index) -> tensor<2048xf32>
// CHECK:         "tile.load"(%arg0, %arg2, %arg2) : (memref<?x8xf32, "gm">, index, index) -> tensor<8xf32>
// CHECK:         "tile.reduce"(%[[X]]) {group = 1024 : i64, kind = "add"} : (tensor<2048xf32>) -> tensor<2xf32>
// CHECK:         "tile.extract"(%[[X]], %arg2) : (tensor<2048xf32>, index) -> f32
// CHECK:         %[[RAMP:.*]] = "tile.iota"() : () -> tensor<2048xf32>
// CHECK:         "tile.compress"(%[[RAMP]], %{{.*}}) : (tensor<2048xf32>, tensor<2048xi1>) -> (tensor<2048xf32>, index)
// CHECK:         "tile.store"(%[[X]], %arg1, %arg2, %arg2) : (tensor<2048xf32>, memref<?x8xf32, "gm">, index, index) -> ()
// CHECK:         "tile.store"(%[[X]], %arg1, %arg2, %arg2) {once = true} : (tensor<2048xf32>, memref<?x8xf32, "gm">, index, index) -> ()
func.func @every_op(%in: memref<?x8xf32, "gm">, %out: memref<?x8xf32, "gm">, %n: index) {
  %first, %last, %part, %rounds = "tile.block_rows"(%n) : (index) -> (index, index, index, index)
  %x = "tile.load"(%in, %n, %n) {pad = 0xFF800000 : f32} : (memref<?x8xf32, "gm">, index, index) -> tensor<2048xf32>
  %unpadded = "tile.load"(%in, %n, %n) : (memref<?x8xf32, "gm">, index, index) -> tensor<8xf32>
  %sums = "tile.reduce"(%x) {kind = "add", group = 1024 : i64} : (tensor<2048xf32>) -> tensor<2xf32>
  %s = "tile.extract"(%x, %n) : (tensor<2048xf32>, index) -> f32
  %ramp = "tile.iota"() : () -> tensor<2048xf32>
  %mask = arith.cmpf olt, %ramp, %x : tensor<2048xf32>
  %packed, %kept = "tile.compress"(%ramp, %mask) : (tensor<2048xf32>, tensor<2048xi1>) -> (tensor<2048xf32>, index)
  "tile.store"(%x, %out, %n, %n) : (tensor<2048xf32>, memref<?x8xf32, "gm">, index, index) -> ()
  "tile.store"(%x, %out, %n, %n) {once = true} : (tensor<2048xf32>, memref<?x8xf32, "gm">, index, index) -> ()
  return
}
