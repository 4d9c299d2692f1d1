// RUN: jascend-opt %s --print-ir-after-all --pass-pipeline='builtin.module(remove-dead-ops,func.func(cse,canonicalize))' 2>&1 >/dev/null | FileCheck %s
// RUN: jascend-opt %s --print-ir-after-all --remove-dead-ops --mlir-print-op-generic 2>&1 >/dev/null | FileCheck %s --check-prefix=GENERIC

// Every pass, upstream's too, each function of a nested pipeline by itself.
// CHECK:      // -----// IR Dump After remove-dead-ops //----- //
// CHECK-NEXT: module {
// CHECK:      func.func @f
// CHECK:      func.func @g
// CHECK:      // -----// IR Dump After cse //----- //
// CHECK-NEXT: func.func @f
// CHECK-NOT:  @g
// CHECK:      // -----// IR Dump After canonicalize //----- //
// CHECK-NEXT: func.func @f
// CHECK:      // -----// IR Dump After cse //----- //
// CHECK-NEXT: func.func @g
// CHECK:      // -----// IR Dump After canonicalize //----- //
// CHECK-NEXT: func.func @g

// GENERIC:      // -----// IR Dump After remove-dead-ops //----- //
// GENERIC-NEXT: "builtin.module"
func.func @f() { return }
func.func @g() { return }
