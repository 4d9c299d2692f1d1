// RUN: jascend-opt %s --remove-dead-ops='merge=false' | FileCheck %s

// What is repeated stays; what nobody uses goes.
// CHECK-LABEL: func.func @repeated(
// CHECK-COUNT-2: "tile.iota"
// CHECK-NOT:     arith.muli
// CHECK:         return
func.func @repeated() -> tensor<64xi32> {
  %a = "tile.iota"() : () -> tensor<64xi32>
  %b = "tile.iota"() : () -> tensor<64xi32>
  %sum = arith.addi %a, %b : tensor<64xi32>
  %unused = arith.muli %sum, %sum : tensor<64xi32>
  return %sum : tensor<64xi32>
}
