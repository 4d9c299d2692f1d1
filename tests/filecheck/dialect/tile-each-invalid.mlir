// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @core() {
  // expected-error@below {{expected 'index' but got 'i32'}}
  %core, %cores = "tile.core"() : () -> (i32, index)
  return
}

// -----

func.func @sync_all(%n: index) {
  // expected-error@below {{expects exactly 0 operands, but got 1}}
  "tile.sync_all"(%n) : (index) -> ()
  return
}

// -----

func.func @iota() {
  // expected-error@below {{a ramp has elements f32, i32 or i16, got bf16}}
  %0 = "tile.iota"() : () -> tensor<64xbf16>
  return
}
