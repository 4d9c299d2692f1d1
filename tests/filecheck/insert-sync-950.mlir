// RUN: jascend-opt %s --insert-sync='target=ascend950' | FileCheck %s

// Vector instructions of 950 wait for each other; copies and the scalar unit do not.
// CHECK-LABEL: func.func @vector_in_order(
// CHECK:         "ascendc.exp"
// CHECK-NEXT:    "ascendc.abs"
// CHECK-NEXT:    "ascendc.set_flag"() {event = "V_MTE3", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "V_MTE3", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.copy_out"
// CHECK-NOT:     "ascendc.pipe_barrier"
func.func @vector_in_order(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.abs"(%a, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.copy_out"(%x, %a, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}
