// RUN: not jascend-opt %s --verify-diagnostics --split-input-file --remarks --remove-dead-ops 2>&1 | FileCheck %s -DFILE=%s

// CHECK: [[FILE]]:[[#@LINE+1]]:4: error: expected error "no mistake here" was not produced
// expected-error @below {{no mistake here}}
func.func @missing() { return }

// -----

// CHECK: [[FILE]]:[[#@LINE+2]]:{{[0-9]+}}: error: unexpected error: {{.*}}a ramp has elements f32, i32 or i16, got i8
func.func @unexpected() {
  %0 = "tile.iota"() : () -> tensor<8xi8>
  return
}

// -----

// The right text in the wrong line, and of the wrong severity.
// CHECK: error: unexpected error: {{.*}}got i8
// CHECK: [[FILE]]:[[#@LINE+1]]:4: error: expected error "got i8" was not produced
// expected-error @below {{got i8}}
func.func @wrong_place() {
  // CHECK: [[FILE]]:[[#@LINE+1]]:6: error: expected warning "got i8" was not produced
  // expected-warning @below {{got i8}}
  %0 = "tile.iota"() : () -> tensor<8xi8>
  return
}

// -----

// One comment stands for one diagnostic.
// CHECK: [[FILE]]:[[#@LINE+5]]:{{[0-9]+}}: error: unexpected remark: remove-dead-ops: passed: removed 'tile.iota'
// CHECK-NOT: error:
func.func @twice() {
  // expected-remark @+1 {{removed 'tile.iota'}}
  %a = "tile.iota"() : () -> tensor<8xi32>
  %b = "tile.iota"() : () -> tensor<4xi32>
  return
}
