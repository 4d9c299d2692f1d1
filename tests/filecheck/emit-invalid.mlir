// RUN: jascend-opt %s --emit --split-input-file --verify-diagnostics

func.func @no_expression() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<8xf32, "ub">
  %c = arith.constant 1.0 : f32
  // expected-error@below {{'math.exp' has no text in Ascend C}}
  %e = math.exp %c : f32
  "ascendc.duplicate"(%x, %e) : (memref<8xf32, "ub">, f32) -> ()
  return
}

// -----

// A condition that reads a buffer would have to be synchronised inside the parentheses of `while`.
func.func @condition_reads() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<8xi32, "ub">
  %c0 = arith.constant 0 : index
  %i0 = arith.constant 0 : i32
  // expected-error@below {{a while loop is printed only if its condition is scalar arithmetic over the carried values}}
  %r = scf.while (%a = %i0) : (i32) -> i32 {
    %v = "ascendc.get_value"(%x, %c0) : (memref<8xi32, "ub">, index) -> i32
    %go = arith.cmpi slt, %a, %v : i32
    scf.condition(%go) %a : i32
  } do {
  ^bb0(%a: i32):
    scf.yield %a : i32
  }
  return
}
