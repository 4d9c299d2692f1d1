// RUN: jascend-opt %s --lower-to-ascendc | FileCheck %s

// A tile that is loaded an iteration ahead has one buffer of two halves; the loop carries which half is whose.
// CHECK-LABEL: func.func @ahead(
// CHECK:         %[[BOTH:.*]] = "ascendc.local_tensor"() {name_hint = "load"} : () -> memref<8192xf32, "ub">
// CHECK:         %[[FIRST:.*]] = "ascendc.view"(%[[BOTH]], %{{.*}}) : (memref<8192xf32, "ub">, index) -> memref<4096xf32, "ub">
// CHECK:         "ascendc.copy_in"(%[[FIRST]],
// CHECK:         scf.for {{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}) -> (index)
// CHECK:           %[[OTHER:.*]] = arith.subi %{{.*}}, %[[SLOT]] : index
// CHECK:           %[[AT:.*]] = arith.muli %[[SLOT]], %{{.*}} : index
// CHECK-NEXT:      %[[THIS:.*]] = "ascendc.view"(%[[BOTH]], %[[AT]])
// CHECK:           %[[TO:.*]] = arith.muli %[[OTHER]], %{{.*}} : index
// CHECK-NEXT:      %[[NEXT:.*]] = "ascendc.view"(%[[BOTH]], %[[TO]])
// CHECK:           "ascendc.copy_in"(%[[NEXT]],
// CHECK:           "ascendc.exp"(%{{.*}}, %[[THIS]])
// CHECK:           scf.yield %[[OTHER]] : index
func.func @ahead(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c65536 = arith.constant 65536 : index
  %first = "tile.load"(%x, %c0, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
  %last = scf.for %i = %c0 to %c65536 step %c4096 iter_args(%a = %first) -> (tensor<4096xf32>) {
    %ahead = arith.addi %i, %c4096 : index
    %next = "tile.load"(%x, %ahead, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %e = math.exp %a : tensor<4096xf32>
    "tile.store"(%e, %out, %i, %c4096) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
    scf.yield %next : tensor<4096xf32>
  }
  return
}
