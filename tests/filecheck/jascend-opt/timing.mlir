// RUN: jascend-opt %s --mlir-timing --pass-pipeline='builtin.module(remove-dead-ops,func.func(cse))' 2>&1 >/dev/null | FileCheck %s

// A pass that ran on two functions has one line.
// CHECK:      ... Execution time report ...
// CHECK:      Total Execution Time: {{[0-9.]+}} seconds
// CHECK:      ----Wall Time----  ----Name----
// CHECK-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  Parser
// CHECK-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  remove-dead-ops
// CHECK-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  cse
// CHECK-NEXT: {{[0-9.]+ \( *[0-9.]+%\)}}  Output
// CHECK-NEXT: {{[0-9.]+ \(100.0%\)}}  Total
func.func @f() { return }
func.func @g() { return }
