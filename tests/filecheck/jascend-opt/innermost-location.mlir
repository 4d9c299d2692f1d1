// RUN: not jascend-opt %s --split-input-file 2>&1 | FileCheck %s -DFILE=%s

// The callee of a call site, what a name stands for, the first of a fused location that has a file.
// CHECK: callee.py:3:4: error: 'tile.iota' op a ramp has elements
func.func @call_site() {
  %0 = "tile.iota"() : () -> tensor<8xi8> loc(callsite("iota"("callee.py":3:4) at "caller.py":1:2))
  return
}
// -----
// CHECK: caller.py:1:2: error: 'tile.iota' op a ramp has elements
func.func @callee_without_file() {
  %0 = "tile.iota"() : () -> tensor<8xi8> loc(callsite("iota" at "caller.py":1:2))
  return
}
// -----
// CHECK: second.py:7:8: error: 'tile.iota' op a ramp has elements
func.func @fused() {
  %0 = "tile.iota"() : () -> tensor<8xi8> loc(fused<"why">[unknown, "second.py":7:8, "third.py":9:9])
  return
}
// -----
// CHECK: <unknown>:0: error: 'tile.iota' op a ramp has elements
func.func @nothing_known() {
  %0 = "tile.iota"() : () -> tensor<8xi8> loc(unknown)
  return
}
