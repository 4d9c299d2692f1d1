// RUN: jascend-opt %s --outline-stages='kernel=1 stage=6' --split-input-file | FileCheck %s
// RUN: jascend-opt %s --outline-stages='kernel=1 stage=6' --remarks --split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY
// RUN: jascend-opt %s --outline-stages --split-input-file | FileCheck %s --check-prefix=SHORT

// A kernel that is short stays as it is.
// SHORT-LABEL: func.func @twice(
// SHORT-NOT:     call @
// SHORT:         return

// Two passes over different parts of memory are one function. The row and the memory are the same at both calls, and so is
// the buffer; bounds are arguments. The first load belongs to its loop, with its flags, and is a function itself.
// CHECK-LABEL: func.func @twice(
// What only the functions use is theirs alone.
// CHECK-NOT:     name_hint = "x"
// CHECK:         name_hint = "s"
// CHECK:         %[[N:.*]] = "ascendc.tiling"
// CHECK:         %[[M:.*]] = "ascendc.tiling"
// CHECK:         %[[ROW:.*]] = arith.muli %{{.*}} {ascend.member}
// CHECK:         %[[A:.*]] = call @twice.CountAll(%[[N]], %arg0, %[[ROW]]) :
// CHECK-NEXT:    %[[B:.*]] = call @twice.CountAll(%[[M]], %arg0, %[[ROW]]) :
// CHECK-NEXT:    arith.addf %[[A]], %[[B]]
// CHECK-LABEL: func.func private @twice.LoadX(%arg0: index, %arg1: index, %arg2: memref<?x64xf32, "gm"> {ascend.member}, %arg3: index {ascend.member})
// CHECK-SAME:      attributes {ascend.comment = "From global memory.", ascend.results = [], ascend.stage_of = @twice}
// CHECK:         scf.if
// A barrier that one of them needs is there for all.
// CHECK-NEXT:      "ascendc.pipe_barrier"
// CHECK-NEXT:      "ascendc.duplicate"
// CHECK:         "ascendc.copy_in"
// CHECK-LABEL: func.func private @twice.CountAll(%arg0: index, %arg1: memref
// CHECK-SAME:      -> f32 attributes {ascend.comment = "How much there is.", ascend.results = ["result"], ascend.stage_of = @twice}
// CHECK:         %[[X:.*]] = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64}
// CHECK:         call @twice.LoadX(%arg0, %{{.*}}, %arg1, %arg2)
// CHECK-NEXT:    "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:    "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64}
// CHECK-NEXT:    %[[SUM:.*]] = scf.for
// CHECK-NEXT:      call @twice.LoadX(
// CHECK:         return %[[SUM]]
// WHY: remark: outline-stages: passed: 2 functions for its stages, called at 4 places
func.func @twice(%in: memref<?x64xf32, "gm">, %out: memref<?x64xf32, "gm">) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %s = "ascendc.local_tensor"() {name_hint = "s", offset = 256 : i64} : () -> memref<64xf32, "ub">
  %core = "ascendc.block_idx"() : () -> index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %lane = arith.constant 0 : index
  %n = "ascendc.tiling"() {field = "rows"} : () -> index
  %m = "ascendc.tiling"() {field = "extra_rows"} : () -> index
  %row = arith.muli %core, %c64 : index
  %first = arith.subi %n, %c0 {ascend.part = "LoadX"} : index
  %f = arith.cmpi slt, %first, %c64 : index
  scf.if %f {
    "ascendc.duplicate"(%x, %zero) : (memref<64xf32, "ub">, f32) -> ()
  }
  "ascendc.copy_in"(%x, %in, %row, %first) {ascend.part_end = "From global memory."} : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> ()
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  %a = scf.for %i = %c0 to %n step %c64 iter_args(%sum = %zero) -> (f32) {
    %left = arith.subi %n, %i {ascend.part = "LoadX"} : index
    %short = arith.cmpi slt, %left, %c64 : index
    scf.if %short {
      "ascendc.pipe_barrier"() {pipe = "V"} : () -> ()
      "ascendc.duplicate"(%x, %zero) : (memref<64xf32, "ub">, f32) -> ()
    }
    "ascendc.copy_in"(%x, %in, %row, %left) {ascend.part_end = "From global memory."} : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> ()
    "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %v = "ascendc.get_value"(%x, %lane) : (memref<64xf32, "ub">, index) -> f32
    %next = arith.addf %sum, %v : f32
    scf.yield %next : f32
  } {ascend.comment = "How much there is.", ascend.stage = "CountAll"}
  %second = arith.subi %m, %c0 {ascend.part = "LoadX"} : index
  %g = arith.cmpi slt, %second, %c64 : index
  scf.if %g {
    "ascendc.duplicate"(%x, %zero) : (memref<64xf32, "ub">, f32) -> ()
  }
  "ascendc.copy_in"(%x, %in, %row, %second) {ascend.part_end = "From global memory."} : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> ()
  "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
  %b = scf.for %i = %c0 to %m step %c64 iter_args(%sum = %zero) -> (f32) {
    %left = arith.subi %m, %i {ascend.part = "LoadX"} : index
    %short = arith.cmpi slt, %left, %c64 : index
    scf.if %short {
      "ascendc.duplicate"(%x, %zero) : (memref<64xf32, "ub">, f32) -> ()
    }
    "ascendc.copy_in"(%x, %in, %row, %left) {ascend.part_end = "From global memory."} : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> ()
    "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %v = "ascendc.get_value"(%x, %lane) : (memref<64xf32, "ub">, index) -> f32
    %next = arith.addf %sum, %v : f32
    scf.yield %next : f32
  } {ascend.comment = "How much there is.", ascend.stage = "CountAll"}
  %both = arith.addf %a, %b : f32
  "ascendc.duplicate"(%s, %both) : (memref<64xf32, "ub">, f32) -> ()
  return
}

