// RUN: jascend-opt %s --split-input-file --verify-diagnostics

// Runs that Sort32 and merges of up to four lists make.
func.func @invalid_sort_run(%s: tensor<160xf32>, %i: tensor<160xi32>) {
  // expected-error@below {{'run' must be one of 32, 64, 96, 128, 256, 384, 512, 1024, 1536, 2048, 4096, 6144, 8192, got 160}}
  %0 = "tile.sort"(%s, %i) {run = 160 : i64} : (tensor<160xf32>, tensor<160xi32>) -> tensor<320xf32>
  return
}

// -----

func.func @invalid_sort_length(%s: tensor<96xf32>, %i: tensor<96xi32>) {
  // expected-error@below {{'run' must divide the 96 elements of 'scores', got 64}}
  %0 = "tile.sort"(%s, %i) {run = 64 : i64} : (tensor<96xf32>, tensor<96xi32>) -> tensor<192xf32>
  return
}

// -----

func.func @invalid_sort_indices(%s: tensor<64xf32>, %i: tensor<32xi32>) {
  // expected-error@below {{'indices' must have 64 elements, one a score, got 32}}
  %0 = "tile.sort"(%s, %i) {run = 32 : i64} : (tensor<64xf32>, tensor<32xi32>) -> tensor<128xf32>
  return
}

// -----

func.func @invalid_sort_element(%s: tensor<64xf16>, %i: tensor<64xi32>) {
  // expected-error@below {{'scores' must have elements f32, got f16}}
  %0 = "tile.sort"(%s, %i) {run = 32 : i64} : (tensor<64xf16>, tensor<64xi32>) -> tensor<128xf32>
  return
}

// -----

func.func @invalid_sort_pairs(%s: tensor<64xf32>, %i: tensor<64xi32>) {
  // expected-error@below {{'pairs' must have 128 elements, two a score, got 64}}
  %0 = "tile.sort"(%s, %i) {run = 32 : i64} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
  return
}

// -----

func.func @invalid_merge_ways(%p: tensor<640xf32>) {
  // expected-error@below {{'ways' must be 2 to 4, got 5}}
  %0 = "tile.merge"(%p) {run = 64 : i64, ways = 5 : i64} : (tensor<640xf32>) -> tensor<640xf32>
  return
}

// -----

// A list of MrgSort has at most 4095 pairs.
func.func @invalid_merge_run(%p: tensor<16384xf32>) {
  // expected-error@below {{'run' must be a multiple of 4 up to 4095, got 4096}}
  %0 = "tile.merge"(%p) {run = 4096 : i64, ways = 2 : i64} : (tensor<16384xf32>) -> tensor<16384xf32>
  return
}

// -----

func.func @invalid_merge_length(%p: tensor<384xf32>) {
  // expected-error@below {{the 384 lanes of 'pairs' are no multiple of 2 runs of 64 pairs}}
  %0 = "tile.merge"(%p) {run = 64 : i64, ways = 2 : i64} : (tensor<384xf32>) -> tensor<384xf32>
  return
}

// -----

func.func @invalid_unpack(%p: tensor<128xf32>) {
  // expected-error@below {{'indices' must have 64 elements, one a pair, got 128}}
  %0, %1 = "tile.unpack"(%p) : (tensor<128xf32>) -> (tensor<64xf32>, tensor<128xi32>)
  return
}

// -----

func.func @invalid_gather_indices(%x: tensor<64xf32>, %i: tensor<64xf32>) {
  // expected-error@below {{'indices' must have elements i32, got f32}}
  %0 = "tile.gather"(%x, %i) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return
}

// -----

func.func @invalid_gather_element(%x: tensor<64xi8>, %i: tensor<64xi32>) {
  // expected-error@below {{'x' must have elements f32 or i32 or f16 or bf16 or i16, got i8}}
  %0 = "tile.gather"(%x, %i) : (tensor<64xi8>, tensor<64xi32>) -> tensor<64xi8>
  return
}

// -----

func.func @invalid_scatter_into(%x: tensor<64xf32>, %i: tensor<64xi32>, %into: tensor<128xf16>) {
  // expected-error@below {{'into' must have elements f32, got f16}}
  %0 = "tile.scatter"(%x, %i, %into) : (tensor<64xf32>, tensor<64xi32>, tensor<128xf16>) -> tensor<128xf16>
  return
}

// -----

func.func @invalid_find_first(%x: tensor<64xi32>) {
  // expected-error@below {{'mask' must have elements i1, got i32}}
  %0 = "tile.find_first"(%x) : (tensor<64xi32>) -> index
  return
}

// -----

func.func @invalid_lists(%p: tensor<64xf32>) {
  // expected-error@below {{'value' must have 128 elements, those of all lists, got 64}}
  %0 = "tile.merge_lists"(%p, %p) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return
}

// -----

func.func @invalid_list_length(%p: tensor<64xf32>, %q: tensor<12xf32>) {
  // expected-error@below {{'second' must have a multiple of 4 pairs up to 4095, got 12 lanes}}
  %0 = "tile.merge_lists"(%p, %q) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<64xf32>, tensor<12xf32>) -> tensor<76xf32>
  return
}
