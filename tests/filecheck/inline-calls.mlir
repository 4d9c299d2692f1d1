// RUN: jascend-opt %s --inline-calls --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A callee's op is located at the call, behind its own name; a callee's callee is inlined too.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT:    %[[EXP:.*]] = math.exp %[[X]] : tensor<4xf32> loc(callsite({{.*}} at {{.*}}"user.py":7:3
// CHECK-NEXT:    %[[SUM:.*]] = arith.addf %[[EXP]], %[[EXP]] : tensor<4xf32> loc("add"(callsite({{.*}} at "user.py":7:3)))
// CHECK-NEXT:    return %[[SUM]]
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("user.py":7:3)
  return %0 : tensor<4xf32>
}
// CHECK-NOT: @twice
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = call @exponential(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = arith.addf %e, %e : tensor<4xf32> loc("add")
  return %0 : tensor<4xf32>
}
// CHECK-NOT: @exponential
func.func private @exponential(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The body of an op with a region moves along, and its uses of the callee's arguments.
// CHECK-LABEL: func.func public @region(
// CHECK-SAME:      %[[C:[a-z0-9]+]]: i1{{.*}}, %[[X:[a-z0-9]+]]: f32
// CHECK:         scf.if %[[C]]
// CHECK:           arith.addf %[[X]], %[[X]]
func.func public @region(%c: i1, %x: f32) -> f32 {
  %0 = call @branch(%c, %x) : (i1, f32) -> f32
  return %0 : f32
}
func.func private @branch(%c: i1, %x: f32) -> f32 {
  %0 = scf.if %c -> f32 {
    %1 = arith.addf %x, %x : f32
    scf.yield %1 : f32
  } else {
    scf.yield %x : f32
  }
  return %0 : f32
}

// A kernel is launched, not inlined.
// CHECK-LABEL: func.func public @launches(
// CHECK-NEXT:    call @kernel(
// CHECK:       func.func private @kernel(
func.func public @launches(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @kernel(%x) {ascend.launch} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {ascend.kernel} {
  return %x : tensor<4xf32>
}

// A public function stays, called or not.
// CHECK-LABEL: func.func public @returns_argument(
func.func public @returns_argument(%x: f32) -> f32 {
  return %x : f32
}
// CHECK-LABEL: func.func public @passes_through(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: f32
// CHECK-NEXT:    return %[[X]]
func.func public @passes_through(%x: f32) -> f32 {
  %0 = call @returns_argument(%x) : (f32) -> f32
  return %0 : f32
}
