// RUN: jascend-opt %s --split-input-file --verify-diagnostics | jascend-opt --split-input-file | FileCheck %s
// RUN: jascend-opt %s --split-input-file --verify-diagnostics --mlir-print-op-generic | jascend-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @sums(
// CHECK:         "tile.cumsum"(%arg0) {group = 1024 : i64} : (tensor<2048xf32>) -> tensor<2048xf32>
func.func @sums(%x: tensor<2048xf32>) {
  %0 = "tile.cumsum"(%x) {group = 1024 : i64} : (tensor<2048xf32>) -> tensor<2048xf32>
  return
}

// -----

// CHECK-LABEL: func.func @narrow(
// CHECK:         "tile.quantize"(%arg0) : (tensor<64xf32>) -> tensor<64xi8>
// CHECK:         "tile.quantize"(%arg0) : (tensor<64xf32>) -> tensor<64xf4E2M1FN>
func.func @narrow(%x: tensor<64xf32>) {
  %0 = "tile.quantize"(%x) : (tensor<64xf32>) -> tensor<64xi8>
  %1 = "tile.quantize"(%x) : (tensor<64xf32>) -> tensor<64xf4E2M1FN>
  return
}

// -----

func.func @invalid_group(%x: tensor<1024xf32>) {
  // expected-error@below {{'group' must be a multiple of 8 that divides the 1024 elements of 'x', got 100}}
  %0 = "tile.cumsum"(%x) {group = 100 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  return
}

// -----

func.func @invalid_length(%x: tensor<72xf32>) {
  // expected-error@below {{'x' must have a multiple of 64 elements, got 72}}
  %0 = "tile.cumsum"(%x) {group = 8 : i64} : (tensor<72xf32>) -> tensor<72xf32>
  return
}

// -----

func.func @invalid_sum_of_integers(%x: tensor<64xi32>) {
  // expected-error@below {{'x' must have elements f32, got i32}}
  %0 = "tile.cumsum"(%x) {group = 8 : i64} : (tensor<64xi32>) -> tensor<64xi32>
  return
}

// -----

func.func @invalid_sums(%x: tensor<64xf32>) {
  // expected-error@below {{'value' must be tensor<64xf32>, got tensor<8xf32>}}
  %0 = "tile.cumsum"(%x) {group = 8 : i64} : (tensor<64xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @invalid_format(%x: tensor<64xf32>) {
  // expected-error@below {{'value' must have elements i8 or i4 or f8E4M3FN or f8E5M2 or f8E8M0FNU or f4E2M1FN or ui8, got f16}}
  %0 = "tile.quantize"(%x) : (tensor<64xf32>) -> tensor<64xf16>
  return
}

// -----

func.func @invalid_source(%x: tensor<64xbf16>) {
  // expected-error@below {{'x' must have elements f32, got bf16}}
  %0 = "tile.quantize"(%x) : (tensor<64xbf16>) -> tensor<64xi8>
  return
}

// -----

func.func @invalid_count(%x: tensor<64xf32>) {
  // expected-error@below {{'value' must have 64 elements, got 32}}
  %0 = "tile.quantize"(%x) : (tensor<64xf32>) -> tensor<32xi8>
  return
}
