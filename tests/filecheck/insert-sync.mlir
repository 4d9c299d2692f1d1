// RUN: jascend-opt %s --insert-sync --split-input-file | FileCheck %s

// In, compute, out: an event right after each producer, a wait right before each consumer, one id per direction.
// CHECK-LABEL: func.func @chain(
// CHECK:         "ascendc.copy_in"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.exp"
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:    "ascendc.abs"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "V_MTE3", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "V_MTE3", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.copy_out"
// CHECK-NEXT:    return
func.func @chain(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  "ascendc.copy_in"(%a, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.abs"(%c, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.copy_out"(%out, %c, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

// Nothing orders instructions that do not touch the same bytes.
// CHECK-LABEL: func.func @independent_noop(
// CHECK:         "ascendc.duplicate"
// CHECK-NEXT:    "ascendc.duplicate"
// CHECK-NEXT:    "ascendc.copy_in"
// CHECK-NEXT:    return
func.func @independent_noop(%x: memref<?xf32, "gm">, %n: index, %s: f32) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  "ascendc.duplicate"(%b, %s) : (memref<64xf32, "ub">, f32) -> ()
  "ascendc.copy_in"(%c, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// Two names for the same bytes are a dependence.
// CHECK-LABEL: func.func @shared_address(
// CHECK:         "ascendc.exp"
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:    "ascendc.duplicate"
func.func @shared_address(%s: f32) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %again = "ascendc.local_tensor"() {name_hint = "again", offset = 128 : i64} : () -> memref<8xf32, "ub">
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.duplicate"(%again, %s) : (memref<8xf32, "ub">, f32) -> ()
  return
}

// -----

// A barrier inside a branch does not count for the path that skips it: the read after the branch gets its own.
// CHECK-LABEL: func.func @barrier_in_branch(
// CHECK:         scf.if
// CHECK:           "ascendc.duplicate"
// CHECK-NEXT:      "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:      "ascendc.abs"
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:    "ascendc.sqrt"
func.func @barrier_in_branch(%s: f32, %condition: i1) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %d = "ascendc.local_tensor"() {name_hint = "d", offset = 768 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  scf.if %condition {
    "ascendc.duplicate"(%b, %s) : (memref<64xf32, "ub">, f32) -> ()
    "ascendc.abs"(%c, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  }
  "ascendc.sqrt"(%d, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// So with a loop that may run no times: the barrier inside is not the barrier after.
// CHECK-LABEL: func.func @zero_trips(
// CHECK:         scf.for
// CHECK:           "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK:         }
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:    "ascendc.sqrt"
func.func @zero_trips(%s: f32, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.abs"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  }
  "ascendc.sqrt"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// The copy of the next iteration must not overwrite what this one still reads: the wait stands at the end of the body, so
// that every set has exactly one wait.
// CHECK-LABEL: func.func @carried(
// CHECK:         scf.for
// CHECK-NEXT:      "ascendc.copy_in"
// CHECK-NEXT:      "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:      "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:      "ascendc.exp"
// CHECK-DAG:       "ascendc.set_flag"() {event = "V_MTE2", event_id = 0 : i64}
// CHECK-DAG:       "ascendc.copy_out"
// CHECK:           "ascendc.wait_flag"() {event = "V_MTE2", event_id = 0 : i64}
// CHECK:         }
func.func @carried(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.copy_in"(%a, %x, %i, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.copy_out"(%out, %b, %i, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  }
  return
}

// -----

// The scalar unit waits for the vector pipe before it reads; what it has read needs no event on the way back.
// CHECK-LABEL: func.func @scalar(
// CHECK:         "ascendc.duplicate"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "V_S", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "V_S", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.get_value"
// CHECK-NEXT:    "ascendc.duplicate"
// CHECK-NEXT:    return
func.func @scalar(%s: f32, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %v = "ascendc.get_value"(%a, %n) : (memref<64xf32, "ub">, index) -> f32
  "ascendc.duplicate"(%b, %v) : (memref<64xf32, "ub">, f32) -> ()
  return
}

// -----

// Order through another pipe counts: the second copy into the same buffer is after the first one, by way of the vector
// pipe that has read it.
// CHECK-LABEL: func.func @transitive(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         return
func.func @transitive(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.copy_in"(%a, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.copy_in"(%a, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// What the scalar unit has waited for is done before it issues the next vector instruction: no barrier between the two.
// CHECK-LABEL: func.func @through_the_scalar_unit(
// CHECK:         "ascendc.duplicate"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "V_S"
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "V_S"
// CHECK-NEXT:    "ascendc.get_value"
// CHECK-NEXT:    "ascendc.exp"
func.func @through_the_scalar_unit(%s: f32, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %v = "ascendc.get_value"(%a, %n) : (memref<64xf32, "ub">, index) -> f32
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// Views at known offsets are apart: the second copy needs no barrier, and the copy out waits for its own half only.
// CHECK-LABEL: func.func @views(
// CHECK:         "ascendc.copy_in"
// CHECK-NEXT:    "ascendc.copy_in"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "MTE2_MTE3", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.duplicate"
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "MTE2_MTE3", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.copy_out"
// CHECK-NEXT:    return
func.func @views(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">, %n: index, %s: f32) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<192xf32, "ub">
  %first = "ascendc.view"(%a, %c0) : (memref<192xf32, "ub">, index) -> memref<64xf32, "ub">
  %second = "ascendc.view"(%a, %c64) : (memref<192xf32, "ub">, index) -> memref<64xf32, "ub">
  %third = "ascendc.view"(%a, %c128) : (memref<192xf32, "ub">, index) -> memref<64xf32, "ub">
  "ascendc.copy_in"(%first, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.copy_in"(%second, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.duplicate"(%third, %s) : (memref<64xf32, "ub">, f32) -> ()
  "ascendc.copy_out"(%out, %second, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

// A view at an offset known at run time only may be anywhere in its buffer.
// CHECK-LABEL: func.func @view_anywhere(
// CHECK:         "ascendc.duplicate"
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:    "ascendc.duplicate"
func.func @view_anywhere(%n: index, %s: f32) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<192xf32, "ub">
  %first = "ascendc.view"(%a, %c0) : (memref<192xf32, "ub">, index) -> memref<64xf32, "ub">
  %some = "ascendc.view"(%a, %n) : (memref<192xf32, "ub">, index) -> memref<64xf32, "ub">
  "ascendc.duplicate"(%first, %s) : (memref<64xf32, "ub">, f32) -> ()
  "ascendc.duplicate"(%some, %s) : (memref<64xf32, "ub">, f32) -> ()
  return
}

// -----

// Two halves that take turns: the copy of the next chunk runs beside the work on this one. Both are waited for at the
// end of the body, where they change places; nothing orders the two within an iteration.
// CHECK-LABEL: func.func @turns(
// CHECK:         "ascendc.copy_in"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK:         scf.for
// CHECK-NOT:     "ascendc.wait_flag"
// CHECK:           "ascendc.copy_in"
// CHECK-NEXT:      "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NOT:     "ascendc.wait_flag"
// CHECK:           "ascendc.exp"
// CHECK-NEXT:      "ascendc.set_flag"() {event = "V_MTE2", event_id = 0 : i64}
// CHECK-NEXT:      "ascendc.wait_flag"() {event = "V_MTE2", event_id = 0 : i64}
// CHECK-NEXT:      "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:      scf.yield
// CHECK:         return
func.func @turns(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<128xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %first = "ascendc.view"(%a, %c0) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
  "ascendc.copy_in"(%first, %x, %c0, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> index {
    %other = arith.subi %c1, %slot : index
    %at_next = arith.muli %other, %c64 : index
    %next = "ascendc.view"(%a, %at_next) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.copy_in"(%next, %x, %i, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    %at = arith.muli %slot, %c64 : index
    %this = "ascendc.view"(%a, %at) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.exp"(%b, %this) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    scf.yield %other : index
  }
  return
}

// -----

// An offset that is carried otherwise takes no turns: the copy waits for the work of the iteration before.
// CHECK-LABEL: func.func @turns_of_another_kind_noop(
// CHECK:         scf.for
// CHECK:           "ascendc.copy_in"
// CHECK-NEXT:      "ascendc.set_flag"() {event = "MTE2_V"
// CHECK:           "ascendc.wait_flag"() {event = "MTE2_V"
// CHECK:           "ascendc.exp"
func.func @turns_of_another_kind_noop(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<128xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> index {
    %other = arith.subi %c1, %slot : index
    %at_next = arith.muli %other, %c64 : index
    %next = "ascendc.view"(%a, %at_next) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.copy_in"(%next, %x, %i, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    %at = arith.muli %slot, %c64 : index
    %this = "ascendc.view"(%a, %at) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.exp"(%b, %this) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    scf.yield %slot : index
  }
  return
}

// -----

// The copy out of one iteration and the work of the next that does not touch its buffer run side by side: the flag is set
// before the loop and waited for after it, once each, so that every iteration waits for the one before.
// CHECK-LABEL: func.func @primed(
// CHECK:         "ascendc.set_flag"() {event = "MTE3_V", event_id = 0 : i64}
// CHECK-NEXT:    scf.for
// CHECK:           "ascendc.exp"
// CHECK:           "ascendc.wait_flag"() {event = "MTE3_V", event_id = 0 : i64}
// CHECK-NEXT:      "ascendc.abs"
// CHECK:           "ascendc.copy_out"
// CHECK-NEXT:      "ascendc.set_flag"() {event = "MTE3_V", event_id = 0 : i64}
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "MTE3_V", event_id = 0 : i64}
// CHECK-NEXT:    return
func.func @primed(%out: memref<?xf32, "gm">, %n: index, %s: f32) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.abs"(%c, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.copy_out"(%out, %c, %i, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  }
  return
}

// -----

// What a core wrote to global memory and reads again is ordered, and two stores that may write the same element.
// CHECK-LABEL: func.func @global_memory(
// CHECK:         "ascendc.copy_out"
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "MTE3"}
// CHECK-NEXT:    "ascendc.copy_out"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "MTE3_MTE2", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "MTE3_MTE2", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.copy_in"
func.func @global_memory(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  "ascendc.copy_out"(%x, %a, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %b, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.copy_in"(%c, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// One store in a loop writes every element once, and so does one that says so.
// CHECK-LABEL: func.func @stores_once_noop(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         return
func.func @stores_once_noop(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.copy_out"(%x, %a, %i, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
    "ascendc.copy_out"(%x, %b, %i, %n) {once = true} : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  }
  return
}

// -----

// A meeting of all cores is a barrier for all pipes: nothing else orders what comes after it.
// CHECK-LABEL: func.func @sync_all(
// CHECK:         "ascendc.copy_out"
// CHECK-NEXT:    "ascendc.sync_all"
// CHECK-NEXT:    "ascendc.copy_in"
// CHECK-NEXT:    "ascendc.exp"
// CHECK-NEXT:    return
func.func @sync_all(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.copy_out"(%x, %a, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.sync_all"() : () -> ()
  "ascendc.copy_in"(%b, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.exp"(%a, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// A loop that certainly runs orders what comes after it: the scalar unit has waited for the vector unit in it.
// CHECK-LABEL: func.func @certain_trips(
// CHECK:         scf.for
// CHECK:           "ascendc.wait_flag"() {event = "V_S"
// CHECK:           "ascendc.get_value"
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.sqrt"
func.func @certain_trips(%s: f32) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
    %v = "ascendc.get_value"(%c, %i) : (memref<64xf32, "ub">, index) -> f32
  }
  "ascendc.sqrt"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// Eight loads and as many that wait for one of them: there are six ids, so flags serve for two. Nothing waits for all
// pipes.
// CHECK-LABEL: func.func @more_flags_than_ids(
// CHECK-NOT:     pipe = "ALL"
// CHECK-NOT:     event_id = 6
// CHECK-COUNT-8: "ascendc.copy_in"
// CHECK:         "ascendc.set_flag"() {event = "MTE2_V", event_id = 5 : i64}
// CHECK-NOT:     pipe = "ALL"
// CHECK-NOT:     event_id = 6
// CHECK:         return
func.func @more_flags_than_ids(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a0 = "ascendc.local_tensor"() {name_hint = "a0", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %a1 = "ascendc.local_tensor"() {name_hint = "a1", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %a2 = "ascendc.local_tensor"() {name_hint = "a2", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %a3 = "ascendc.local_tensor"() {name_hint = "a3", offset = 768 : i64} : () -> memref<64xf32, "ub">
  %a4 = "ascendc.local_tensor"() {name_hint = "a4", offset = 1024 : i64} : () -> memref<64xf32, "ub">
  %a5 = "ascendc.local_tensor"() {name_hint = "a5", offset = 1280 : i64} : () -> memref<64xf32, "ub">
  %a6 = "ascendc.local_tensor"() {name_hint = "a6", offset = 1536 : i64} : () -> memref<64xf32, "ub">
  %a7 = "ascendc.local_tensor"() {name_hint = "a7", offset = 1792 : i64} : () -> memref<64xf32, "ub">
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.copy_in"(%a0, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.copy_in"(%a1, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.copy_in"(%a2, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.copy_in"(%a3, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.copy_in"(%a4, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.copy_in"(%a5, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.copy_in"(%a6, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.copy_in"(%a7, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    "ascendc.exp"(%a0, %a0) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%a1, %a1) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%a2, %a2) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%a3, %a3) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%a4, %a4) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%a5, %a5) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%a6, %a6) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%a7, %a7) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  }
  return
}

// -----

// Where its bounds are compared a loop runs, and what it has waited for is ordered.
// CHECK-LABEL: func.func @runs_where_it_stands(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         "ascendc.get_value"
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.sqrt"
func.func @runs_where_it_stands(%s: f32, %m: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  %any = arith.cmpi sgt, %m, %c0 : index
  scf.if %any {
    scf.for %i = %c0 to %m step %c1 {
      "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
      %v = "ascendc.get_value"(%c, %i) : (memref<64xf32, "ub">, index) -> f32
    }
    "ascendc.sqrt"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  }
  return
}

// -----

// The same without the question: where the loop does not run, nothing has waited.
// CHECK-LABEL: func.func @may_not_run(
// CHECK:         "ascendc.get_value"
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT:    "ascendc.sqrt"
func.func @may_not_run(%s: f32, %m: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %c = "ascendc.local_tensor"() {name_hint = "c", offset = 512 : i64} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  scf.for %i = %c0 to %m step %c1 {
    "ascendc.duplicate"(%c, %s) : (memref<64xf32, "ub">, f32) -> ()
    %v = "ascendc.get_value"(%c, %i) : (memref<64xf32, "ub">, index) -> f32
  }
  "ascendc.sqrt"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// The first copy is of nothing where the loop does not run, and the last of nothing where it does: what the loop has read
// is done.
// CHECK-LABEL: func.func @first_copy_of_nothing(
// CHECK:         "ascendc.get_value"
// CHECK:         scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.copy_in"
func.func @first_copy_of_nothing(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<128xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %first = "ascendc.view"(%a, %c0) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
  %any = arith.cmpi slt, %c0, %n : index
  %count = arith.select %any, %c64, %c0 : index
  "ascendc.copy_in"(%first, %x, %c0, %count) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> index {
    %other = arith.subi %c1, %slot : index
    %at_next = arith.muli %other, %c64 : index
    %next = "ascendc.view"(%a, %at_next) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    %next_i = arith.addi %i, %c1 : index
    %more = arith.cmpi slt, %next_i, %n : index
    %next_count = arith.select %more, %c64, %c0 : index
    "ascendc.copy_in"(%next, %x, %i, %next_count) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    %at = arith.muli %slot, %c64 : index
    %this = "ascendc.view"(%a, %at) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.exp"(%b, %this) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %v = "ascendc.get_value"(%b, %c0) : (memref<64xf32, "ub">, index) -> f32
    scf.yield %other : index
  }
  "ascendc.copy_in"(%first, %x, %c1, %c64) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// The same with a first copy of something: a barrier for where the loop does not run.
// CHECK-LABEL: func.func @first_copy_in_any_case(
// CHECK:         "ascendc.get_value"
// CHECK:         scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.pipe_barrier"() {pipe = "MTE2"}
// CHECK-NEXT:    "ascendc.copy_in"
func.func @first_copy_in_any_case(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<128xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 512 : i64} : () -> memref<64xf32, "ub">
  %first = "ascendc.view"(%a, %c0) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
  "ascendc.copy_in"(%first, %x, %c0, %c64) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> index {
    %other = arith.subi %c1, %slot : index
    %at_next = arith.muli %other, %c64 : index
    %next = "ascendc.view"(%a, %at_next) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    %next_i = arith.addi %i, %c1 : index
    %more = arith.cmpi slt, %next_i, %n : index
    %next_count = arith.select %more, %c64, %c0 : index
    "ascendc.copy_in"(%next, %x, %i, %next_count) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    %at = arith.muli %slot, %c64 : index
    %this = "ascendc.view"(%a, %at) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.exp"(%b, %this) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %v = "ascendc.get_value"(%b, %c0) : (memref<64xf32, "ub">, index) -> f32
    scf.yield %other : index
  }
  "ascendc.copy_in"(%first, %x, %c1, %c64) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// Rows that lie between each other's: what an instruction leaves out between its repeats is another one's.
// CHECK-LABEL: func.func @strided_noop(
// CHECK-NOT:     "ascendc.pipe_barrier"
// CHECK:         return
func.func @strided_noop(%s: f32) attributes {ascend.kernel} {
  %c64 = arith.constant 64 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<256xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 1024 : i64} : () -> memref<256xf32, "ub">
  %upper = "ascendc.view"(%a, %c64) : (memref<256xf32, "ub">, index) -> memref<192xf32, "ub">
  "ascendc.copy_strided"(%a, %b) {mask = 64 : i64, repeat = 2 : i64, strides = array<i32: 1, 1, 16, 16>}
    : (memref<256xf32, "ub">, memref<256xf32, "ub">) -> ()
  "ascendc.copy_strided"(%upper, %b) {mask = 64 : i64, repeat = 2 : i64, strides = array<i32: 1, 1, 16, 16>}
    : (memref<192xf32, "ub">, memref<256xf32, "ub">) -> ()
  return
}

// -----

// The flag from the vector unit to the copies out is set before the vector unit has waited for the first half: behind the
// loop in which the halves take turns it says nothing of that copy either.
// CHECK-LABEL: func.func @not_known_where_the_flag_is_set(
// CHECK:         "ascendc.duplicate"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "V_MTE3"
// CHECK:         "ascendc.wait_flag"() {event = "V_MTE3"
// CHECK-NEXT:    "ascendc.copy_out"
// CHECK:         "ascendc.wait_flag"() {event = "MTE2_MTE3"
// CHECK:         "ascendc.copy_out"
func.func @not_known_where_the_flag_is_set(
  %x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">, %n: index, %s: f32
) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %e = "ascendc.local_tensor"() {name_hint = "e", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %d = "ascendc.local_tensor"() {name_hint = "d", offset = 512 : i64} : () -> memref<128xf32, "ub">
  %first = "ascendc.view"(%d, %c0) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
  "ascendc.copy_in"(%first, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  "ascendc.duplicate"(%b, %s) : (memref<64xf32, "ub">, f32) -> ()
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> index {
    %other = arith.subi %c1, %slot : index
    %at = arith.muli %slot, %c64 : index
    %this = "ascendc.view"(%d, %at) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.exp"(%e, %this) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    scf.yield %other : index
  }
  "ascendc.copy_out"(%out, %b, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%out, %first, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

// An instruction that folds the two parts of one half waits for the copy into that half, not for the next one.
// CHECK-LABEL: func.func @parts_of_one_half(
// CHECK:         scf.for
// CHECK:           "ascendc.copy_in"
// CHECK-NEXT:      "ascendc.set_flag"() {event = "MTE2_V"
// CHECK-NOT:       "ascendc.wait_flag"() {event = "MTE2_V"
// CHECK:           "ascendc.max"
// CHECK:           "ascendc.wait_flag"() {event = "MTE2_V"
// CHECK:           scf.yield
func.func @parts_of_one_half(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %d = "ascendc.local_tensor"() {name_hint = "d", offset = 0 : i64} : () -> memref<256xf32, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 1024 : i64} : () -> memref<64xf32, "ub">
  %first = "ascendc.view"(%d, %c0) : (memref<256xf32, "ub">, index) -> memref<128xf32, "ub">
  "ascendc.copy_in"(%first, %x, %n, %c128) : (memref<128xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> index {
    %other = arith.subi %c1, %slot : index
    %at = arith.muli %slot, %c128 : index
    %to = arith.muli %other, %c128 : index
    %this = "ascendc.view"(%d, %at) : (memref<256xf32, "ub">, index) -> memref<128xf32, "ub">
    %that = "ascendc.view"(%d, %to) : (memref<256xf32, "ub">, index) -> memref<128xf32, "ub">
    "ascendc.copy_in"(%that, %x, %n, %c128) : (memref<128xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
    %low = "ascendc.view"(%this, %c0) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    %high = "ascendc.view"(%this, %c64) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.max"(%m, %low, %high) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    scf.yield %other : index
  }
  return
}
