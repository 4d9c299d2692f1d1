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

// -----

// One branch waits for all. The other one yields the number that ends the loop: nothing orders the first instruction of the
// next iteration after what came before that branch.
// CHECK-LABEL: func.func @branch_that_ends(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         return
func.func @branch_that_ends(%s: f32, %condition: i1) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %end = scf.while (%going = %c1) : (index) -> index {
    %goes_on = arith.cmpi ne, %going, %c0 : index
    scf.condition(%goes_on) %going : index
  } do {
  ^bb0(%going: index):
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    %next = scf.if %condition -> index {
      scf.yield %c0 : index
    } else {
      "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
      %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
      scf.yield %c1 : index
    }
    scf.yield %next : index
  }
  return
}

// -----

// So with a branch in a branch, and with a condition that asks for more.
// CHECK-LABEL: func.func @inner_branch_that_ends(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         return
func.func @inner_branch_that_ends(%s: f32, %condition: i1, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %end:2 = scf.while (%i = %c0, %going = %c1) : (index, index) -> (index, index) {
    %is_inside = arith.cmpi slt, %i, %n : index
    %is_going = arith.cmpi ne, %going, %c0 : index
    %goes_on = arith.andi %is_inside, %is_going : i1
    scf.condition(%goes_on) %i, %going : index, index
  } do {
  ^bb0(%i: index, %going: index):
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    %next = scf.if %condition -> index {
      %is_last = arith.cmpi sgt, %i, %c1 : index
      %inner = scf.if %is_last -> index {
        scf.yield %c0 : index
      } else {
        "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
        %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
        scf.yield %c1 : index
      }
      scf.yield %inner : index
    } else {
      "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
      %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
      scf.yield %i : index
    }
    %following = arith.addi %i, %c1 : index
    scf.yield %following, %next : index, index
  }
  return
}

// -----

// Behind the loop the branch that ends it counts.
// CHECK-LABEL: func.func @after_branch_that_ends(
// CHECK:         scf.while
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:           scf.yield
// CHECK:         }
// CHECK:         "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:    "ascendc.exp"
func.func @after_branch_that_ends(%s: f32, %condition: i1) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %end = scf.while (%going = %c1) : (index) -> index {
    %goes_on = arith.cmpi ne, %going, %c0 : index
    scf.condition(%goes_on) %going : index
  } do {
  ^bb0(%going: index):
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    %next = scf.if %condition -> index {
      scf.yield %c0 : index
    } else {
      "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
      %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
      scf.yield %c1 : index
    }
    scf.yield %next : index
  }
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// Another number than the condition asks for does not end the loop.
// CHECK-LABEL: func.func @branch_that_goes_on(
// CHECK:         ^bb0
// CHECK-NEXT:      "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:      "ascendc.duplicate"
func.func @branch_that_goes_on(%s: f32, %condition: i1) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %end = scf.while (%going = %c1) : (index) -> index {
    %goes_on = arith.cmpi ne, %going, %c0 : index
    scf.condition(%goes_on) %going : index
  } do {
  ^bb0(%going: index):
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    %next = scf.if %condition -> index {
      scf.yield %c1 : index
    } else {
      "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
      %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
      scf.yield %c0 : index
    }
    scf.yield %next : index
  }
  return
}

// -----

// What is behind the branches comes after the one that goes on, too.
// CHECK-LABEL: func.func @behind_branch_that_goes_on(
// CHECK:         ^bb0
// CHECK-NEXT:      "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:      "ascendc.duplicate"
func.func @behind_branch_that_goes_on(%s: f32, %condition: i1) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %end = scf.while (%going = %c1) : (index) -> index {
    %goes_on = arith.cmpi ne, %going, %c0 : index
    scf.condition(%goes_on) %going : index
  } do {
  ^bb0(%going: index):
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    %next = scf.if %condition -> index {
      scf.yield %c0 : index
    } else {
      "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
      %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
      scf.yield %c1 : index
    }
    "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    scf.yield %next : index
  }
  return
}

// -----

