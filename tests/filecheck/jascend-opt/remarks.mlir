// RUN: jascend-opt %s --remove-dead-ops --remarks --verify-diagnostics
// RUN: jascend-opt %s --remove-dead-ops --remarks 2>&1 >/dev/null | FileCheck %s -DFILE=%s
// RUN: jascend-opt %s --remove-dead-ops 2>&1 | FileCheck %s --check-prefix=SILENT --implicit-check-not=remark:

// SILENT-LABEL: func.func @f
func.func @f() -> tensor<8xi32> {
  %0 = "tile.iota"() : () -> tensor<8xi32>
  // expected-remark @below {{remove-dead-ops: passed: merged 'tile.iota' with the same op at}}
  %1 = "tile.iota"() : () -> tensor<8xi32>
  // expected-remark @below {{removed 'arith.muli', whose results are not used}}
  %2 = arith.muli %0, %1 : tensor<8xi32>
  return %0 : tensor<8xi32>
}
// CHECK:      [[FILE]]:[[#@LINE-5]]:8: remark: remove-dead-ops: passed: merged 'tile.iota' with the same op at [[FILE]]:[[#@LINE-7]]:8
// CHECK-NEXT:   %1 = "tile.iota"() : () -> tensor<8xi32>
// CHECK-NEXT: {{^}}       ^{{$}}
