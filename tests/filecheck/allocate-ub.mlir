// RUN: jascend-opt %s --allocate-ub --split-input-file | FileCheck %s

// Buffers that do not live at the same time share addresses; those that do, do not. All move to the entry.
// CHECK-LABEL: func.func @reuse(
// CHECK-DAG:     {name_hint = "a", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "b", offset = 256 : i64}
// CHECK-DAG:     {name_hint = "c", offset = 0 : i64}
// CHECK:         "ascendc.copy_in"
func.func @reuse(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<64xf32, "ub">
  "ascendc.copy_in"(%a, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  %b = "ascendc.local_tensor"() {name_hint = "b"} : () -> memref<64xf32, "ub">
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.copy_out"(%x, %a, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  %c = "ascendc.local_tensor"() {name_hint = "c"} : () -> memref<64xf32, "ub">
  "ascendc.abs"(%c, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.copy_out"(%x, %b, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %c, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

// Sizes are rounded up to 32 bytes: a 3-element buffer takes a block of its own.
// CHECK-LABEL: func.func @aligned(
// CHECK-DAG:     {name_hint = "small", offset = 256 : i64}
// CHECK-DAG:     {name_hint = "other", offset = 288 : i64}
// CHECK-DAG:     {name_hint = "large", offset = 0 : i64}
func.func @aligned(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %small = "ascendc.local_tensor"() {name_hint = "small"} : () -> memref<3xf32, "ub">
  %other = "ascendc.local_tensor"() {name_hint = "other"} : () -> memref<5xf32, "ub">
  %large = "ascendc.local_tensor"() {name_hint = "large"} : () -> memref<64xf32, "ub">
  "ascendc.copy_in"(%small, %x, %n, %n) : (memref<3xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.copy_in"(%other, %x, %n, %n) : (memref<5xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.copy_in"(%large, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.copy_out"(%x, %small, %n, %n) : (memref<?xf32, "gm">, memref<3xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %other, %n, %n) : (memref<?xf32, "gm">, memref<5xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %large, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

// A buffer made before a loop and read in it lives to the loop's end: the next iteration reads it again. One that is made
// in the loop after the last read of this iteration must not take its place.
// CHECK-LABEL: func.func @across_iterations(
// CHECK-DAG:     {name_hint = "once", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "each", offset = 256 : i64}
// CHECK-DAG:     {name_hint = "late", offset = 512 : i64}
func.func @across_iterations(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %once = "ascendc.local_tensor"() {name_hint = "once"} : () -> memref<64xf32, "ub">
  "ascendc.copy_in"(%once, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  scf.for %i = %c0 to %n step %c1 {
    %each = "ascendc.local_tensor"() {name_hint = "each"} : () -> memref<64xf32, "ub">
    "ascendc.exp"(%each, %once) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %late = "ascendc.local_tensor"() {name_hint = "late"} : () -> memref<64xf32, "ub">
    "ascendc.abs"(%late, %each) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.copy_out"(%x, %late, %i, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  }
  return
}

// -----

// The result of an elementwise instruction takes the place of an operand that nobody reads after it, of the same size.
// CHECK-LABEL: func.func @in_place(
// CHECK-DAG:     {name_hint = "a", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "b", offset = 0 : i64}
func.func @in_place(%s: f32) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %b = "ascendc.local_tensor"() {name_hint = "b"} : () -> memref<64xf32, "ub">
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// Not where the operand is read again,
// CHECK-LABEL: func.func @in_place_read_later_noop(
// CHECK-DAG:     {name_hint = "a", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "b", offset = 256 : i64}
func.func @in_place_read_later_noop(%s: f32) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %b = "ascendc.local_tensor"() {name_hint = "b"} : () -> memref<64xf32, "ub">
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.add"(%b, %b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// nor in an instruction whose later repeats would read what earlier ones have written.
// CHECK-LABEL: func.func @in_place_reduction_noop(
// CHECK-DAG:     {name_hint = "a", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "b", offset = 256 : i64}
func.func @in_place_reduction_noop(%s: f32) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %b = "ascendc.local_tensor"() {name_hint = "b"} : () -> memref<64xf32, "ub">
  "ascendc.block_reduce_sum"(%b, %a) {repeat = 1 : i64} : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// What one instruction reads lies in different bank groups: 512 bytes apart would be the same ones. What it writes may be
// in those of either.
// CHECK-LABEL: func.func @banks(
// CHECK-DAG:     {name_hint = "a", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "b", offset = 768 : i64}
// CHECK-DAG:     {name_hint = "c", offset = 1280 : i64}
func.func @banks(%s: f32, %x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<128xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b"} : () -> memref<128xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c"} : () -> memref<128xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<128xf32, "ub">, f32) -> ()
  "ascendc.duplicate"(%b, %s) : (memref<128xf32, "ub">, f32) -> ()
  "ascendc.add"(%c, %a, %b) : (memref<128xf32, "ub">, memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
  "ascendc.copy_out"(%x, %a, %n, %n) : (memref<?xf32, "gm">, memref<128xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %b, %n, %n) : (memref<?xf32, "gm">, memref<128xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %c, %n, %n) : (memref<?xf32, "gm">, memref<128xf32, "ub">, index, index) -> ()
  return
}

// -----

// A result that may replace either of its operands replaces the one that does not meet what the result is read with: "z" lies
// in the bank groups of "a".
// CHECK-LABEL: func.func @banks_in_place(
// CHECK-DAG:     {name_hint = "z", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "a", offset = 1024 : i64}
// CHECK-DAG:     {name_hint = "b", offset = 1792 : i64}
// CHECK-DAG:     {name_hint = "c", offset = 1792 : i64}
func.func @banks_in_place(%s: f32, %x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %z = "ascendc.local_tensor"() {name_hint = "z"} : () -> memref<256xf32, "ub">
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<128xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b"} : () -> memref<128xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c"} : () -> memref<128xf32, "ub">
  "ascendc.duplicate"(%z, %s) : (memref<256xf32, "ub">, f32) -> ()
  "ascendc.duplicate"(%a, %s) : (memref<128xf32, "ub">, f32) -> ()
  "ascendc.duplicate"(%b, %s) : (memref<128xf32, "ub">, f32) -> ()
  "ascendc.add"(%c, %a, %b) : (memref<128xf32, "ub">, memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
  %half = "ascendc.view"(%z, %c0) : (memref<256xf32, "ub">, index) -> memref<128xf32, "ub">
  "ascendc.add"(%half, %c, %half) : (memref<128xf32, "ub">, memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
  "ascendc.copy_out"(%x, %z, %n, %n) : (memref<?xf32, "gm">, memref<256xf32, "ub">, index, index) -> ()
  return
}

// What a copy fills in a loop shares its address with nothing else in the loop, while there is room: the next copy need
// not wait until the vector unit is done with another buffer.
// CHECK-LABEL: func.func @copied_alone(
// CHECK-DAG:     {name_hint = "in", offset = 0 : i64}
// CHECK-DAG:     {name_hint = "e", offset = 256 : i64}
// CHECK-DAG:     {name_hint = "m", offset = 256 : i64}
// CHECK-DAG:     {name_hint = "out", offset = 512 : i64}
func.func @copied_alone(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %in = "ascendc.local_tensor"() {name_hint = "in"} : () -> memref<64xf32, "ub">
    "ascendc.copy_in"(%in, %x, %i, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    %e = "ascendc.local_tensor"() {name_hint = "e"} : () -> memref<64xf32, "ub">
    "ascendc.exp"(%e, %in) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %m = "ascendc.local_tensor"() {name_hint = "m"} : () -> memref<64xf32, "ub">
    "ascendc.abs"(%m, %e) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %out = "ascendc.local_tensor"() {name_hint = "out"} : () -> memref<64xf32, "ub">
    "ascendc.sqrt"(%out, %m) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.copy_out"(%x, %out, %i, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  }
  return
}