// The branch decides something else that the loop carries.
// CHECK-LABEL: func.func @branch_that_does_not_decide(
// CHECK:         ^bb0
// CHECK-NEXT:      "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:      "ascendc.duplicate"
func.func @branch_that_does_not_decide(%s: f32, %condition: i1, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %end:2 = scf.while (%going = %c1, %kept = %c1) : (index, index) -> (index, index) {
    %goes_on = arith.cmpi ne, %going, %c0 : index
    scf.condition(%goes_on) %going, %kept : index, index
  } do {
  ^bb0(%going: index, %kept: index):
    "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    %next = scf.if %condition -> index {
      scf.yield %c0 : index
    } else {
      "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
      %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
      scf.yield %c1 : index
    }
    scf.yield %n, %next : index, index
  }
  return
}

// -----

// In the loop around the one that ends, the next iteration comes after the branch.
// CHECK-LABEL: func.func @branch_that_ends_the_inner_loop(
// CHECK:         scf.for
// CHECK:           "ascendc.pipe_barrier"() {pipe = "V"}
func.func @branch_that_ends_the_inner_loop(%s: f32, %condition: i1, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  scf.for %i = %c0 to %n step %c1 {
    %end = scf.while (%going = %c1) : (index) -> index {
      %goes_on = arith.cmpi ne, %going, %c0 : index
      scf.condition(%goes_on) %going : index
    } do {
    ^bb0(%going: index):
      "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
      %next = scf.if %condition -> index {
        scf.yield %c0 : index
      } else {
        "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
        %v = "ascendc.get_value"(%c, %c0) : (memref<64xf32, "ub">, index) -> f32
        scf.yield %c1 : index
      }
      scf.yield %next : index
    }
  }
  return
}

// -----

// A loop in the first branch takes turns in two halves: it has not run either where the second branch is taken.
// CHECK-LABEL: func.func @one_or_the_other_by_halves(
// CHECK-NOT:     MTE2_V
// CHECK:         "ascendc.duplicate"
func.func @one_or_the_other_by_halves(%gm: memref<?xf32, "gm">, %s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<128xf32, "ub">
  %one = arith.cmpf oeq, %s, %s : f32
  %other = arith.xori %one, %true : i1
  scf.if %other {
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> (index) {
      %next = arith.subi %c1, %slot : index
      %at = arith.muli %slot, %c64 : index
      %half = "ascendc.view"(%a, %at) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
      "ascendc.copy_in"(%half, %gm, %c0, %c64) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
      scf.yield %next : index
    }
  }
  scf.if %one {
    "ascendc.duplicate"(%a, %s) : (memref<128xf32, "ub">, f32) -> ()
  }
  return
}

// -----

// The loop is around the branches: the iteration before may have taken the first one.
// CHECK-LABEL: func.func @halves_then_the_other(
// CHECK:         MTE2_V
func.func @halves_then_the_other(%gm: memref<?xf32, "gm">, %s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<128xf32, "ub">
  scf.for %row = %c0 to %n step %c1 {
    %one = arith.cmpf oeq, %s, %s : f32
    %other = arith.xori %one, %true : i1
    scf.if %other {
      %last = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> (index) {
        %next = arith.subi %c1, %slot : index
        %at = arith.muli %slot, %c64 : index
        %half = "ascendc.view"(%a, %at) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
        "ascendc.copy_in"(%half, %gm, %c0, %c64) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
        scf.yield %next : index
      }
    }
    scf.if %one {
      "ascendc.duplicate"(%a, %s) : (memref<128xf32, "ub">, f32) -> ()
    }
  }
  return
}

// -----

// The first round of a `while` loop does not take the branch, and the scalar unit has waited by the second one.
// CHECK-LABEL: func.func @not_in_the_first_round(
// CHECK:         "ascendc.duplicate"
// CHECK-NEXT:    scf.while
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:           "ascendc.get_value"
// CHECK:         return
func.func @not_in_the_first_round(%s: f32) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %true = arith.constant true
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %end = scf.while (%tries = %c2) : (index) -> index {
    %again = arith.cmpi sgt, %tries, %c0 : index
    scf.condition(%again) %tries : index
  } do {
  ^bb0(%tries: index):
    %first = arith.cmpi sgt, %tries, %c1 : index
    %later = arith.xori %first, %true : i1
    scf.if %later {
      "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
    }
    "ascendc.duplicate"(%b, %s) : (memref<64xf32, "ub">, f32) -> ()
    %v = "ascendc.get_value"(%b, %c0) : (memref<64xf32, "ub">, index) -> f32
    %less = arith.subi %tries, %c1 : index
    scf.yield %less : index
  }
  return
}
