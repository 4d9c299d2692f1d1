// RUN: jascend-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: jascend-opt %s --mlir-print-local-scope | FileCheck %s --check-prefix=LOCAL
// RUN: jascend-opt %s | FileCheck %s

// GENERIC: "func.func"() <{function_type = (memref<?xf32, #map>) -> (), sym_name = "f"}>
// LOCAL:   func.func @f(%{{.*}}: memref<?xf32, affine_map<(d0) -> (d0 + 1)>>)
// CHECK:   #[[MAP:.*]] = affine_map<(d0) -> (d0 + 1)>
// CHECK:   func.func @f(%{{.*}}: memref<?xf32, #[[MAP]]>)
#map = affine_map<(d0) -> (d0 + 1)>
func.func @f(%x: memref<?xf32, #map>) { return }
