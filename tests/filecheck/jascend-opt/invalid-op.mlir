// RUN: jascend-opt %s --verify-diagnostics --split-input-file

// An op that our dialect does not have.
func.func @unknown_op() {
  // expected-error @below {{unregistered operation 'tile.no_such_op' found in dialect ('tile') that does not allow unknown operations}}
  "tile.no_such_op"() : () -> ()
  return
}

// -----

// What IRDL checks.
func.func @operand_count() {
  // expected-error @+1 {{op expects exactly 0 operands, but got 1}}
  %0 = "tile.iota"(%x) : (tensor<8xi32>) -> tensor<8xi32>
  %x = "tile.iota"() : () -> tensor<8xi32>
  return
}

// -----

// What IRDL cannot check.
func.func @element_type() {
  // expected-error-re @below {{a ramp has elements f{{32|64}}, i32 or i16, got i{{[0-9]+}}}}
  %0 = "tile.iota"() : () -> tensor<8xi8>
  return
}

// -----

func.func @at_an_unknown_location() {
  // expected-error @unknown {{a ramp has elements f32, i32 or i16, got i8}}
  %0 = "tile.iota"() : () -> tensor<8xi8> loc(unknown)
  return
}

// -----

// expected-error @+2 {{expects different type than prior uses}}
func.func @note(%x: i32) {
  %0 = arith.addi %x, %x : i64
  // expected-note @-2 {{prior use here}}
  return
}

// -----

// A part without mistakes is fine beside the others.
func.func @good() { return }
