// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @child(
// CHECK:         "ascend.random_key"(%arg0, %arg1) : (tensor<?x2xi32>, tensor<?xi32>) -> tensor<?x2xi32>
func.func @child(%key: tensor<?x2xi32>, %count: tensor<?xi32>) -> tensor<?x2xi32> {
  %0 = "ascend.random_key"(%key, %count) : (tensor<?x2xi32>, tensor<?xi32>) -> tensor<?x2xi32>
  return %0 : tensor<?x2xi32>
}
