// RUN: jascend-opt %s --split-input-file --verify-diagnostics

// One rule of every op that `ascendc-invalid.mlir` and its like have none of; what siblings share is told there.

func.func @mul(%x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 64, 'src1' 32}}
  "ascendc.mul"(%x, %x, %y) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<32xf32, "ub">) -> ()
  return
}

// -----

func.func @max(%x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 64, 'src1' 32}}
  "ascendc.max"(%x, %x, %y) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<32xf32, "ub">) -> ()
  return
}

// -----

func.func @min(%x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 64, 'src1' 32}}
  "ascendc.min"(%x, %x, %y) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<32xf32, "ub">) -> ()
  return
}

// -----

func.func @adds(%x: memref<64xf32, "ub">, %s: f16) {
  // expected-error@below {{'scalar' must be f32, got f16}}
  "ascendc.adds"(%x, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f16) -> ()
  return
}

// -----

func.func @muls(%x: memref<64xf32, "ub">, %s: f16) {
  // expected-error@below {{'scalar' must be f32, got f16}}
  "ascendc.muls"(%x, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f16) -> ()
  return
}

// -----

func.func @maxs(%x: memref<64xf32, "ub">, %s: f16) {
  // expected-error@below {{'scalar' must be f32, got f16}}
  "ascendc.maxs"(%x, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f16) -> ()
  return
}

// -----

func.func @mins(%x: memref<64xf32, "ub">, %s: f16) {
  // expected-error@below {{'scalar' must be f32, got f16}}
  "ascendc.mins"(%x, %x, %s) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f16) -> ()
  return
}

// -----

func.func @shift_right(%x: memref<64xi32, "ub">, %s: i16) {
  // expected-error@below {{'scalar' must be i32, got i16}}
  "ascendc.shift_right"(%x, %x, %s) : (memref<64xi32, "ub">, memref<64xi32, "ub">, i16) -> ()
  return
}

// -----

func.func @compare_scalar(%m: memref<8xui8, "ub">, %x: memref<64xf32, "ub">, %s: i32) {
  // expected-error@below {{'scalar' must be f32, got i32}}
  "ascendc.compare_scalar"(%m, %x, %s) {mode = "GE"} : (memref<8xui8, "ub">, memref<64xf32, "ub">, i32) -> ()
  return
}

// -----

func.func @select_scalar(%m: memref<8xui8, "ub">, %x: memref<64xf32, "ub">, %s: bf16) {
  // expected-error@below {{'scalar' must be f32, got bf16}}
  "ascendc.select_scalar"(%x, %m, %x, %s) : (memref<64xf32, "ub">, memref<8xui8, "ub">, memref<64xf32, "ub">, bf16) -> ()
  return
}

// -----

func.func @select_mask(%m: memref<16xui8, "ub">, %x: memref<64xf32, "ub">) {
  // expected-error@below {{the mask of 64 elements is ui8[8], got memref<16xui8, "ub">}}
  "ascendc.select"(%x, %m, %x, %x) : (memref<64xf32, "ub">, memref<16xui8, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @ln(%x: memref<64xi32, "ub">) {
  // expected-error@below {{'dst' must have elements f32 or f16, got i32}}
  "ascendc.ln"(%x, %x) : (memref<64xi32, "ub">, memref<64xi32, "ub">) -> ()
  return
}

// -----

func.func @sqrt(%x: memref<64xi32, "ub">) {
  // expected-error@below {{'dst' must have elements f32 or f16, got i32}}
  "ascendc.sqrt"(%x, %x) : (memref<64xi32, "ub">, memref<64xi32, "ub">) -> ()
  return
}

// -----

func.func @abs(%x: memref<64xf32, "ub">, %y: memref<64xf16, "ub">) {
  // expected-error@below {{'src' has elements f16, 'dst' has f32}}
  "ascendc.abs"(%x, %y) : (memref<64xf32, "ub">, memref<64xf16, "ub">) -> ()
  return
}

// -----

func.func @bitwise_and(%x: memref<64xi16, "ub">, %y: memref<32xi16, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 64, 'src1' 32}}
  "ascendc.bitwise_and"(%x, %x, %y) : (memref<64xi16, "ub">, memref<64xi16, "ub">, memref<32xi16, "ub">) -> ()
  return
}

// -----

func.func @bitwise_or(%x: memref<64xi16, "ub">, %y: memref<32xi16, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 64, 'src1' 32}}
  "ascendc.bitwise_or"(%x, %x, %y) : (memref<64xi16, "ub">, memref<64xi16, "ub">, memref<32xi16, "ub">) -> ()
  return
}

// -----

func.func @create_vec_index(%x: memref<64xbf16, "ub">) {
  // expected-error@below {{'dst' must have elements}}
  "ascendc.create_vec_index"(%x) : (memref<64xbf16, "ub">) -> ()
  return
}

// -----

func.func @copy(%x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src' 32}}
  "ascendc.copy"(%x, %y) : (memref<64xf32, "ub">, memref<32xf32, "ub">) -> ()
  return
}

// -----

func.func @copy_of_half_a_block(%x: memref<4xf32, "ub">) {
  // expected-error@below {{whole blocks of 32 bytes are copied, got 16 bytes}}
  "ascendc.copy"(%x, %x) : (memref<4xf32, "ub">, memref<4xf32, "ub">) -> ()
  return
}

// -----

