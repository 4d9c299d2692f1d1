// RUN: jascend-opt %s --lower-to-ascendc --split-input-file | FileCheck %s

// A first value that is read later is copied; the loop then updates one buffer in place.
// CHECK-LABEL: func.func @in_place(
// CHECK:         %[[V:.*]] = "ascendc.local_tensor"() {name_hint = "load"}
// CHECK:         %[[SUM:.*]] = "ascendc.local_tensor"() {name_hint = "carried"}
// CHECK-NEXT:    "ascendc.copy"(%[[SUM]], %[[V]])
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "ascendc.add"(%[[SUM]], %[[SUM]], %[[V]])
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.copy_out"(%arg0, %[[SUM]],
func.func @in_place(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %v) -> tensor<64xf32> {
    %next = arith.addf %acc, %v : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  "tile.store"(%sum, %x, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// Tiles that change places: one is kept aside.
// CHECK-LABEL: func.func @change_places(
// CHECK:         scf.for
// CHECK:           %[[ASIDE:.*]] = "ascendc.local_tensor"() {name_hint = "kept_aside"}
// CHECK-NEXT:      "ascendc.copy"(%[[ASIDE]], %[[A:.*]]) :
// CHECK-NEXT:      "ascendc.copy"(%[[A]], %[[B:.*]]) :
// CHECK-NEXT:      "ascendc.copy"(%[[B]], %[[ASIDE]]) :
func.func @change_places(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = "tile.load"(%x, %c0, %n) : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
  %w = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
  %p, %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v, %b = %w) -> (tensor<64xf32>, tensor<64xf32>) {
    scf.yield %b, %a : tensor<64xf32>, tensor<64xf32>
  }
  "tile.store"(%p, %x, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  "tile.store"(%q, %x, %c0, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// A branch in a branch yields into the buffer of the outer one.
// CHECK-LABEL: func.func @branch_in_branch(
// CHECK:         %[[V:.*]] = "ascendc.local_tensor"() {name_hint = "load"}
// CHECK:         %[[R:.*]] = "ascendc.local_tensor"() {name_hint = "chosen"}
// CHECK-NEXT:    scf.if %arg2 {
// CHECK-NEXT:      scf.if %arg3 {
// CHECK-NEXT:        "ascendc.add"(%[[R]], %[[V]], %[[V]])
// CHECK-NEXT:      } else {
// CHECK-NEXT:        "ascendc.mul"(%[[R]], %[[V]], %[[V]])
// CHECK-NEXT:      }
// CHECK-NEXT:    } else {
// CHECK-NEXT:      "ascendc.exp"(%[[R]], %[[V]])
// CHECK-NEXT:    }
// CHECK-NEXT:    "ascendc.copy_out"(%arg0, %[[R]],
func.func @branch_in_branch(%x: memref<?xf32, "gm">, %n: index, %c: i1, %d: i1) attributes {ascend.kernel} {
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
  %r = scf.if %c -> tensor<64xf32> {
    %s = scf.if %d -> tensor<64xf32> {
      %twice = arith.addf %v, %v : tensor<64xf32>
      scf.yield %twice : tensor<64xf32>
    } else {
      %square = arith.mulf %v, %v : tensor<64xf32>
      scf.yield %square : tensor<64xf32>
    }
    scf.yield %s : tensor<64xf32>
  } else {
    %e = math.exp %v : tensor<64xf32>
    scf.yield %e : tensor<64xf32>
  }
  "tile.store"(%r, %x, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// But not where one side passes on what is there: that is updated in place, then copied.
// CHECK-LABEL: func.func @passes_on(
// CHECK:         %[[V:.*]] = "ascendc.local_tensor"() {name_hint = "load"}
// CHECK:         %[[R:.*]] = "ascendc.local_tensor"() {name_hint = "chosen"}
// CHECK-NEXT:    scf.if %arg2 {
// CHECK:           "ascendc.exp"(%[[E:.*]], %[[V]])
// CHECK-NEXT:      scf.if %arg3 {
// CHECK-NEXT:        "ascendc.add"(%[[E]], %[[V]], %[[V]])
// CHECK-NEXT:      }
// CHECK-NEXT:      "ascendc.copy"(%[[R]], %[[E]])
// CHECK-NEXT:    } else {
func.func @passes_on(%x: memref<?xf32, "gm">, %n: index, %c: i1, %d: i1) attributes {ascend.kernel} {
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
  %r = scf.if %c -> tensor<64xf32> {
    %e = math.exp %v : tensor<64xf32>
    %s = scf.if %d -> tensor<64xf32> {
      %twice = arith.addf %v, %v : tensor<64xf32>
      scf.yield %twice : tensor<64xf32>
    } else {
      scf.yield %e : tensor<64xf32>
    }
    scf.yield %s : tensor<64xf32>
  } else {
    %square = arith.mulf %v, %v : tensor<64xf32>
    scf.yield %square : tensor<64xf32>
  }
  "tile.store"(%r, %x, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// A broadcast that feeds arithmetic is one block a row.
// CHECK-LABEL: func.func @rows(
// CHECK:         "ascendc.brcb"(%[[BLOCKS:.*]], %{{.*}}) {repeat = 1 : i64} : (memref<64xf32, "ub">, memref<8xf32, "ub">)
// CHECK-NOT:     "ascendc.copy
// CHECK:         "ascendc.sub_strided"(%{{.*}}, %{{.*}}, %[[BLOCKS]]) {mask = 64 : i64, repeat = 8 : i64, strides = array<i32: 1, 1, 0, 8, 8, 1>}
func.func @rows(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<512xf32>
  %m = "tile.reduce"(%v) {kind = "max", group = 64 : i64} : (tensor<512xf32>) -> tensor<8xf32>
  %b = "tile.broadcast"(%m) {width = 64 : i64} : (tensor<8xf32>) -> tensor<512xf32>
  %d = arith.subf %v, %b : tensor<512xf32>
  "tile.store"(%d, %x, %n, %n) : (tensor<512xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}
