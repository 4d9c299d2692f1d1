// RUN: jascend-opt %s --insert-sync --split-input-file | FileCheck %s

// The first iteration does not take the branch, and a later one comes after a read that waits for all: nothing orders the
// instruction in the branch after the one before the loop.
// CHECK-LABEL: func.func @not_at_first(
// CHECK:         "ascendc.duplicate"
// CHECK-NEXT:    scf.for
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:           "ascendc.get_value"
// CHECK:         return
func.func @not_at_first(%s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  scf.for %i = %c0 to %n step %c1 {
    %later = arith.cmpi sgt, %i, %c0 : index
    scf.if %later {
      "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    }
    "ascendc.duplicate"(%b, %s) : (memref<64xf32, "ub">, f32) -> ()
    %v = "ascendc.get_value"(%b, %i) : (memref<64xf32, "ub">, index) -> f32
  }
  return
}

// -----

// The second iteration takes it, and nothing has waited in the first one.
// CHECK-LABEL: func.func @not_at_first_but_unordered_still(
// CHECK:         scf.if
// CHECK-NEXT:      "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:      "ascendc.exp"
func.func @not_at_first_but_unordered_still(%s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  scf.for %i = %c0 to %n step %c1 {
    %later = arith.cmpi sgt, %i, %c0 : index
    scf.if %later {
      "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    }
  }
  return
}

// -----

// The second branch stands under the opposite of what the first one does.
// CHECK-LABEL: func.func @one_or_the_other(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         return
func.func @one_or_the_other(%s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %one = arith.cmpf oeq, %s, %s : f32
  %number = arith.select %one, %c0, %n : index
  %any = arith.cmpi sgt, %number, %c0 : index
  scf.if %any {
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  }
  scf.if %one {
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  }
  return
}

// -----

// In a loop the first branch may have been taken by the iteration before.
// CHECK-LABEL: func.func @one_then_the_other(
// CHECK:         "ascendc.pipe_barrier"() {pipe = "V"}
func.func @one_then_the_other(%s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  scf.for %i = %c0 to %n step %c1 {
    %one = arith.cmpi slt, %i, %n : index
    %number = arith.select %one, %c0, %n : index
    %any = arith.cmpi sgt, %number, %c0 : index
    scf.if %any {
      "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    }
    scf.if %one {
      "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    }
  }
  return
}

// -----

// A `while` loop runs at least once where its condition holds of what it starts with: the read in it waits for what is before.
// CHECK-LABEL: func.func @while_that_runs(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         return
func.func @while_that_runs(%s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %end = scf.while (%left = %c2) : (index) -> index {
    %goes_on = arith.cmpi sgt, %left, %c0 : index
    scf.condition(%goes_on) %left : index
  } do {
  ^bb0(%left: index):
    %v = "ascendc.get_value"(%a, %c0) : (memref<64xf32, "ub">, index) -> f32
    %less = arith.subi %left, %n : index
    scf.yield %less : index
  }
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  return
}
