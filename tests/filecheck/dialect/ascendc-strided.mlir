// RUN: jascend-opt %s --split-input-file --verify-diagnostics | jascend-opt --split-input-file | FileCheck %s
// RUN: jascend-opt %s --split-input-file --verify-diagnostics --mlir-print-op-generic | jascend-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @every_op(
// CHECK:         %[[BLOCKS:.*]] = "ascendc.block_num"() : () -> index
// CHECK:         %[[WS:.*]] = "ascendc.workspace"(%[[BLOCKS]]) {name_hint = "w"} : (index) -> memref<?x8xf32, "gm">
// CHECK:         "ascendc.copy_in_rows"(%arg0, %[[WS]], %{{.*}}, %{{.*}}) {gm_pitch = 8 : i64, pad = 0.000000e+00 : f32, pitch = 64 : i64, row_length = 7 : i64} :
// CHECK:         "ascendc.copy_out_rows"(%[[WS]], %arg0, %{{.*}}, %{{.*}}) {gm_pitch = 8 : i64, pitch = 64 : i64, row_length = 7 : i64} :
// CHECK:         "ascendc.sync_all"() : () -> ()
// CHECK:         "ascendc.copy_blocks"(%arg0, %arg1) {dst_gap = 56 : i64, length = 8 : i64, repeat = 8 : i64, src_gap = 0 : i64} :
// CHECK:         "ascendc.brcb"(%arg1, %arg2) {repeat = 1 : i64} :
// CHECK:         "ascendc.sub_strided"(%arg0, %arg0, %arg1) {mask = 64 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 0, 8, 8, 1>} :
// CHECK:         "ascendc.add_strided"(%arg0, %arg0, %arg1) {mask = 64 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 0, 8, 8, 1>} :
// CHECK:         "ascendc.mul_strided"(%arg0, %arg0, %arg0) {mask = 32 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>} :
// CHECK:         "ascendc.div_strided"(%arg0, %arg0, %arg0)
// CHECK:         "ascendc.max_strided"(%arg0, %arg0, %arg0)
// CHECK:         "ascendc.min_strided"(%arg0, %arg0, %arg0)
// CHECK:         "ascendc.copy_strided"(%arg0, %arg1) {mask = 64 : i64, repeat = 8 : i64, strides = array<i32: 1, 0, 8, 1>} :
func.func @every_op(%x: memref<512xf32, "ub">, %b: memref<64xf32, "ub">, %s: memref<8xf32, "ub">, %i: index) {
  %n = "ascendc.block_num"() : () -> index
  %w = "ascendc.workspace"(%n) {name_hint = "w"} : (index) -> memref<?x8xf32, "gm">
  "ascendc.copy_in_rows"(%x, %w, %i, %i) {row_length = 7 : i64, gm_pitch = 8 : i64, pitch = 64 : i64, pad = 0.0 : f32}
    : (memref<512xf32, "ub">, memref<?x8xf32, "gm">, index, index) -> ()
  "ascendc.copy_out_rows"(%w, %x, %i, %i) {row_length = 7 : i64, gm_pitch = 8 : i64, pitch = 64 : i64}
    : (memref<?x8xf32, "gm">, memref<512xf32, "ub">, index, index) -> ()
  "ascendc.sync_all"() : () -> ()
  "ascendc.copy_blocks"(%x, %b) {repeat = 8 : i64, length = 8 : i64, src_gap = 0 : i64, dst_gap = 56 : i64}
    : (memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.brcb"(%b, %s) {repeat = 1 : i64} : (memref<64xf32, "ub">, memref<8xf32, "ub">) -> ()
  "ascendc.sub_strided"(%x, %x, %b) {mask = 64 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 0, 8, 8, 1>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.add_strided"(%x, %x, %b) {mask = 64 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 0, 8, 8, 1>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.mul_strided"(%x, %x, %x) {mask = 32 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<512xf32, "ub">) -> ()
  "ascendc.div_strided"(%x, %x, %x) {mask = 32 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<512xf32, "ub">) -> ()
  "ascendc.max_strided"(%x, %x, %x) {mask = 32 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<512xf32, "ub">) -> ()
  "ascendc.min_strided"(%x, %x, %x) {mask = 32 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 1, 8, 8, 8>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<512xf32, "ub">) -> ()
  "ascendc.copy_strided"(%x, %b) {mask = 64 : i64, repeat = 8 : i64, strides = array<i32: 1, 0, 8, 1>}
    : (memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @hull_beyond_the_buffer(%x: memref<512xf32, "ub">, %b: memref<64xf32, "ub">) {
  // expected-error@below {{9 repeats of 64 elements reach byte 2304 of 'dst', which has 2048}}
  "ascendc.add_strided"(%x, %x, %b) {mask = 64 : i64, repeat = 9 : i64, strides = array<i32: 1, 1, 0, 8, 8, 0>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @mask_beyond_a_repeat(%x: memref<512xf32, "ub">, %b: memref<64xf32, "ub">) {
  // expected-error@below {{'mask' must be 1 to 64 elements, got 65}}
  "ascendc.add_strided"(%x, %x, %b) {mask = 65 : i64, repeat = 1 : i64, strides = array<i32: 1, 1, 0, 8, 8, 0>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @strides_missing(%x: memref<512xf32, "ub">, %b: memref<64xf32, "ub">) {
  // expected-error@below {{'strides' must be 6 numbers up to 255, got [1, 1, 8, 8]}}
  "ascendc.add_strided"(%x, %x, %b) {mask = 64 : i64, repeat = 1 : i64, strides = array<i32: 1, 1, 8, 8>}
    : (memref<512xf32, "ub">, memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @too_many_repeats(%b: memref<4096xf32, "ub">, %s: memref<512xf32, "ub">) {
  // expected-error@below {{'repeat' must be 1 to 255, got 256}}
  "ascendc.brcb"(%b, %s) {repeat = 256 : i64} : (memref<4096xf32, "ub">, memref<512xf32, "ub">) -> ()
  return
}

// -----

func.func @blocks_for_few(%b: memref<64xf32, "ub">, %s: memref<16xf32, "ub">) {
  // expected-error@below {{2 repeats read 16 elements and write 512 bytes; 'src' has 64 bytes, 'dst' 256}}
  "ascendc.brcb"(%b, %s) {repeat = 2 : i64} : (memref<64xf32, "ub">, memref<16xf32, "ub">) -> ()
  return
}

// -----

func.func @pieces_of_no_blocks(%x: memref<512xf32, "ub">, %b: memref<64xf32, "ub">) {
  // expected-error@below {{'length' must fill whole blocks of 32 bytes, got 4 elements}}
  "ascendc.copy_blocks"(%x, %b) {repeat = 8 : i64, length = 4 : i64, src_gap = 0 : i64, dst_gap = 8 : i64}
    : (memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @pieces_beyond_the_buffer(%x: memref<512xf32, "ub">, %b: memref<64xf32, "ub">) {
  // expected-error@below {{8 pieces of 8 with gaps of 8 take 120 elements, 'src' has 64}}
  "ascendc.copy_blocks"(%x, %b) {repeat = 8 : i64, length = 8 : i64, src_gap = 8 : i64, dst_gap = 8 : i64}
    : (memref<512xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @rows_of_half_blocks(%x: memref<512xf32, "ub">, %w: memref<?x8xf32, "gm">, %i: index) {
  // expected-error@below {{'pitch' must fill whole blocks of 32 bytes, got 4 elements of 4 bytes}}
  "ascendc.copy_in_rows"(%x, %w, %i, %i) {row_length = 4 : i64, gm_pitch = 8 : i64, pitch = 4 : i64}
    : (memref<512xf32, "ub">, memref<?x8xf32, "gm">, index, index) -> ()
  return
}
