// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @any_rank(
// CHECK:         "ascend.row_wise"(%arg0) : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
// CHECK:         "ascend.row_wise"(%arg1) : (tensor<8xbf16>) -> tensor<8xbf16>
func.func @any_rank(%x: tensor<?x3x4xf32>, %y: tensor<8xbf16>) {
  %0 = "ascend.row_wise"(%x) : (tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  %1 = "ascend.row_wise"(%y) : (tensor<8xbf16>) -> tensor<8xbf16>
  return
}

// CHECK-LABEL: func.func @pair(
// CHECK:         "ascend.row_wise_pair"(%arg0, %arg1) : (tensor<?x4xf32>, tensor<?x4xi1>) -> (tensor<?x4xf32>, tensor<?x4xi1>)
func.func @pair(%x: tensor<?x4xf32>, %y: tensor<?x4xi1>) {
  %0:2 = "ascend.row_wise_pair"(%x, %y) : (tensor<?x4xf32>, tensor<?x4xi1>) -> (tensor<?x4xf32>, tensor<?x4xi1>)
  return
}
