// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @misaligned() {
  // expected-error@below {{'offset' must be a multiple of 32 bytes, got 100}}
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 100 : i64} : () -> memref<64xf32, "ub">
  return
}

// -----

func.func @buffer_space() {
  // expected-error@below {{'buffer' must be a memref in memory space "ub", got memref<64xf32>}}
  %x = "ascendc.local_tensor"() {name_hint = "x"} : () -> memref<64xf32>
  return
}

// -----

func.func @wrong_way(%x: memref<64xf32, "ub">, %gm: memref<?xf32, "gm">, %n: index) {
  // expected-error@below {{'dst' must be a memref in memory space "ub", got memref<?xf32, "gm">}}
  "ascendc.copy_in"(%gm, %x, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

func.func @copy_converts(%x: memref<64xf32, "ub">, %gm: memref<?xbf16, "gm">, %n: index) {
  // expected-error@below {{'dst' has elements f32, 'src' has bf16}}
  "ascendc.copy_in"(%x, %gm, %n, %n) : (memref<64xf32, "ub">, memref<?xbf16, "gm">, index, index) -> ()
  return
}

// -----

// Scalars have the type of the elements, to the letter.
func.func @duplicate_scalar(%x: memref<64xf32, "ub">, %s: i32) {
  // expected-error@below {{'scalar' must be f32, got i32}}
  "ascendc.duplicate"(%x, %s) : (memref<64xf32, "ub">, i32) -> ()
  return
}

// -----

// The vector unit computes on half and float.
func.func @exp_of_bf16(%x: memref<64xbf16, "ub">) {
  // expected-error@below {{'dst' must have elements f32 or f16, got bf16}}
  "ascendc.exp"(%x, %x) : (memref<64xbf16, "ub">, memref<64xbf16, "ub">) -> ()
  return
}

// -----

func.func @lengths(%x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 32, 'src1' 64}}
  "ascendc.add"(%x, %y, %x) : (memref<64xf32, "ub">, memref<32xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @no_such_cast(%x: memref<64xbf16, "ub">, %y: memref<64xf16, "ub">) {
  // expected-error@below {{no cast from bf16 to f16}}
  "ascendc.cast"(%y, %x) {round_mode = "CAST_NONE"} : (memref<64xf16, "ub">, memref<64xbf16, "ub">) -> ()
  return
}

// -----

func.func @round_mode(%x: memref<64xf32, "ub">, %y: memref<64xbf16, "ub">) {
  // expected-error@below {{a cast from f32 to bf16 takes CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, got CAST_NONE}}
  "ascendc.cast"(%y, %x) {round_mode = "CAST_NONE"} : (memref<64xbf16, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

// A comparison of less than a repeat would be dropped silently.
func.func @compare_count(%m: memref<1xui8, "ub">, %x: memref<8xf32, "ub">, %s: f32) {
  // expected-error@below {{a comparison covers a multiple of 256 bytes, got 8 elements f32}}
  "ascendc.compare_scalar"(%m, %x, %s) {mode = "GE"} : (memref<1xui8, "ub">, memref<8xf32, "ub">, f32) -> ()
  return
}

// -----

func.func @mask_size(%m: memref<16xui8, "ub">, %x: memref<64xf32, "ub">, %s: f32) {
  // expected-error@below {{the mask of 64 elements is ui8[8], got memref<16xui8, "ub">}}
  "ascendc.compare_scalar"(%m, %x, %s) {mode = "GE"} : (memref<16xui8, "ub">, memref<64xf32, "ub">, f32) -> ()
  return
}

// -----

// No product compares bytes. What each of them does compare, `verify-ascendc` knows.
func.func @compare_bytes(%m: memref<32xui8, "ub">, %x: memref<256xi8, "ub">, %s: i8) {
  // expected-error@below {{'src0' must have elements f32 or f16 or i32 or i16 or bf16, got i8}}
  "ascendc.compare_scalar"(%m, %x, %s) {mode = "GE"} : (memref<32xui8, "ub">, memref<256xi8, "ub">, i8) -> ()
  return
}

// -----

func.func @compare_mode(%m: memref<8xui8, "ub">, %x: memref<64xf32, "ub">, %s: f32) {
  // expected-error@below {{attribute 'mode' must be one of "LT", "GT", "EQ", "LE", "GE", "NE", got "UGE"}}
  "ascendc.compare_scalar"(%m, %x, %s) {mode = "UGE"} : (memref<8xui8, "ub">, memref<64xf32, "ub">, f32) -> ()
  return
}

// -----

func.func @repeats(%r: memref<4096xf32, "ub">, %x: memref<32768xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 512}}
  "ascendc.block_reduce_sum"(%r, %x) {repeat = 512 : i64} : (memref<4096xf32, "ub">, memref<32768xf32, "ub">) -> ()
  return
}

// -----

func.func @reads_beyond(%r: memref<8xf32, "ub">, %x: memref<64xf32, "ub">) {
  // expected-error@below {{2 repeats read 128 and write 16 elements; 'src' has 64, 'dst' 8}}
  "ascendc.block_reduce_max"(%r, %x) {repeat = 2 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @whole_mask(%r: memref<8xf32, "ub">, %x: memref<128xf32, "ub">) {
  // expected-error@below {{'mask' must be 1 to 64 elements, got 128}}
  "ascendc.whole_reduce_sum"(%r, %x) {mask = 128 : i64, repeat = 1 : i64, src_rep_stride = 8 : i64} : (memref<8xf32, "ub">, memref<128xf32, "ub">) -> ()
  return
}

// -----

func.func @whole_beyond(%r: memref<8xf32, "ub">, %x: memref<64xf32, "ub">) {
  // expected-error@below {{5 repeats read 80 and write 5 elements; 'src' has 64, 'dst' 8}}
  "ascendc.whole_reduce_max"(%r, %x) {mask = 16 : i64, repeat = 5 : i64, src_rep_stride = 2 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @read_type(%x: memref<64xf32, "ub">, %i: index) {
  // expected-error@below {{an element of 'src' is f32, got i32}}
  %v = "ascendc.get_value"(%x, %i) : (memref<64xf32, "ub">, index) -> i32
  return
}

// -----

func.func @event_id() {
  // expected-error@below {{'event_id' must be 0 to 5 (6 and 7 are reserved), got 6}}
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 6 : i64} : () -> ()
  return
}

// -----

func.func @no_such_event() {
  // expected-error@below {{attribute 'event' must be one of}}
  "ascendc.wait_flag"() {event = "V_V", event_id = 0 : i64} : () -> ()
  return
}

// -----

func.func @no_such_pipe() {
  // expected-error@below {{attribute 'pipe' must be one of "V", "MTE2", "MTE3", "ALL", got "S"}}
  "ascendc.pipe_barrier"() {pipe = "S"} : () -> ()
  return
}
