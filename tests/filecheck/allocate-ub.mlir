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
  %c = "ascendc.local_tensor"() {name_hint = "c"} : () -> memref<64xf32, "ub">
  "ascendc.abs"(%c, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
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
