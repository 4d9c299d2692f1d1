// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @no_parts(%n: index) {
  // expected-error@below {{'parts' must be at least 1, got 0}}
  %first, %last, %part, %rounds = "tile.block_rows"(%n) {parts = 0 : i64} : (index) -> (index, index, index, index)
  return
}

// -----

func.func @a_slot_shares_a_block() {
  // expected-error@below {{'elements' must fill whole blocks of 32 bytes, got 3 of f32}}
  %0 = "tile.workspace"() {name = "w", elements = 3 : i64, per = "core"} : () -> memref<?x3xf32, "gm">
  return
}

// -----

func.func @workspace_of_the_wrong_shape() {
  // expected-error@below {{8 elements per row are a memref<?x8xf32, "gm">, got memref<8xf32, "gm">}}
  %0 = "tile.workspace"() {name = "w", elements = 8 : i64, per = "row"} : () -> memref<8xf32, "gm">
  return
}

// -----

func.func @row_beyond_its_pitch(%x: memref<?xf32, "gm">, %n: index) {
  // expected-error@below {{'row_length' must be 1 to both pitches, got 9 for 8 and 16}}
  %0 = "tile.load_rows"(%x, %n, %n) {row_length = 9 : i64, gm_pitch = 16 : i64, pitch = 8 : i64} : (memref<?xf32, "gm">, index, index) -> tensor<16xf32>
  return
}

// -----

func.func @pitch_of_no_blocks(%x: memref<?xf32, "gm">, %n: index) {
  // expected-error@below {{'pitch' must fill whole blocks of 32 bytes, got 9 of f32}}
  %0 = "tile.load_rows"(%x, %n, %n) {row_length = 9 : i64, gm_pitch = 9 : i64, pitch = 9 : i64} : (memref<?xf32, "gm">, index, index) -> tensor<18xf32>
  return
}

// -----

func.func @broken_rows(%x: memref<?xf32, "gm">, %n: index, %t: tensor<20xf32>) {
  // expected-error@below {{1 to 4095 rows of 8 elements make a tile, got one of 20}}
  "tile.store_rows"(%t, %x, %n, %n) {row_length = 8 : i64, gm_pitch = 8 : i64, pitch = 8 : i64} : (tensor<20xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

func.func @narrow_broadcast(%t: tensor<8xf16>) {
  // expected-error@below {{'width' must be a multiple of 16 elements f16, which are 32 bytes, got 8}}
  %0 = "tile.broadcast"(%t) {width = 8 : i64} : (tensor<8xf16>) -> tensor<64xf16>
  return
}

// -----

func.func @rows_of_half_bytes(%x: memref<?x64xi4, "gm">, %n: index) {
  // expected-error@below {{rows of whole bytes can be copied, but two elements i4 share a byte}}
  %0 = "tile.load_rows"(%x, %n, %n) {row_length = 64 : i64, gm_pitch = 64 : i64, pitch = 64 : i64} : (memref<?x64xi4, "gm">, index, index) -> tensor<64xi4>
  return
}

// -----

func.func @take_half_bytes(%t: tensor<64xi4>) {
  // expected-error@below {{lanes of whole bytes can be taken, but two elements i4 share a byte}}
  %0 = "tile.take"(%t) {group = 64 : i64, start = 0 : i64, count = 32 : i64} : (tensor<64xi4>) -> tensor<32xi4>
  return
}

// -----

func.func @take_beyond_the_group(%t: tensor<32xf32>) {
  // expected-error@below {{4 lanes from 6 on are not within a group of 8}}
  %0 = "tile.take"(%t) {group = 8 : i64, start = 6 : i64, count = 4 : i64} : (tensor<32xf32>) -> tensor<16xf32>
  return
}

// -----

func.func @take_of_the_wrong_length(%t: tensor<32xf32>) {
  // expected-error@below {{4 lanes of every group of 8 are 16 elements, got 8}}
  %0 = "tile.take"(%t) {group = 8 : i64, start = 0 : i64, count = 4 : i64} : (tensor<32xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @spread_to_less(%t: tensor<32xf32>) {
  // expected-error@below {{'width' must be at least 'group', got 8 for 16}}
  %0 = "tile.spread"(%t) {group = 16 : i64, width = 8 : i64, fill = 0.0 : f32} : (tensor<32xf32>) -> tensor<16xf32>
  return
}

// -----

func.func @spread_of_no_blocks(%t: tensor<32xf32>) {
  // expected-error@below {{'group' and 'width' must be multiples of 32 bytes, got 4 and 8}}
  %0 = "tile.spread"(%t) {group = 4 : i64, width = 8 : i64, fill = 0.0 : f32} : (tensor<32xf32>) -> tensor<64xf32>
  return
}
