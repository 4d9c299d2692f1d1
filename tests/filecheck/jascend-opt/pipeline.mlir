// RUN: jascend-opt %s --pass-pipeline='builtin.module(func.func(canonicalize,remove-dead-ops),symbol-dce)' | FileCheck %s
// RUN: jascend-opt %s --pass-pipeline='func.func( canonicalize{ max-iterations=3 } , remove-dead-ops ), symbol-dce' | FileCheck %s
// RUN: jascend-opt %s --canonicalize='max-iterations=3' --remove-dead-ops --symbol-dce | FileCheck %s
// RUN: jascend-opt %s --pass-pipeline='builtin.module()' | FileCheck %s --check-prefix=EMPTY

// Ours and upstream's, nested and not, by name and as flags: folded upstream, dead op removed by us, dead symbol upstream.
// CHECK-LABEL: func.func @folded
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-NEXT:    return %[[TWO]]
// CHECK-NOT:   func.func

// EMPTY:       arith.addi
// EMPTY:       func.func private @unused
// EMPTY:       "tile.iota"
func.func @folded() -> i32 {
  %one = arith.constant 1 : i32
  %two = arith.addi %one, %one : i32
  %dead = "tile.iota"() : () -> tensor<8xi32>
  return %two : i32
}

func.func private @unused() -> tensor<8xi32> {
  %iota = "tile.iota"() : () -> tensor<8xi32>
  return %iota : tensor<8xi32>
}
