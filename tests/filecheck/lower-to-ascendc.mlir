// RUN: jascend-opt %s --lower-to-ascendc --split-input-file | FileCheck %s

// Splats become scalars where the API takes them, and no buffer.
// CHECK-LABEL: func.func @scalars(
// CHECK-NOT:     "ascendc.duplicate"
// CHECK:         %[[X:.*]] = "ascendc.local_tensor"() {name_hint = "load"} : () -> memref<4096xf32, "ub">
// CHECK-NEXT:    "ascendc.copy_in"(%[[X]], %arg0, %arg1, %{{.*}})
// CHECK:         "ascendc.adds"(%[[SUM:.*]], %[[X]], %arg2)
// CHECK:         "ascendc.compare_scalar"(%[[MASK:.*]], %[[SUM]], %arg2) {mode = "GE"}
// CHECK:         "ascendc.select_scalar"(%[[KEPT:.*]], %[[MASK]], %[[SUM]], %arg2)
// CHECK:         "ascendc.copy_out"(%arg0, %[[KEPT]], %arg1,
func.func @scalars(%x: memref<?xf32, "gm">, %offset: index, %s: f32) attributes {ascend.kernel} {
  %c4096 = arith.constant 4096 : index
  %splat = tensor.splat %s : tensor<4096xf32>
  %v = "tile.load"(%x, %offset, %c4096) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
  %sum = arith.addf %v, %splat : tensor<4096xf32>
  %mask = arith.cmpf oge, %sum, %splat : tensor<4096xf32>
  %kept = arith.select %mask, %sum, %splat : tensor<4096xi1>, tensor<4096xf32>
  "tile.store"(%kept, %x, %offset, %c4096) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// Division has no scalar form: the divisor becomes a buffer, once.
// CHECK-LABEL: func.func @divisor(
// CHECK:         %[[D:.*]] = "ascendc.local_tensor"
// CHECK-NEXT:    "ascendc.duplicate"(%[[D]], %arg2)
// CHECK:         "ascendc.div"(%{{.*}}, %{{.*}}, %[[D]])
// CHECK:         "ascendc.copy_out"({{.*}}) {once = true}
func.func @divisor(%x: memref<?xf32, "gm">, %n: index, %s: f32) attributes {ascend.kernel} {
  %splat = tensor.splat %s : tensor<4096xf32>
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
  %q = arith.divf %v, %splat : tensor<4096xf32>
  "tile.store"(%q, %x, %n, %n) {once = true} : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// A tile that the copy may not fill is padded first; one that it fills is not.
// CHECK-LABEL: func.func @padded(
// CHECK:         %[[X:.*]] = "ascendc.local_tensor"
// CHECK:         %[[SHORT:.*]] = arith.cmpi slt, %arg1
// CHECK:         scf.if %[[SHORT]] {
// CHECK:           "ascendc.duplicate"(%[[X]], %{{.*}}) : (memref<4096xbf16, "ub">, bf16)
// CHECK:         "ascendc.copy_in"(%[[X]], %arg0, %arg1, %arg1) {{.*}}pad = 0xFF800000 : f32}
// CHECK:         %[[Y:.*]] = "ascendc.local_tensor"
// CHECK-NOT:     scf.if
// CHECK:         "ascendc.copy_in"(%[[Y]], %arg0, %arg1, %{{[^ ]*}}) : (memref
func.func @padded(%x: memref<?xbf16, "gm">, %n: index) attributes {ascend.kernel} {
  %c4096 = arith.constant 4096 : index
  %a = "tile.load"(%x, %n, %n) {pad = 0xFF800000 : f32} : (memref<?xbf16, "gm">, index, index) -> tensor<4096xbf16>
  %b = "tile.load"(%x, %n, %c4096) {pad = 0xFF800000 : f32} : (memref<?xbf16, "gm">, index, index) -> tensor<4096xbf16>
  "tile.store"(%a, %x, %n, %n) : (tensor<4096xbf16>, memref<?xbf16, "gm">, index, index) -> ()
  "tile.store"(%b, %x, %n, %n) : (tensor<4096xbf16>, memref<?xbf16, "gm">, index, index) -> ()
  return
}

// -----

// Sums of 1024: by blocks to 128 and to 16, then one reduction a group. The API has no unordered comparison: the ordered
// opposite, inverted.
// CHECK-LABEL: func.func @sums(
// CHECK:         "ascendc.block_reduce_sum"(%[[A:.*]], %{{.*}}) {repeat = 64 : i64} : (memref<512xf32, "ub">, memref<4096xf32, "ub">)
// CHECK:         "ascendc.block_reduce_sum"(%[[B:.*]], %[[A]]) {repeat = 8 : i64} : (memref<64xf32, "ub">, memref<512xf32, "ub">)
// CHECK:         "ascendc.whole_reduce_sum"(%[[S:.*]], %[[B]]) {mask = 16 : i64, repeat = 4 : i64, src_rep_stride = 2 : i64} : (memref<4xf32, "ub">
// CHECK:         "ascendc.get_value"(%[[S]], %{{.*}})
// CHECK:         "ascendc.compare_scalar"(%[[OPPOSITE:.*]], %{{.*}}, %{{.*}}) {mode = "LT"}
// CHECK:         "ascendc.bitwise_not"(%[[MASK:.*]], %[[OPPOSITE]])
// CHECK:         "ascendc.gather_mask"(%{{.*}}, %{{.*}}, %[[MASK]])
func.func @sums(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c1 = arith.constant 1 : index
  %v = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<4096xf32>
  %sums = "tile.reduce"(%v) {kind = "add", group = 1024 : i64} : (tensor<4096xf32>) -> tensor<4xf32>
  %s = "tile.extract"(%sums, %c1) : (tensor<4xf32>, index) -> f32
  %splat = tensor.splat %s : tensor<4096xf32>
  %mask = arith.cmpf uge, %v, %splat : tensor<4096xf32>
  %packed, %kept = "tile.compress"(%v, %mask) : (tensor<4096xf32>, tensor<4096xi1>) -> (tensor<4096xf32>, index)
  "tile.store"(%packed, %x, %n, %kept) : (tensor<4096xf32>, memref<?xf32, "gm">, index, index) -> ()
  return
}

// -----

// Rows are dealt out by what the host puts into the tiling data.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[CORE:.*]] = "ascendc.block_idx"
// CHECK:         "ascendc.tiling"() {field = "rows_per_core"}
// CHECK:         "ascendc.tiling"() {field = "extra_rows"}
// CHECK-NOT:     memref.dim
// CHECK:         scf.for
func.func @rows(%x: memref<?x64xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32, "gm">
  %first, %last, %part, %rounds = "tile.block_rows"(%n) : (index) -> (index, index, index, index)
  scf.for %row = %first to %last step %c1 {
    %v = "tile.load"(%x, %row, %c1) : (memref<?x64xf32, "gm">, index, index) -> tensor<64xf32>
    "tile.store"(%v, %x, %row, %c1) : (tensor<64xf32>, memref<?x64xf32, "gm">, index, index) -> ()
  }
  return
}

// -----

// What is known of a count: in a list that is longer than a tile the first piece fills it, and nothing is padded.
// CHECK-LABEL: func.func @longer_than_a_tile(
// CHECK-NOT:     "ascendc.duplicate"
// CHECK:         "ascendc.copy_in"(%{{.*}}, %arg0, %{{.*}}, %{{.*}}) : (
// CHECK-NOT:     "ascendc.duplicate"
// CHECK:         return
func.func @longer_than_a_tile(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %r = scf.while (%left = %n) : (index) -> index {
    %long = arith.cmpi sgt, %left, %c64 : index
    scf.condition(%long) %left : index
  } do {
  ^bb0(%left: index):
    %any = arith.cmpi sgt, %left, %c0 : index
    %some = arith.minsi %left, %c64 : index
    %count = arith.select %any, %some, %c0 : index
    %a = "tile.load"(%x, %left, %count) {pad = 0.0 : f32} : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
    "tile.store"(%a, %x, %left, %count) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
    %rest = arith.subi %left, %c64 : index
    scf.yield %rest : index
  }
  return
}

// -----

// In a row of two tiles what is loaded ahead is the second one, which is short, or nothing: it is padded in any case.
// CHECK-LABEL: func.func @always_short(
// CHECK-NOT:     scf.if
// CHECK:         scf.for
// CHECK-NOT:       scf.if
// CHECK:           "ascendc.duplicate"
// CHECK-NEXT:      "ascendc.copy_in"
func.func @always_short(%x: memref<?xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c64 {
    %next = arith.addi %i, %c64 : index
    %more = arith.cmpi slt, %next, %c100 : index
    %ahead = arith.select %more, %next, %i : index
    %left = arith.subi %c100, %ahead : index
    %some = arith.minsi %left, %c64 : index
    %count = arith.select %more, %some, %c0 : index
    %a = "tile.load"(%x, %ahead, %count) {pad = 0.0 : f32} : (memref<?xf32, "gm">, index, index) -> tensor<64xf32>
    "tile.store"(%a, %x, %ahead, %count) : (tensor<64xf32>, memref<?xf32, "gm">, index, index) -> ()
  }
  return
}
