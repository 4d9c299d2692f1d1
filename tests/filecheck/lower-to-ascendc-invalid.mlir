// RUN: jascend-opt %s --lower-to-ascendc --split-input-file --verify-diagnostics

func.func @no_api(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
  // expected-error@below {{'math.tan' on tiles has no counterpart in the Ascend C API}}
  %t = math.tan %v : tensor<64xf32>
  "tile.store"(%t, %x, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

func.func @no_tree(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<300xf32>
  // expected-error@below {{a reduction of groups of 100 is no tree of eights down to 64}}
  %s = "tile.reduce"(%v) {kind = "add", group = 100 : i64} : (tensor<300xf32>) -> tensor<3xf32>
  %e = "tile.extract"(%s, %c0) : (tensor<3xf32>, index) -> f32
  return
}

// -----

func.func @unordered_equal(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
  // expected-error@below {{comparison 'ueq' on tiles has no counterpart in the Ascend C API}}
  %m = arith.cmpf ueq, %v, %v : tensor<64xf32>
  %s = arith.select %m, %v, %v : tensor<64xi1>, tensor<64xf32>
  "tile.store"(%s, %x, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}
