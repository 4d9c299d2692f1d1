// RUN: jascend-opt %s --verify-ascendc --split-input-file --verify-diagnostics

// Integers are compared for equality only.
func.func @order_of_integers() attributes {ascend.kernel} {
  %i = "ascendc.local_tensor"() {name_hint = "i", offset = 0 : i64} : () -> memref<64xi32, "ub">
  %j = "ascendc.local_tensor"() {name_hint = "j", offset = 256 : i64} : () -> memref<64xi32, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 512 : i64} : () -> memref<8xui8, "ub">
  // expected-error@below {{'ascendc.compare' op on ascend910b compares i32 in mode EQ only, not LT}}
  "ascendc.compare"(%m, %i, %j) {mode = "LT"} : (memref<8xui8, "ub">, memref<64xi32, "ub">, memref<64xi32, "ub">) -> ()
  return
}

// -----

func.func @comparison_of_short_integers(%s: i16) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<128xi16, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 512 : i64} : () -> memref<16xui8, "ub">
  // expected-error@below {{on ascend910b compares i16 not at all}}
  "ascendc.compare_scalar"(%m, %x, %s) {mode = "EQ"} : (memref<16xui8, "ub">, memref<128xi16, "ub">, i16) -> ()
  return
}

// -----

func.func @bf16_arithmetic() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xbf16, "ub">
  // expected-error@below {{on ascend910b takes elements f32 or f16 or i32 or i16, got bf16}}
  "ascendc.add"(%x, %x, %x) : (memref<64xbf16, "ub">, memref<64xbf16, "ub">, memref<64xbf16, "ub">) -> ()
  return
}

// -----

func.func @division_of_integers() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xi32, "ub">
  // expected-error@below {{on ascend910b takes elements f32 or f16, got i32}}
  "ascendc.div"(%x, %x, %x) : (memref<64xi32, "ub">, memref<64xi32, "ub">, memref<64xi32, "ub">) -> ()
  return
}

// -----

func.func @scatter() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %y = "ascendc.local_tensor"() {name_hint = "y", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %o = "ascendc.local_tensor"() {name_hint = "o", offset = 512 : i64} : () -> memref<64xi32, "ub">
  // expected-error@below {{'ascendc.scatter' op does not exist on ascend910b}}
  "ascendc.scatter"(%y, %x, %o) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xi32, "ub">) -> ()
  return
}

// -----

func.func @narrow_floats() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %y = "ascendc.local_tensor"() {name_hint = "y", offset = 256 : i64} : () -> memref<64xf8E4M3FN, "ub">
  // expected-error@below {{on ascend910b casts f32 to f8E4M3FN not at all}}
  "ascendc.cast"(%y, %x) {round_mode = "CAST_RINT"} : (memref<64xf8E4M3FN, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// A mask of 8 elements is one byte: And would be told to do nothing.
func.func @half_a_unit() attributes {ascend.kernel} {
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 0 : i64} : () -> memref<1xui8, "ub">
  // expected-error@below {{'ascendc.bitwise_not' op works on 16-bit units, got 1 bytes}}
  "ascendc.bitwise_not"(%m, %m) : (memref<1xui8, "ub">, memref<1xui8, "ub">) -> ()
  return
}

// -----

func.func @no_address() attributes {ascend.kernel} {
  // expected-error@below {{'ascendc.local_tensor' op has no address: run allocate-ub first}}
  %x = "ascendc.local_tensor"() {name_hint = "x"} : () -> memref<64xf32, "ub">
  return
}

// -----

// The last 8 KB belong to Select.
func.func @reserved_area() attributes {ascend.kernel} {
  // expected-error@below {{'x' lies on bytes 188032 to 188288: a kernel has 188160 bytes of unified buffer on ascend910b}}
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 188032 : i64} : () -> memref<64xf32, "ub">
  return
}

// -----

func.func @copy_beyond_the_buffer(%gm: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c65 = arith.constant 65 : index
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  // expected-error@below {{'ascendc.copy_in' op copies 260 bytes, the buffer has 256}}
  "ascendc.copy_in"(%x, %gm, %c0, %c65) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

func.func @more_rows_than_there_are(%gm: memref<?x10xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  // expected-error@below {{'ascendc.copy_out_rows' op copies 296 bytes, the buffer has 256}}
  "ascendc.copy_out_rows"(%gm, %x, %c0, %c5) {row_length = 10 : i64, gm_pitch = 10 : i64, pitch = 16 : i64}
    : (memref<?x10xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

// Later repeats would read the mask that earlier ones have overwritten.
func.func @select_over_its_mask() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %y = "ascendc.local_tensor"() {name_hint = "y", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 128 : i64} : () -> memref<8xui8, "ub">
  // expected-error@below {{'ascendc.select' op writes bytes 0 to 256 of the unified buffer and reads 'mask' from bytes 128 to 136, which are not the same}}
  "ascendc.select"(%x, %m, %y, %y) : (memref<64xf32, "ub">, memref<8xui8, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @a_block_further_on() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %y = "ascendc.local_tensor"() {name_hint = "y", offset = 32 : i64} : () -> memref<64xf32, "ub">
  // expected-error@below {{writes bytes 32 to 288 of the unified buffer and reads 'src' from bytes 0 to 256, which are not the same}}
  "ascendc.exp"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @gather_in_place() attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %o = "ascendc.local_tensor"() {name_hint = "o", offset = 256 : i64} : () -> memref<64xi32, "ub">
  // expected-error@below {{writes bytes 0 to 256 of the unified buffer and reads 'src' from bytes 0 to 256, which it may not}}
  "ascendc.gather"(%x, %x, %o) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xi32, "ub">) -> ()
  return
}

// -----

// Every repeat writes 8 elements further on, and reads the same block again.
func.func @strides_differ() attributes {ascend.kernel} {
  %a = "ascendc.local_tensor"() {name_hint = "a", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %b = "ascendc.local_tensor"() {name_hint = "b", offset = 256 : i64} : () -> memref<64xf32, "ub">
  // expected-error@below {{writes bytes 0 to 256 of the unified buffer and reads 'src1' from bytes 0 to 32, which are not the same}}
  "ascendc.sub_strided"(%a, %b, %a) {mask = 8 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 0, 1, 1, 0>} : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @flag_set_twice() attributes {ascend.kernel} {
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  // expected-error@below {{sets MTE2_V 0 again before anything has waited for it}}
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  return
}

// -----

func.func @flag_never_set() attributes {ascend.kernel} {
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  // expected-error@below {{waits for MTE2_V 1, which is not set here}}
  "ascendc.wait_flag"() {event = "MTE2_V", event_id = 1 : i64} : () -> ()
  "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  return
}

// -----

func.func @flag_never_waited_for() attributes {ascend.kernel} {
  // expected-error@below {{sets MTE2_V 0, for which nothing waits}}
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  return
}

// -----

// The path that skips the branch never waits.
func.func @wait_in_a_branch(%c: i1) attributes {ascend.kernel} {
  // expected-error@below {{sets MTE2_V 0, for which nothing waits}}
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  // expected-error@below {{leaves MTE2_V 0 other than it was: a branch must set and wait in pairs}}
  scf.if %c {
    "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  }
  return
}

// -----

func.func @set_in_a_loop(%n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@below {{leaves MTE2_V 0 other than it was: an iteration must set and wait in pairs}}
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  }
  return
}
