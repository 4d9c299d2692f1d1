// RUN: jascend-opt %s --remove-dead-ops | FileCheck %s

// CHECK-LABEL: func.func @dead_and_repeated(
// CHECK-NEXT:    %[[IOTA:.*]] = "tile.iota"()
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %[[IOTA]], %[[IOTA]]
// CHECK-NEXT:    return %[[SUM]]
func.func @dead_and_repeated() -> tensor<64xi32> {
  %a = "tile.iota"() : () -> tensor<64xi32>
  %b = "tile.iota"() : () -> tensor<64xi32>
  %sum = arith.addi %a, %b : tensor<64xi32>
  %unused = arith.muli %sum, %sum : tensor<64xi32>
  return %sum : tensor<64xi32>
}

// A chain through an upstream dialect, which upstream's cse cannot follow.
// CHECK-LABEL: func.func @repeated_chain(
// CHECK-COUNT-1: "tile.reduce"
// CHECK-COUNT-1: math.exp
// CHECK-COUNT-1: "tile.reduce"
// CHECK-NOT:     "tile.reduce"
// CHECK:         return %[[X:.*]], %[[X]]
func.func @repeated_chain(%x: tensor<64xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %a0 = "tile.reduce"(%x) {kind = "max", group = 8 : i64} : (tensor<64xf32>) -> tensor<8xf32>
  %a1 = math.exp %a0 : tensor<8xf32>
  %a2 = "tile.reduce"(%a1) {kind = "add", group = 8 : i64} : (tensor<8xf32>) -> tensor<1xf32>
  %b0 = "tile.reduce"(%x) {kind = "max", group = 8 : i64} : (tensor<64xf32>) -> tensor<8xf32>
  %b1 = math.exp %b0 : tensor<8xf32>
  %b2 = "tile.reduce"(%b1) {kind = "add", group = 8 : i64} : (tensor<8xf32>) -> tensor<1xf32>
  return %a2, %b2 : tensor<1xf32>, tensor<1xf32>
}

// An op inside a loop repeats one before the loop.
// CHECK-LABEL: func.func @inside_a_loop(
// CHECK:         %[[IOTA:.*]] = "tile.iota"()
// CHECK:         scf.for
// CHECK-NOT:       "tile.iota"
// CHECK:           arith.addi %{{.*}}, %[[IOTA]]
func.func @inside_a_loop(%n: index) -> tensor<8xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %init = "tile.iota"() : () -> tensor<8xi32>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> tensor<8xi32> {
    %ramp = "tile.iota"() : () -> tensor<8xi32>
    %next = arith.addi %acc, %ramp : tensor<8xi32>
    scf.yield %next : tensor<8xi32>
  }
  return %last : tensor<8xi32>
}

// CHECK-LABEL: func.func @dead_loop(
// CHECK-NEXT:    return
func.func @dead_loop(%x: memref<?xf32, "gm">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %tile = "tile.load"(%x, %i, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
    %exp = math.exp %tile : tensor<8xf32>
  }
  return
}

// The block that uses the value is listed before the one that defines it.
// CHECK-LABEL: func.func @dead_across_blocks(
// CHECK-NOT:     "tile.iota"
// CHECK-NOT:     arith.addi
// CHECK:         return
func.func @dead_across_blocks() {
  cf.br ^first
^second:
  %sum = arith.addi %ramp, %ramp : tensor<8xi32>
  return
^first:
  %ramp = "tile.iota"() : () -> tensor<8xi32>
  cf.br ^second
}

// Loads with nothing between them that writes.
// CHECK-LABEL: func.func @repeated_load(
// CHECK-COUNT-1: "tile.load"
// CHECK-NOT:     "tile.load"
func.func @repeated_load(%x: memref<?xf32, "gm">, %n: index) -> tensor<8xf32> {
  %a = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
  %b = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
  %sum = arith.addf %a, %b : tensor<8xf32>
  return %sum : tensor<8xf32>
}

// Not merged: the store may have changed what the second load reads.
// CHECK-LABEL: func.func @store_between_loads(
// CHECK:         "tile.load"
// CHECK:         "tile.store"
// CHECK:         "tile.load"
func.func @store_between_loads(%x: memref<?xf32, "gm">, %n: index) -> tensor<8xf32> {
  %a = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
  "tile.store"(%a, %x, %n, %n) : (tensor<8xf32>, memref<?xf32, "gm">, index, index) -> ()
  %b = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
  %sum = arith.addf %a, %b : tensor<8xf32>
  return %sum : tensor<8xf32>
}

