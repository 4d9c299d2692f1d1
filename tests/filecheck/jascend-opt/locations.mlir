// RUN: jascend-opt %s --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s -DFILE=%s
// RUN: jascend-opt %s --mlir-print-debuginfo --mlir-print-local-scope --split-input-file | FileCheck %s -DFILE=%s
// RUN: jascend-opt %s | FileCheck %s --check-prefix=NONE --implicit-check-not=loc(

// NONE-LABEL:  func.func @f
// CHECK:       func.func @f(%{{.*}}: i32 loc("[[FILE]]":[[#@LINE+1]]:14))
func.func @f(%x: i32) -> i32 {
  // CHECK-NEXT: arith.addi {{.*}} loc("[[FILE]]":[[#@LINE+1]]:8)
  %0 = arith.addi %x, %x : i32
  // CHECK-NEXT: arith.muli {{.*}} loc("model.py":12:3)
  %1 = arith.muli %0, %x : i32 loc("model.py":12:3)
  return %1 : i32
}
