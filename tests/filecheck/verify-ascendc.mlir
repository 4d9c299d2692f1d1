// RUN: jascend-opt %s --verify-ascendc --split-input-file | FileCheck %s
// RUN: jascend-opt %s --verify-ascendc='target=ascend950' --split-input-file | FileCheck %s

// Elementwise instructions in place, and operands side by side.
// CHECK-LABEL: func.func @in_place
// CHECK: "ascendc.add"(%[[A:[0-9a-z]+]], %[[A]], %[[B:[0-9a-z]+]])
// CHECK: "ascendc.select"(%[[A]], %{{[0-9a-z]+}}, %[[A]], %[[B]])
func.func @in_place() attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 512 : i64} : () -> memref<8xui8, "ub">
  "ascendc.compare"(%m, %a, %b) {mode = "GE"} : (memref<8xui8, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.add"(%a, %a, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.select"(%a, %m, %a, %b) : (memref<64xf32, "ub">, memref<8xui8, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// A strided instruction may write where it reads with the same strides.
// CHECK-LABEL: func.func @strided_in_place
// CHECK: "ascendc.sub_strided"
func.func @strided_in_place() attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  "ascendc.sub_strided"(%a, %a, %b) {mask = 8 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 0, 1, 1, 1>} : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// The halves of a buffer that take turns are apart in every iteration.
// CHECK-LABEL: func.func @turns
// CHECK: "ascendc.exp"
func.func @turns(%n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<128xf32, "ub">
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> (index) {
    %other = arith.subi %c1, %slot : index
    %here = arith.muli %slot, %c64 : index
    %there = arith.muli %other, %c64 : index
    %x = "ascendc.view"(%a, %here) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    %y = "ascendc.view"(%a, %there) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
    "ascendc.exp"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    scf.yield %other : index
  }
  return
}

// -----

// A primed flag: set before the loop, waited for and set again in each iteration, waited for after it.
// CHECK-LABEL: func.func @primed
// CHECK: "ascendc.wait_flag"
func.func @primed(%n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "ascendc.set_flag"() {event = "V_MTE2", event_id = 0 : i64} : () -> ()
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.wait_flag"() {event = "V_MTE2", event_id = 0 : i64} : () -> ()
    "ascendc.set_flag"() {event = "V_MTE2", event_id = 0 : i64} : () -> ()
  }
  "ascendc.wait_flag"() {event = "V_MTE2", event_id = 0 : i64} : () -> ()
  return
}
