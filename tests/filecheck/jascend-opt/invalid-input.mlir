// RUN: not jascend-opt %s 2>&1 | FileCheck %s -DFILE=%s

// CHECK:      [[FILE]]:[[#@LINE+5]]:10: error: use of value '%0' expects different type than prior uses: 'i32' vs 'i64'
// CHECK-NEXT:   return %0 : i32
// CHECK-NEXT: {{^}}         ^{{$}}
// CHECK-NEXT: [[FILE]]:[[#@LINE+1]]:25: note: prior use here
func.func @f() -> i32 { %0 = arith.constant 1 : i64
  return %0 : i32
}
