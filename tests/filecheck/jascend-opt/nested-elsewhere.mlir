// RUN: jascend-opt %s --pass-pipeline='builtin.module(builtin.module(func.func(remove-dead-ops)))' | FileCheck %s

// A nested pipeline runs on what lies right below its anchor, not on what lies deeper or higher.
// CHECK-LABEL: func.func @outside
// CHECK-NEXT:    "tile.iota"
// CHECK-LABEL: func.func @inside
// CHECK-NEXT:    return
func.func @outside() {
  %dead = "tile.iota"() : () -> tensor<8xi32>
  return
}
module {
  func.func @inside() {
    %dead = "tile.iota"() : () -> tensor<8xi32>
    return
  }
}