// -----

// A branch that is long is a function, and so is what is there instead; the decision stays, and what flags order around them.
// CHECK-LABEL: func.func @branches(
// CHECK:         scf.for
// CHECK:           %[[R:.*]]:2 = scf.if
// CHECK-NEXT:        %[[BOTH:.*]]:2 = func.call @branches.Small(
// CHECK-NEXT:        scf.yield %[[BOTH]]#0, %[[BOTH]]#1
// CHECK:           } else {
// CHECK:             "ascendc.get_value"
// CHECK-LABEL: func.func private @branches.Small(
// CHECK-SAME:      ascend.results = ["low", "high"]
// CHECK-NOT:     func.func
func.func @branches(%n: index) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %small = arith.cmpi slt, %i, %c1 : index
    %r:2 = scf.if %small -> (f32, f32) {
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.pipe_barrier"() {pipe = "V"} : () -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.set_flag"() {event = "V_S", event_id = 0 : i64} : () -> ()
      "ascendc.wait_flag"() {event = "V_S", event_id = 0 : i64} : () -> ()
      %low = "ascendc.get_value"(%x, %c0) : (memref<64xf32, "ub">, index) -> f32 loc("low")
      %high = "ascendc.get_value"(%x, %c1) : (memref<64xf32, "ub">, index) -> f32 loc("high")
      scf.yield %low, %high : f32, f32
    } else {
      %v = "ascendc.get_value"(%x, %c0) : (memref<64xf32, "ub">, index) -> f32
      scf.yield %v, %v : f32, f32
    } {ascend.comment = "A small one.", ascend.stage = "Small,Large"}
    %sum = arith.addf %r#0, %r#1 : f32
    "ascendc.duplicate"(%x, %sum) : (memref<64xf32, "ub">, f32) -> ()
  }
  return
}

// -----

// A constant with a name is one value, wherever it is read: it stands in the place of a value that is read twice.
// CHECK-LABEL: func.func @named(
// CHECK:           func.call @named.Raise(%arg1)
// CHECK-NEXT:      %[[C:.*]] = arith.constant 2.0
// CHECK-NEXT:      func.call @named.Raise(%[[C]])
// CHECK-LABEL: func.func private @named.Raise(
// CHECK-NOT:     func.func
func.func @named(%n: index, %v: f32) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.duplicate"(%x, %v) {ascend.part = "Raise"} : (memref<64xf32, "ub">, f32) -> ()
    "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.adds"(%x, %x, %v) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f32) -> ()
    "ascendc.exp"(%x, %x) {ascend.part_end = "One."} : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    %c = arith.constant 2.0 : f32 loc("raised_by")
    "ascendc.duplicate"(%x, %c) {ascend.part = "Raise"} : (memref<64xf32, "ub">, f32) -> ()
    "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.adds"(%x, %x, %c) : (memref<64xf32, "ub">, memref<64xf32, "ub">, f32) -> ()
    "ascendc.exp"(%x, %x) {ascend.part_end = "Other."} : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  } {ascend.comment = "All of them.", ascend.stage = "All"}
  return
}

// -----