func.func @copy_out(%x: memref<64xf32, "ub">, %gm: memref<?xf16, "gm">, %n: index) {
  // expected-error@below {{'dst' has elements f16, 'src' has f32}}
  "ascendc.copy_out"(%gm, %x, %n, %n) : (memref<?xf16, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

func.func @copy_out_rows(%x: memref<64xf32, "ub">, %gm: memref<?x8xf32, "gm">, %n: index) {
  // expected-error@below {{'row_length' must be 1 to both pitches, got 9 for 16 and 8}}
  "ascendc.copy_out_rows"(%gm, %x, %n, %n) {row_length = 9 : i64, gm_pitch = 8 : i64, pitch = 16 : i64}
    : (memref<?x8xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}

// -----

func.func @workspace(%n: index) {
  // expected-error@below {{'memory' must be a memref in memory space "gm", got memref<?xf32, "ub">}}
  %0 = "ascendc.workspace"(%n) {name_hint = "w"} : (index) -> memref<?xf32, "ub">
  return
}

// -----

func.func @view_of_a_part_of_a_block(%x: memref<64xf32, "ub">) {
  %c4 = arith.constant 4 : index
  // expected-error@below {{256 bytes from byte 16 on: a view starts at a multiple of 32 bytes and ends within the 256 bytes of 'buffer'}}
  %0 = "ascendc.view"(%x, %c4) : (memref<64xf32, "ub">, index) -> memref<64xf32, "ub">
  return
}

// -----

func.func @sub_strided(%x: memref<64xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 0}}
  "ascendc.sub_strided"(%x, %x, %x) {mask = 64 : i64, repeat = 0 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @mul_strided(%x: memref<64xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 0}}
  "ascendc.mul_strided"(%x, %x, %x) {mask = 64 : i64, repeat = 0 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @div_strided(%x: memref<64xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 0}}
  "ascendc.div_strided"(%x, %x, %x) {mask = 64 : i64, repeat = 0 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @max_strided(%x: memref<64xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 0}}
  "ascendc.max_strided"(%x, %x, %x) {mask = 64 : i64, repeat = 0 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @min_strided(%x: memref<64xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 0}}
  "ascendc.min_strided"(%x, %x, %x) {mask = 64 : i64, repeat = 0 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @copy_strided(%x: memref<64xf32, "ub">) {
  // expected-error@below {{2 repeats of 64 elements reach byte 512 of 'dst', which has 256}}
  "ascendc.copy_strided"(%x, %x) {mask = 64 : i64, repeat = 2 : i64, strides = array<i32: 1, 1, 8, 0>} : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @block_reduce_min(%r: memref<8xf32, "ub">, %x: memref<64xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 0}}
  "ascendc.block_reduce_min"(%r, %x) {repeat = 0 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @whole_reduce_min(%r: memref<8xf32, "ub">, %x: memref<64xf32, "ub">) {
  // expected-error@below {{'mask' must be 1 to 64 elements, got 0}}
  "ascendc.whole_reduce_min"(%r, %x) {mask = 0 : i64, repeat = 1 : i64, src_rep_stride = 8 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @gather_mask(%m: memref<16xui8, "ub">, %x: memref<64xf32, "ub">) {
  // expected-error@below {{the mask of 64 elements is ui8[8], got memref<16xui8, "ub">}}
  %0 = "ascendc.gather_mask"(%x, %x, %m) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<16xui8, "ub">) -> index
  return
}

// -----

func.func @scatter(%x: memref<64xf32, "ub">, %o: memref<32xi32, "ub">) {
  // expected-error@below {{buffers differ in length: 'src' 64, 'offsets' 32}}
  "ascendc.scatter"(%x, %x, %o) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<32xi32, "ub">) -> ()
  return
}

// -----

func.func @block_idx() {
  // expected-error@below {{expected 'index' but got 'i32'}}
  %0 = "ascendc.block_idx"() : () -> i32
  return
}

// -----

func.func @block_num() {
  // expected-error@below {{expected 'index' but got 'i32'}}
  %0 = "ascendc.block_num"() : () -> i32
  return
}

// -----

func.func @tiling() {
  // expected-error@below {{attribute "field" is expected but not provided}}
  %0 = "ascendc.tiling"() : () -> index
  return
}

// -----

func.func @sync_all(%n: index) {
  // expected-error@below {{expects exactly 0 operands, but got 1}}
  "ascendc.sync_all"(%n) : (index) -> ()
  return
}

// -----

func.func @sub(%x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 64, 'src1' 32}}
  "ascendc.sub"(%x, %x, %y) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<32xf32, "ub">) -> ()
  return
}

// -----

func.func @div(%x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src0' 64, 'src1' 32}}
  "ascendc.div"(%x, %x, %y) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<32xf32, "ub">) -> ()
  return
}

// -----

func.func @compare(%m: memref<8xui8, "ub">, %x: memref<64xf32, "ub">, %y: memref<32xf32, "ub">) {
  // expected-error@below {{buffers differ in length: 'src0' 64, 'src1' 32}}
  "ascendc.compare"(%m, %x, %y) {mode = "GE"} : (memref<8xui8, "ub">, memref<64xf32, "ub">, memref<32xf32, "ub">) -> ()
  return
}

// -----

func.func @bitwise_not(%x: memref<64xi16, "ub">, %y: memref<32xi16, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'src' 32}}
  "ascendc.bitwise_not"(%x, %y) : (memref<64xi16, "ub">, memref<32xi16, "ub">) -> ()
  return
}
