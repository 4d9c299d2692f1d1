// RUN: not jascend-opt %s --split-input-file 2>%t | FileCheck %s
// RUN: not jascend-opt %s --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=ERROR -DFILE=%s

// Each part has its own symbols; one that fails has no output and does not stop the others.
// CHECK:      func.func @f()
// CHECK:      // -----
// CHECK-NEXT: // -----
// CHECK-NEXT: module {
// CHECK-NEXT:   func.func @f(%{{.*}}: i32)
func.func @f() { return }
// -----
// ERROR:      [[FILE]]:[[#@LINE+2]]:18: error: custom op 'nonsense' is unknown
// ERROR-NEXT: func.func @f() { nonsense }
func.func @f() { nonsense }
// -----
func.func @f(%x: i32) { return }