// Not alike: another event, another mode of an instruction, other lanes. A part alone, and a stage that is short, stay.
// CHECK-LABEL: func.func @unlike(
// CHECK-NOT:     call @
func.func @unlike(%in: memref<?x64xf32, "gm">, %n: index) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %y = "ascendc.local_tensor"() {name_hint = "y", offset = 256 : i64} : () -> memref<128xf32, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 768 : i64} : () -> memref<16xui8, "ub">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    "ascendc.copy_in"(%x, %in, %c0, %c1) {ascend.part = "Load"} : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> ()
    "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
    "ascendc.wait_flag"() {ascend.part_end = "One.", event = "MTE2_V", event_id = 0 : i64} : () -> ()
    "ascendc.copy_in"(%x, %in, %c0, %c1) {ascend.part = "Load"} : (memref<64xf32, "ub">, memref<?x64xf32, "gm">, index, index) -> ()
    "ascendc.set_flag"() {event = "MTE2_V", event_id = 1 : i64} : () -> ()
    "ascendc.wait_flag"() {ascend.part_end = "Other.", event = "MTE2_V", event_id = 1 : i64} : () -> ()
    "ascendc.compare_scalar"(%m, %y, %zero) {ascend.part = "Compare", mode = "GE"} : (memref<16xui8, "ub">, memref<128xf32, "ub">, f32) -> ()
    "ascendc.exp"(%y, %y) {ascend.part_end = "One."} : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
    "ascendc.compare_scalar"(%m, %y, %zero) {ascend.part = "Compare", mode = "LT"} : (memref<16xui8, "ub">, memref<128xf32, "ub">, f32) -> ()
    "ascendc.exp"(%y, %y) {ascend.part_end = "Other."} : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
    "ascendc.exp"(%x, %x) {ascend.part = "Twice"} : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%x, %x) {ascend.part_end = "64."} : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    "ascendc.exp"(%y, %y) {ascend.part = "Twice"} : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
    "ascendc.exp"(%y, %y) {ascend.part_end = "128."} : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
    scf.for %j = %c0 to %n step %c1 {
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    } {ascend.comment = "Short.", ascend.stage = "Short"}
  } {ascend.comment = "All of them.", ascend.stage = "All"}
  return
}

// -----

// A part that each of two stages has once is in their function, not one of its own: the stages are alike. The first of them
// to be found is the inner one. A barrier that only the ops have that are given up, in the part or at the end, is kept.
// CHECK-LABEL: func.func @nested(
// CHECK-NOT:     name_hint
// CHECK:         func.call @nested.Both(%arg1)
// CHECK:         scf.for
// CHECK:           func.call @nested.Both(%{{.*}})
// CHECK-NOT:     func.func private @nested.Twice
// CHECK:       func.func private @nested.Both(%arg0: index)
// CHECK-DAG:     %[[X:.*]] = "ascendc.local_tensor"() {name_hint = "x"
// CHECK-DAG:     %[[C:.*]] = arith.constant 64 : index
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[LOW:.*]] = "ascendc.view"(%[[X]], %[[ZERO]])
// CHECK-DAG:     %[[HIGH:.*]] = "ascendc.view"(%[[X]], %[[C]])
// CHECK:         scf.for %{{.*}} = %{{.*}} to %arg0
// CHECK-NEXT:      "ascendc.exp"(%[[HIGH]], %[[LOW]])
// CHECK-NEXT:      "ascendc.pipe_barrier"
// CHECK-NEXT:      "ascendc.exp"(%[[X]], %[[X]])
// CHECK-NEXT:      "ascendc.ln"
// CHECK-NEXT:      "ascendc.ln"
// CHECK-NEXT:      "ascendc.ln"
// CHECK-NEXT:      "ascendc.pipe_barrier"
// CHECK-NEXT:    {{^ *}}}
// CHECK-NEXT:    return
func.func @nested(%n: index, %m: index) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<128xf32, "ub">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %row = %c0 to %n step %c1 {
    scf.for %i = %c0 to %m step %c1 {
      %low = "ascendc.view"(%x, %c0) {ascend.part = "Twice"} : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
      %high = "ascendc.view"(%x, %c64) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
      "ascendc.exp"(%high, %low) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.pipe_barrier"() {pipe = "V"} : () -> ()
      "ascendc.exp"(%x, %x) {ascend.part_end = "Two."} : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
      "ascendc.pipe_barrier"() {pipe = "V"} : () -> ()
    } {ascend.comment = "Both.", ascend.stage = "Both"}
    scf.for %j = %c0 to %n step %c1 {
      scf.for %i = %c0 to %j step %c1 {
        %low = "ascendc.view"(%x, %c0) {ascend.part = "Twice"} : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
        %high = "ascendc.view"(%x, %c64) : (memref<128xf32, "ub">, index) -> memref<64xf32, "ub">
        "ascendc.exp"(%high, %low) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
        "ascendc.exp"(%x, %x) {ascend.part_end = "Two."} : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
        "ascendc.ln"(%x, %x) : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
        "ascendc.ln"(%x, %x) : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
        "ascendc.ln"(%x, %x) : (memref<128xf32, "ub">, memref<128xf32, "ub">) -> ()
      } {ascend.comment = "Both.", ascend.stage = "Both"}
    }
  }
  return
}

