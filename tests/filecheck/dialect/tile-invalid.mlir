// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @load_element(%x: memref<?xf32, "gm">, %n: index) {
  // expected-error@below {{'source' has elements f32, 'value' has bf16}}
  %0 = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xbf16>
  return
}

// -----

func.func @two_dimensions(%x: memref<?xf32, "gm">, %n: index) {
  // expected-error@below {{a tile is a one-dimensional tensor of static shape, got tensor<2x8xf32>}}
  %0 = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<2x8xf32>
  return
}

// -----

func.func @dynamic_tile(%t: tensor<?xf32>, %x: memref<?xf32, "gm">, %n: index) {
  // expected-error@below {{a tile is a one-dimensional tensor of static shape}}
  "tile.store"(%t, %x, %n, %n) : (tensor<?xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

func.func @group(%t: tensor<100xf32>) {
  // expected-error@below {{'group' must divide the 100 elements of 'x', got 64}}
  %0 = "tile.reduce"(%t) {kind = "add", group = 64 : i64} : (tensor<100xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @reduce_result(%t: tensor<128xf32>) {
  // expected-error@below {{128 elements in groups of 64 give 2 results, got 1}}
  %0 = "tile.reduce"(%t) {kind = "add", group = 64 : i64} : (tensor<128xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @reduce_kind(%t: tensor<128xf32>) {
  // expected-error@below {{attribute 'kind' must be one of "add", "max", "min", got "mul"}}
  %0 = "tile.reduce"(%t) {kind = "mul", group = 64 : i64} : (tensor<128xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @extract_type(%t: tensor<128xf32>, %i: index) {
  // expected-error@below {{an element of tensor<128xf32> is a f32, got i32}}
  %0 = "tile.extract"(%t, %i) : (tensor<128xf32>, index) -> i32
  return
}

// -----

func.func @mask_length(%t: tensor<128xf32>, %m: tensor<64xi1>) {
  // expected-error@below {{'x' has 128 elements, 'mask' 64}}
  %0, %1 = "tile.compress"(%t, %m) : (tensor<128xf32>, tensor<64xi1>) -> (tensor<128xf32>, index)
  return
}

// -----

func.func @mask_type(%t: tensor<128xf32>) {
  // expected-error@below {{'mask' must have elements i1, got f32}}
  %0, %1 = "tile.compress"(%t, %t) : (tensor<128xf32>, tensor<128xf32>) -> (tensor<128xf32>, index)
  return
}

// -----

func.func @load_wide(%x: memref<?xi64, "gm">, %n: index) {
  // expected-error@below {{elements i64 are loaded as a multiple of 2 i32, got tensor<7xi32>}}
  %0 = "tile.load"(%x, %n, %n) : (memref<?xi64, "gm">, index, index) -> tensor<7xi32>
  return
}

// -----

func.func @store_wide(%x: memref<?xi64, "gm">, %t: tensor<8xf32>, %n: index) {
  // expected-error@below {{elements i64 are stored from a multiple of 2 i32, got tensor<8xf32>}}
  "tile.store"(%t, %x, %n, %n) : (tensor<8xf32>, memref<?xi64, "gm">, index, index) -> ()
  return
}

// -----

func.func @repeat(%x: tensor<16xf32>) {
  // expected-error@below {{16 elements, repeated, are no 40 elements}}
  %0 = "tile.repeat"(%x) {group = 8 : i64} : (tensor<16xf32>) -> tensor<40xf32>
  return
}
