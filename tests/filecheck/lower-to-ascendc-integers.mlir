// RUN: jascend-opt %s --lower-to-ascendc --split-input-file | FileCheck %s

// Not, by exclusive or with all ones; a bit cast is a view.
// CHECK-LABEL: func.func @bits(
// CHECK-NOT:     "ascendc.duplicate"
// CHECK:         "ascendc.compare_scalar"(%[[EQUAL:.*]], %[[X:.*]], %{{.*}}) {mode = "EQ"} : (memref<8xui8, "ub">, memref<64xi32, "ub">, i32)
// CHECK:         "ascendc.bitwise_not"(%[[OTHER:.*]], %[[EQUAL]])
// CHECK:         %[[F:.*]] = "ascendc.view"(%[[X]], %{{.*}}) : (memref<64xi32, "ub">, index) -> memref<64xf32, "ub">
// CHECK:         %[[D:.*]] = "ascendc.local_tensor"
// CHECK-NEXT:    "ascendc.shift_right"(%[[D]], %[[X]], %{{.*}}) {logical = true}
// CHECK:         "ascendc.copy_out"(%{{.*}}, %[[F]],
func.func @bits(%x: memref<64xi32, "gm">, %y: memref<64xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %three = arith.constant dense<3> : tensor<64xi32>
  %true = arith.constant dense<true> : tensor<64xi1>
  %v = "tile.load"(%x, %c0, %c64) : (memref<64xi32, "gm">, index, index) -> tensor<64xi32>
  %equal = arith.cmpi eq, %v, %three : tensor<64xi32>
  %other = arith.xori %equal, %true : tensor<64xi1>
  %f = arith.bitcast %v : tensor<64xi32> to tensor<64xf32>
  %w = arith.shrui %v, %three : tensor<64xi32>
  "tile.store"(%f, %y, %c0, %c64) : (tensor<64xf32>, memref<64xf32, "gm">, index, index) -> ()
  "tile.store"(%w, %x, %c0, %c64) : (tensor<64xi32>, memref<64xi32, "gm">, index, index) -> ()
  return
}

// -----

// A difference with a scalar is a sum with its opposite; of a scalar less a tile there is no such form.
// CHECK-LABEL: func.func @differences(
// CHECK:         %[[MINUS:.*]] = arith.subi %{{.*}}, %arg1 : i32
// CHECK:         "ascendc.adds"(%{{.*}}, %{{.*}}, %[[MINUS]])
// CHECK:         "ascendc.sub"(
func.func @differences(%x: memref<64xi32, "gm">, %s: i32) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %splat = tensor.splat %s : tensor<64xi32>
  %v = "tile.load"(%x, %c0, %c64) : (memref<64xi32, "gm">, index, index) -> tensor<64xi32>
  %a = arith.subi %v, %splat : tensor<64xi32>
  %b = arith.subi %splat, %a : tensor<64xi32>
  "tile.store"(%b, %x, %c0, %c64) : (tensor<64xi32>, memref<64xi32, "gm">, index, index) -> ()
  return
}