// -----

// The same with the part at a third place: it is a function, which got its ops from a stage that has none any more.
// CHECK-LABEL: func.func @thrice(
// CHECK:         %[[SUM:.*]] = func.call @thrice.Sum(%arg1)
// CHECK:         %[[V:.*]] = func.call @thrice.Twice(%[[SUM]])
// CHECK-NEXT:    "ascendc.duplicate"(%{{.*}}, %[[V]])
// CHECK:         scf.for
// CHECK:           func.call @thrice.Sum(
// CHECK-LABEL: func.func private @thrice.Twice(%arg0: f32) -> f32
// CHECK:         %[[V:.*]] = "ascendc.get_value"
// CHECK-NEXT:    %[[W:.*]] = arith.addf %arg0, %[[V]]
// CHECK-NEXT:    return %[[W]]
// CHECK-LABEL: func.func private @thrice.Sum(%arg0: index) -> f32
// CHECK:         %[[SUM:.*]] = scf.for %{{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (f32)
// CHECK-NEXT:      %[[V:.*]] = func.call @thrice.Twice(%[[A]])
// CHECK-NEXT:      "ascendc.ln"
// CHECK-NEXT:      "ascendc.ln"
// CHECK-NEXT:      "ascendc.ln"
// CHECK-NEXT:      scf.yield %[[V]]
// CHECK:         return %[[SUM]]
func.func @thrice(%n: index, %m: index) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %row = %c0 to %n step %c1 {
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%a = %zero) -> (f32) {
      %v = "ascendc.get_value"(%x, %c0) {ascend.part = "Twice"} : (memref<64xf32, "ub">, index) -> f32
      %w = arith.addf %a, %v {ascend.part_end = "One more."} : f32
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      scf.yield %w : f32
    } {ascend.comment = "A sum.", ascend.stage = "Sum"}
    %v = "ascendc.get_value"(%x, %c0) {ascend.part = "Twice"} : (memref<64xf32, "ub">, index) -> f32
    %w = arith.addf %sum, %v {ascend.part_end = "One more."} : f32
    "ascendc.duplicate"(%x, %w) : (memref<64xf32, "ub">, f32) -> ()
    scf.for %j = %c0 to %n step %c1 {
      %other = scf.for %i = %c0 to %j step %c1 iter_args(%a = %zero) -> (f32) {
        %u = "ascendc.get_value"(%x, %c0) {ascend.part = "Twice"} : (memref<64xf32, "ub">, index) -> f32
        %t = arith.addf %a, %u {ascend.part_end = "One more."} : f32
        "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
        "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
        "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
        scf.yield %t : f32
      } {ascend.comment = "A sum.", ascend.stage = "Sum"}
      "ascendc.duplicate"(%x, %other) : (memref<64xf32, "ub">, f32) -> ()
    }
  }
  return
}

// -----

// Of two branches that are alike one ends with a barrier, and so does the function.
// CHECK-LABEL: func.func @ends(
// CHECK-COUNT-2: func.call @ends.Small()
// CHECK-LABEL: func.func private @ends.Small(
// CHECK-COUNT-6: "ascendc.{{exp|ln}}"
// CHECK-NEXT:    "ascendc.pipe_barrier"
// CHECK-NEXT:    return
func.func @ends(%n: index) attributes {ascend.kernel} {
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 0 : i64} : () -> memref<64xf32, "ub">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %small = arith.cmpi slt, %i, %c1 : index
    scf.if %small {
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    } else {
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    } {ascend.comment = "A small one.", ascend.stage = "Small,Large"}
    scf.if %small {
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.exp"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
      "ascendc.pipe_barrier"() {pipe = "V"} : () -> ()
    } else {
      "ascendc.ln"(%x, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
    } {ascend.comment = "A small one.", ascend.stage = "Small,Large"}
  }
  return
}
