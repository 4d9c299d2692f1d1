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
