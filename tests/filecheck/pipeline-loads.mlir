// RUN: jascend-opt %s --pipeline-loads --split-input-file | FileCheck %s
// RUN: jascend-opt %s --pipeline-loads --remarks --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY

// The load of the next chunk stands before the work on this one; the last iteration loads nothing.
// CHECK-LABEL: func.func @chunks(
// CHECK:         %[[ANY:.*]] = arith.cmpi slt, %c0, %[[N:.*]] : index
// CHECK:         %[[COUNT:.*]] = arith.select %[[ANY]], %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %[[FIRST:.*]] = "tile.load"(%{{.*}}, %c0, %[[COUNT]])
// CHECK-NEXT:    scf.for %[[I:.*]] = %c0 to %[[N]] step %c4096 iter_args(%[[X:.*]] = %[[FIRST]])
// CHECK-NEXT:      %[[NEXT:.*]] = arith.addi %[[I]], %c4096 : index
// CHECK-NEXT:      %[[MORE:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]] : index
// CHECK-NEXT:      %[[AHEAD:.*]] = arith.select %[[MORE]], %[[NEXT]], %[[I]] : index
// CHECK:           %[[LEFT:.*]] = arith.minsi
// CHECK:           %[[SOME:.*]] = arith.select %[[MORE]], %[[LEFT]], %{{.*}} : index
// CHECK-NEXT:      %[[LOADED:.*]] = "tile.load"(%{{.*}}, %[[AHEAD]], %[[SOME]])
// CHECK:           math.exp %[[X]]
// CHECK-NOT:       "tile.load"
// CHECK:           scf.yield %[[LOADED]]
// WHY: remark: pipeline-loads: passed: 1 load of 993 cycles beside 1297 cycles of work: loaded an iteration ahead
// WHY: remark: pipeline-loads: passed: loops that load an iteration ahead: 1 of 1
func.func @chunks(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  scf.for %i = %c0 to %n step %c4096 {
    %left = arith.subi %n, %i : index
    %count = arith.minsi %left, %c4096 : index
    %a = "tile.load"(%x, %i, %count) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %e = math.exp %a : tensor<4096xf32>
    %l = math.log %e : tensor<4096xf32>
    "tile.store"(%l, %out, %i, %count) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  return
}

// -----

// A loop that certainly runs needs no question before its first load.
// CHECK-LABEL: func.func @certain(
// CHECK-NOT:     arith.cmpi slt, %c0
// CHECK:         "tile.load"(%{{.*}}, %c0, %c4096)
// CHECK-NEXT:    scf.for
func.func @certain(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %c8192 step %c4096 {
    %a = "tile.load"(%x, %i, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %e = math.exp %a : tensor<4096xf32>
    %l = math.log %e : tensor<4096xf32>
    "tile.store"(%l, %out, %i, %c4096) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  return
}

// -----

// What else the loop carries stays.
// CHECK-LABEL: func.func @carries_more(
// CHECK:         %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[X:.*]] = %{{.*}}) -> (f32, tensor<4096xf32>)
// CHECK:         "tile.store"
// CHECK:         return
func.func @carries_more(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">, %zero: f32) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %total = scf.for %i = %c0 to %c8192 step %c4096 iter_args(%sum = %zero) -> f32 {
    %a = "tile.load"(%x, %i, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %e = math.exp %a : tensor<4096xf32>
    %part = "tile.reduce"(%e) {kind = "add", group = 4096 : i64} : (tensor<4096xf32>) -> tensor<1xf32>
    %value = "tile.extract"(%part, %c0) : (tensor<1xf32>, index) -> f32
    %next = arith.addf %sum, %value : f32
    scf.yield %next : f32
  }
  %t = tensor.splat %total : tensor<8xf32>
  "tile.store"(%t, %out, %c0, %c0) : (tensor<8xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// What an iteration stores the next one may load: such a load stays where it is.
// CHECK-LABEL: func.func @own_memory_noop(
// CHECK-NOT:     iter_args
// CHECK:         return
func.func @own_memory_noop(%x: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %c8192 step %c4096 {
    %a = "tile.load"(%x, %i, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %e = math.exp %a : tensor<4096xf32>
    "tile.store"(%e, %x, %i, %c4096) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  return
}

// -----

// So does one whose place is known only when the iteration before has run.
// CHECK-LABEL: func.func @place_from_data_noop(
// CHECK-NOT:     -> (index, tensor
// CHECK:         return
func.func @place_from_data_noop(%x: memref<?xf32, "gm">, %where: memref<?xi32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %end = scf.for %i = %c0 to %c8192 step %c4096 iter_args(%at = %c0) -> index {
    %a = "tile.load"(%x, %at, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %e = math.exp %a : tensor<4096xf32>
    %value = "tile.extract"(%e, %c8) : (tensor<4096xf32>, index) -> f32
    %whole = arith.fptosi %value : f32 to i32
    %next = arith.index_cast %whole : i32 to index
    scf.yield %next : index
  }
  return
}

// -----

// A small load before much work: nothing to gain.
// CHECK-LABEL: func.func @not_worth_it_noop(
// CHECK-NOT:     iter_args
// CHECK:         return
// WHY: remark: pipeline-loads: missed: 1 load of {{.*}}: not worth loading ahead
// WHY: remark: pipeline-loads: missed: loops that load an iteration ahead: 0 of 1
func.func @not_worth_it_noop(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c4096 = arith.constant 4096 : index
  %c64 = arith.constant 64 : index
  %c131072 = arith.constant 131072 : index
  scf.for %i = %c0 to %c64 step %c8 {
    %a = "tile.load"(%x, %i, %c8) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
    %value = "tile.extract"(%a, %c0) : (tensor<8xf32>, index) -> f32
    scf.for %j = %c0 to %c131072 step %c4096 {
      %s = tensor.splat %value : tensor<4096xf32>
      %e = math.exp %s : tensor<4096xf32>
      "tile.store"(%e, %out, %i, %c8) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
    }
  }
  return
}

// -----

// The first load of a loop begins before the work that stands before it, behind the loads there.
// CHECK-LABEL: func.func @beside_work(
// CHECK:         "tile.load"(%arg1,
// CHECK:         "tile.load"(%arg0,
// CHECK:         "tile.iota"
// CHECK:         scf.for
func.func @beside_work(%x: memref<?xf32, "gm">, %y: memref<?xf32, "gm">, %out: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %scale = "tile.load"(%y, %c0, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
  %ramp = "tile.iota"() : () -> tensor<4096xf32>
  %w = arith.mulf %scale, %ramp : tensor<4096xf32>
  scf.for %i = %c0 to %c8192 step %c4096 {
    %a = "tile.load"(%x, %i, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %b = math.exp %a : tensor<4096xf32>
    %c = math.log %b : tensor<4096xf32>
    %d = math.exp %c : tensor<4096xf32>
    %e = math.log %d : tensor<4096xf32>
    %f = math.exp %e : tensor<4096xf32>
    %g = arith.mulf %f, %w : tensor<4096xf32>
    "tile.store"(%g, %out, %i, %c4096) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  return
}

// -----

// A load that fills its tile has nothing to pad, and nothing reads what the last iteration does not load. The comment of
// its stage stays.
// CHECK-LABEL: func.func @full(
// CHECK:         "tile.load"(%{{.*}}, %c0, %{{.*}}) : (memref
// CHECK:         scf.for
// CHECK:           "tile.load"(%{{.*}}) {ascend.part_end = "{{[^"]*}}"} : (memref
// CHECK:           math.exp %{{.*}} {ascend.comment = "The row."}
func.func @full(%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %c8192 step %c4096 {
    %a = "tile.load"(%x, %i, %c4096) {pad = 0.0 : f32, ascend.comment = "The row."} : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
    %e = math.exp %a : tensor<4096xf32>
    %l = math.log %e : tensor<4096xf32>
    "tile.store"(%l, %out, %i, %c4096) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  return
}
