// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @lists(
// CHECK:         %[[PAIRS:.*]] = "tile.sort"(%arg0, %arg1) {run = 96 : i64} : (tensor<192xf32>, tensor<192xi32>) -> tensor<384xf32>
// CHECK:         %[[ONE:.*]] = "tile.merge"(%[[PAIRS]]) {run = 96 : i64, ways = 2 : i64} : (tensor<384xf32>) -> tensor<384xf32>
// CHECK:         "tile.merge_lists"(%[[PAIRS]], %[[ONE]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<384xf32>, tensor<384xf32>) -> tensor<768xf32>
// CHECK:         "tile.unpack"(%[[ONE]]) : (tensor<384xf32>) -> (tensor<192xf32>, tensor<192xi32>)
func.func @lists(%scores: tensor<192xf32>, %indices: tensor<192xi32>) {
  %pairs = "tile.sort"(%scores, %indices) {run = 96 : i64} : (tensor<192xf32>, tensor<192xi32>) -> tensor<384xf32>
  %one = "tile.merge"(%pairs) {run = 96 : i64, ways = 2 : i64} : (tensor<384xf32>) -> tensor<384xf32>
  %all = "tile.merge_lists"(%pairs, %one) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<384xf32>, tensor<384xf32>) -> tensor<768xf32>
  %v, %i = "tile.unpack"(%one) : (tensor<384xf32>) -> (tensor<192xf32>, tensor<192xi32>)
  return
}

// CHECK-LABEL: func.func @moves(
// CHECK:         "tile.compress"(%arg0, %arg2) : (tensor<128xbf16>, tensor<128xi1>) -> (tensor<128xbf16>, index)
// CHECK:         %[[TAKEN:.*]] = "tile.gather"(%arg0, %arg1) : (tensor<128xbf16>, tensor<64xi32>) -> tensor<64xbf16>
// CHECK:         "tile.scatter"(%[[TAKEN]], %arg1, %arg0) : (tensor<64xbf16>, tensor<64xi32>, tensor<128xbf16>) -> tensor<128xbf16>
// CHECK:         "tile.find_first"(%arg2) : (tensor<128xi1>) -> index
func.func @moves(%x: tensor<128xbf16>, %indices: tensor<64xi32>, %mask: tensor<128xi1>) {
  %packed, %kept = "tile.compress"(%x, %mask) : (tensor<128xbf16>, tensor<128xi1>) -> (tensor<128xbf16>, index)
  %taken = "tile.gather"(%x, %indices) : (tensor<128xbf16>, tensor<64xi32>) -> tensor<64xbf16>
  %put = "tile.scatter"(%taken, %indices, %x) : (tensor<64xbf16>, tensor<64xi32>, tensor<128xbf16>) -> tensor<128xbf16>
  %first = "tile.find_first"(%mask) : (tensor<128xi1>) -> index
  return
}
