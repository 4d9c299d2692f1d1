// RUN: jascend-opt %s --split-input-file --verify-diagnostics | jascend-opt --split-input-file | FileCheck %s
// RUN: jascend-opt %s --split-input-file --verify-diagnostics --mlir-print-op-generic | jascend-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @lists(
// CHECK:         "ascendc.sort32"(%arg0, %arg2, %arg3) : (memref<256xf32, "ub">, memref<128xf32, "ub">, memref<128xi32, "ub">) -> ()
// CHECK:         "ascendc.mrg_sort"(%arg1, %arg0) {repeat = 1 : i64, run = 32 : i64, ways = 4 : i64}
// CHECK:         "ascendc.mrg_sort_lists"(%arg0, %arg2, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} :
// CHECK:         "ascendc.gather_pattern"(%arg3, %arg1) {pattern = 2 : i64} : (memref<128xi32, "ub">, memref<256xf32, "ub">) -> ()
func.func @lists(%p: memref<256xf32, "ub">, %q: memref<256xf32, "ub">, %s: memref<128xf32, "ub">, %i: memref<128xi32, "ub">) {
  "ascendc.sort32"(%p, %s, %i) : (memref<256xf32, "ub">, memref<128xf32, "ub">, memref<128xi32, "ub">) -> ()
  "ascendc.mrg_sort"(%q, %p) {repeat = 1 : i64, run = 32 : i64, ways = 4 : i64} : (memref<256xf32, "ub">, memref<256xf32, "ub">) -> ()
  "ascendc.mrg_sort_lists"(%p, %s, %s) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
    : (memref<256xf32, "ub">, memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
  "ascendc.gather_pattern"(%i, %q) {pattern = 2 : i64} : (memref<128xi32, "ub">, memref<256xf32, "ub">) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @moves(
// CHECK:         "ascendc.gather"(%arg0, %arg1, %arg2) : (memref<64xbf16, "ub">, memref<128xbf16, "ub">, memref<64xi32, "ub">) -> ()
// CHECK:         "ascendc.scatter"(%arg1, %arg0, %arg2)
// CHECK:         "ascendc.gather_mask"(%arg0, %arg0, %arg3)
// CHECK:         "ascendc.bitwise_and"(%arg3, %arg3, %arg3)
// CHECK:         "ascendc.bitwise_or"(%arg3, %arg3, %arg3)
// CHECK:         "ascendc.shift_right"(%arg2, %arg2, %arg4) {logical = true}
// CHECK:         "ascendc.shift_left"(%arg2, %arg2, %arg4) : (memref<64xi32, "ub">, memref<64xi32, "ub">, i32) -> ()
func.func @moves(%x: memref<64xbf16, "ub">, %y: memref<128xbf16, "ub">, %o: memref<64xi32, "ub">, %m: memref<8xui8, "ub">, %s: i32) {
  "ascendc.gather"(%x, %y, %o) : (memref<64xbf16, "ub">, memref<128xbf16, "ub">, memref<64xi32, "ub">) -> ()
  "ascendc.scatter"(%y, %x, %o) : (memref<128xbf16, "ub">, memref<64xbf16, "ub">, memref<64xi32, "ub">) -> ()
  %n = "ascendc.gather_mask"(%x, %x, %m) : (memref<64xbf16, "ub">, memref<64xbf16, "ub">, memref<8xui8, "ub">) -> index
  "ascendc.bitwise_and"(%m, %m, %m) : (memref<8xui8, "ub">, memref<8xui8, "ub">, memref<8xui8, "ub">) -> ()
  "ascendc.bitwise_or"(%m, %m, %m) : (memref<8xui8, "ub">, memref<8xui8, "ub">, memref<8xui8, "ub">) -> ()
  "ascendc.shift_right"(%o, %o, %s) {logical = true} : (memref<64xi32, "ub">, memref<64xi32, "ub">, i32) -> ()
  "ascendc.shift_left"(%o, %o, %s) : (memref<64xi32, "ub">, memref<64xi32, "ub">, i32) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @scan(
// CHECK:         "ascendc.block_sum_first"(%arg0, %arg1) {lanes = 3 : i64, repeat = 2 : i64}
// CHECK:         "ascendc.add_lane"(%arg2, %arg1, %arg1) {lane = 7 : i64, repeat = 2 : i64}
func.func @scan(%s: memref<16xf32, "ub">, %x: memref<128xf32, "ub">, %y: memref<128xf32, "ub">) {
  "ascendc.block_sum_first"(%s, %x) {lanes = 3 : i64, repeat = 2 : i64} : (memref<16xf32, "ub">, memref<128xf32, "ub">) -> ()
  "ascendc.add_lane"(%y, %x, %x) {lane = 7 : i64, repeat = 2 : i64} : (memref<128xf32, "ub">, memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_sort(%p: memref<64xf32, "ub">, %s: memref<64xf32, "ub">, %i: memref<64xi32, "ub">) {
  // expected-error@below {{32 scores a repeat give 64 lanes of pairs, got 64 scores and 64 lanes}}
  "ascendc.sort32"(%p, %s, %i) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xi32, "ub">) -> ()
  return
}

// -----

func.func @invalid_sort_of_half(%p: memref<64xf32, "ub">, %s: memref<32xf16, "ub">, %i: memref<32xi32, "ub">) {
  // expected-error@below {{'scores' must have elements f32, got f16}}
  "ascendc.sort32"(%p, %s, %i) : (memref<64xf32, "ub">, memref<32xf16, "ub">, memref<32xi32, "ub">) -> ()
  return
}

// -----

// A call handles at most 255 repeats of 32 scores.
func.func @invalid_sort_repeats(%p: memref<16384xf32, "ub">, %s: memref<8192xf32, "ub">, %i: memref<8192xi32, "ub">) {
  // expected-error@below {{1 to 255 repeats are possible, got 256}}
  "ascendc.sort32"(%p, %s, %i) : (memref<16384xf32, "ub">, memref<8192xf32, "ub">, memref<8192xi32, "ub">) -> ()
  return
}

// -----

func.func @invalid_merge_repeat(%p: memref<256xf32, "ub">, %q: memref<256xf32, "ub">) {
  // expected-error@below {{only merges of 4 lists repeat, got 2 repeats of 2}}
  "ascendc.mrg_sort"(%q, %p) {repeat = 2 : i64, run = 32 : i64, ways = 2 : i64} : (memref<256xf32, "ub">, memref<256xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_merge_run(%p: memref<16384xf32, "ub">, %q: memref<16384xf32, "ub">) {
  // expected-error@below {{'run' must be 1 to 4095 pairs, got 4096}}
  "ascendc.mrg_sort"(%q, %p) {repeat = 1 : i64, run = 4096 : i64, ways = 2 : i64} : (memref<16384xf32, "ub">, memref<16384xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_lists(%p: memref<256xf32, "ub">, %q: memref<256xf32, "ub">) {
  // expected-error@below {{'dst' must have 512 lanes, those of all lists, got 256}}
  "ascendc.mrg_sort_lists"(%q, %p, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (memref<256xf32, "ub">, memref<256xf32, "ub">, memref<256xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_merge_lanes(%p: memref<256xf32, "ub">, %q: memref<256xf32, "ub">) {
  // expected-error@below {{1 times 3 lists of 32 pairs are 192 lanes, got 256}}
  "ascendc.mrg_sort"(%q, %p) {repeat = 1 : i64, run = 32 : i64, ways = 3 : i64} : (memref<256xf32, "ub">, memref<256xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_pattern(%p: memref<256xf32, "ub">, %q: memref<128xf32, "ub">) {
  // expected-error@below {{pattern 3 keeps one element of 4, got 128 of 256}}
  "ascendc.gather_pattern"(%q, %p) {pattern = 3 : i64} : (memref<128xf32, "ub">, memref<256xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_offsets(%x: memref<64xf32, "ub">, %o: memref<32xi32, "ub">) {
  // expected-error@below {{buffers differ in length: 'dst' 64, 'offsets' 32}}
  "ascendc.gather"(%x, %x, %o) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<32xi32, "ub">) -> ()
  return
}

// -----

func.func @invalid_lanes(%s: memref<8xf32, "ub">, %x: memref<64xf32, "ub">) {
  // expected-error@below {{'lanes' must be 1 to 8, got 9}}
  "ascendc.block_sum_first"(%s, %x) {lanes = 9 : i64, repeat = 1 : i64} : (memref<8xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_repeat(%x: memref<64xf32, "ub">) {
  // expected-error@below {{64 elements are no 1 to 255 repeats of 64, 'repeat' is 2}}
  "ascendc.add_lane"(%x, %x, %x) {lane = 0 : i64, repeat = 2 : i64} : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  return
}

// -----

func.func @invalid_shift(%o: memref<64xi32, "ub">, %s: f32) {
  // expected-error@below {{'scalar' must be i32, got f32}}
  "ascendc.shift_left"(%o, %o, %s) : (memref<64xi32, "ub">, memref<64xi32, "ub">, f32) -> ()
  return
}
