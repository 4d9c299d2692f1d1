// RUN: jascend-opt %s --verify-ascendc='target=ascend950' | FileCheck %s

// What 950 takes and 910B does not (see verify-ascendc-invalid.mlir).
// CHECK-LABEL: func.func @only_950
// CHECK: "ascendc.compare"
// CHECK: "ascendc.add"
// CHECK: "ascendc.scatter"
// CHECK: "ascendc.cast"
func.func @only_950() attributes {ascend.kernel} {
  %i = "ascendc.local_tensor"() {name_hint = "i", offset = 0 : i64} : () -> memref<64xi32, "ub">
  %j = "ascendc.local_tensor"() {name_hint = "j", offset = 256 : i64} : () -> memref<64xi32, "ub">
  %m = "ascendc.local_tensor"() {name_hint = "m", offset = 512 : i64} : () -> memref<8xui8, "ub">
  %x = "ascendc.local_tensor"() {name_hint = "x", offset = 544 : i64} : () -> memref<64xbf16, "ub">
  %f = "ascendc.local_tensor"() {name_hint = "f", offset = 1024 : i64} : () -> memref<64xf32, "ub">
  %g = "ascendc.local_tensor"() {name_hint = "g", offset = 200000 : i64} : () -> memref<64xf32, "ub">
  %e = "ascendc.local_tensor"() {name_hint = "e", offset = 672 : i64} : () -> memref<64xf8E4M3FN, "ub">
  "ascendc.compare"(%m, %i, %j) {mode = "LT"} : (memref<8xui8, "ub">, memref<64xi32, "ub">, memref<64xi32, "ub">) -> ()
  "ascendc.add"(%x, %x, %x) : (memref<64xbf16, "ub">, memref<64xbf16, "ub">, memref<64xbf16, "ub">) -> ()
  "ascendc.scatter"(%g, %f, %i) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xi32, "ub">) -> ()
  "ascendc.cast"(%e, %f) {round_mode = "CAST_RINT"} : (memref<64xf8E4M3FN, "ub">, memref<64xf32, "ub">) -> ()
  return
}
