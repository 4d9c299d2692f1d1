// RUN: jascend-opt %s --split-input-file --verify-diagnostics | jascend-opt --split-input-file | FileCheck %s
// RUN: jascend-opt %s --split-input-file --verify-diagnostics --mlir-print-op-generic | jascend-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @parts(
// CHECK:         %[[PART:.*]] = "ascendc.view"(%arg0, %{{.*}}) : (memref<64xf32, "ub">, index) -> memref<16xi32, "ub">
// CHECK:         "ascendc.copy"(%{{.*}}, %[[PART]]) : (memref<16xi32, "ub">, memref<16xi32, "ub">) -> ()
func.func @parts(%x: memref<64xf32, "ub">, %i: index) {
  %c8 = arith.constant 8 : index
  %part = "ascendc.view"(%x, %c8) : (memref<64xf32, "ub">, index) -> memref<16xi32, "ub">
  %anywhere = "ascendc.view"(%x, %i) : (memref<64xf32, "ub">, index) -> memref<16xi32, "ub">
  "ascendc.copy"(%anywhere, %part) : (memref<16xi32, "ub">, memref<16xi32, "ub">) -> ()
  return
}

// -----

func.func @invalid_start(%x: memref<64xf32, "ub">) {
  %c4 = arith.constant 4 : index
  // expected-error@below {{64 bytes from byte 16 on: a view starts at a multiple of 32 bytes and ends within the 256 bytes of 'buffer'}}
  %part = "ascendc.view"(%x, %c4) : (memref<64xf32, "ub">, index) -> memref<16xf32, "ub">
  return
}

// -----

func.func @invalid_end(%x: memref<64xf32, "ub">) {
  %c56 = arith.constant 56 : index
  // expected-error@below {{64 bytes from byte 224 on}}
  %part = "ascendc.view"(%x, %c56) : (memref<64xf32, "ub">, index) -> memref<16xf32, "ub">
  return
}

// -----

func.func @invalid_copy(%x: memref<12xf32, "ub">, %y: memref<12xf32, "ub">) {
  // expected-error@below {{whole blocks of 32 bytes are copied, got 48 bytes}}
  "ascendc.copy"(%x, %y) : (memref<12xf32, "ub">, memref<12xf32, "ub">) -> ()
  return
}