// Not merged: a loop between them stores.
// CHECK-LABEL: func.func @storing_loop_between_loads(
// CHECK-COUNT-2: "tile.load"
func.func @storing_loop_between_loads(%x: memref<?xf32, "gm">, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
  scf.for %i = %c0 to %n step %c1 {
    "tile.store"(%a, %x, %i, %n) : (tensor<8xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  %b = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
  %sum = arith.addf %a, %b : tensor<8xf32>
  return %sum : tensor<8xf32>
}

// Not merged: the load in the loop runs after the store of the turn before.
// CHECK-LABEL: func.func @load_inside_a_loop(
// CHECK:         "tile.load"
// CHECK:         scf.for
// CHECK:           "tile.load"
func.func @load_inside_a_loop(%x: memref<?xf32, "gm">, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
  scf.for %i = %c0 to %n step %c1 {
    %b = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
    %sum = arith.addf %a, %b : tensor<8xf32>
    "tile.store"(%sum, %x, %n, %n) : (tensor<8xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  return
}

// Not removed: a store has no results to be used.
// CHECK-LABEL: func.func @store(
// CHECK:         "tile.store"
func.func @store(%tile: tensor<8xf32>, %x: memref<?xf32, "gm">, %n: index) {
  "tile.store"(%tile, %x, %n, %n) : (tensor<8xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// Not removed: a call may do anything.
// CHECK-LABEL: func.func @call(
// CHECK:         call @store
func.func @call(%tile: tensor<8xf32>, %x: memref<?xf32, "gm">, %n: index) {
  call @store(%tile, %x, %n) : (tensor<8xf32>, memref<?xf32, "gm">, index) -> ()
  return
}

// Not merged: the attributes differ.
// CHECK-LABEL: func.func @other_attribute(
// CHECK-COUNT-2: "tile.reduce"
func.func @other_attribute(%x: tensor<8xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %a = "tile.reduce"(%x) {kind = "max", group = 8 : i64} : (tensor<8xf32>) -> tensor<1xf32>
  %b = "tile.reduce"(%x) {kind = "add", group = 8 : i64} : (tensor<8xf32>) -> tensor<1xf32>
  return %a, %b : tensor<1xf32>, tensor<1xf32>
}

// Not merged: a predicate is a property, not an attribute in the dictionary.
// CHECK-LABEL: func.func @other_property(
// CHECK:         arith.cmpi slt
// CHECK:         arith.cmpi sgt
func.func @other_property(%a: i32, %b: i32) -> (i1, i1) {
  %less = arith.cmpi slt, %a, %b : i32
  %more = arith.cmpi sgt, %a, %b : i32
  return %less, %more : i1, i1
}

// Not merged: the result types differ.
// CHECK-LABEL: func.func @other_type(
// CHECK-COUNT-2: "tile.iota"
func.func @other_type() -> (tensor<8xi32>, tensor<8xf32>) {
  %a = "tile.iota"() : () -> tensor<8xi32>
  %b = "tile.iota"() : () -> tensor<8xf32>
  return %a, %b : tensor<8xi32>, tensor<8xf32>
}

// Not merged: neither branch dominates the other.
// CHECK-LABEL: func.func @both_branches(
// CHECK-COUNT-2: "tile.iota"
func.func @both_branches(%c: i1) -> tensor<8xi32> {
  %r = scf.if %c -> tensor<8xi32> {
    %a = "tile.iota"() : () -> tensor<8xi32>
    scf.yield %a : tensor<8xi32>
  } else {
    %b = "tile.iota"() : () -> tensor<8xi32>
    scf.yield %b : tensor<8xi32>
  }
  return %r : tensor<8xi32>
}

// Not merged: the first is inside the branch and does not dominate the second.
// CHECK-LABEL: func.func @after_the_branch(
// CHECK-COUNT-2: "tile.iota"
func.func @after_the_branch(%c: i1, %x: memref<?xi32, "gm">, %n: index) -> tensor<8xi32> {
  scf.if %c {
    %a = "tile.iota"() : () -> tensor<8xi32>
    "tile.store"(%a, %x, %n, %n) : (tensor<8xi32>, memref<?xi32, "gm">, index, index) -> ()
  }
  %b = "tile.iota"() : () -> tensor<8xi32>
  return %b : tensor<8xi32>
}

// Not merged: blocks side by side.
// CHECK-LABEL: func.func @blocks(
// CHECK-COUNT-2: "tile.iota"
func.func @blocks(%c: i1) -> tensor<8xi32> {
  cf.cond_br %c, ^a, ^b
^a:
  %a = "tile.iota"() : () -> tensor<8xi32>
  return %a : tensor<8xi32>
^b:
  %b = "tile.iota"() : () -> tensor<8xi32>
  return %b : tensor<8xi32>
}

// Not merged: a function sees no values around it.
// CHECK-LABEL: module @isolated
// CHECK:         func.func @inner
// CHECK-NEXT:      arith.constant 7
module @isolated {
  %outer = arith.constant 7 : i32
  func.func @inner() -> i32 {
    %inner = arith.constant 7 : i32
    return %inner : i32
  }
}

// A branch keeps the results that are used, with their names, and what else it does.
// CHECK-LABEL: func.func @branch_with_unused_results(
// CHECK:         %[[Y:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT:      "tile.store"
// CHECK-NEXT:      scf.yield %{{.*}} : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[B:.*]] = arith.mulf
// CHECK-NEXT:      scf.yield %[[B]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[Y]] : f32
func.func @branch_with_unused_results(
    %c: i1, %a: f32, %t: tensor<64xf32>, %out: memref<?xf32, "gm">, %n: index) -> f32 {
  %x, %y, %z = scf.if %c -> (f32, f32, index) {
    %sum = arith.addf %a, %a : f32
    "tile.store"(%t, %out, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
    scf.yield %sum, %a, %n : f32, f32, index
  } else {
    %product = arith.mulf %a, %a : f32
    %twice = arith.addi %n, %n : index
    scf.yield %a, %product, %twice : f32, f32, index
  }
  return %y : f32
}

// A branch inside another one, whose results only the outer one's unused results take.
// CHECK-LABEL: func.func @branches_with_unused_results(
// CHECK:         scf.if %{{.*}} {
// CHECK-NEXT:      "tile.store"
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @branches_with_unused_results(%c: i1, %a: f32, %t: tensor<64xf32>, %out: memref<?xf32, "gm">, %n: index) {
  %x = scf.if %c -> (f32) {
    %inner = scf.if %c -> (f32) {
      %sum = arith.addf %a, %a : f32
      scf.yield %sum : f32
    } else {
      scf.yield %a : f32
    }
    "tile.store"(%t, %out, %n, %n) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
    scf.yield %inner : f32
  } else {
    scf.yield %a : f32
  }
  return
}
