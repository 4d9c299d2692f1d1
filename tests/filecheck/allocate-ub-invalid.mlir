// RUN: jascend-opt %s --allocate-ub='capacity=512' --split-input-file --verify-diagnostics

// 'e' takes the place of 'a', so only one of them is told.
// expected-error@below {{the buffers of this kernel need 768 bytes of unified buffer, the budget is 512}}
func.func @in_place(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  // expected-note@below {{'a' takes 256 bytes and is live here}}
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<64xf32, "ub">
  "ascendc.copy_in"(%a, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  // expected-note@below {{'long' takes 512 bytes and is live here}}
  %long = "ascendc.local_tensor"() {name_hint = "long"} : () -> memref<128xf32, "ub">
  "ascendc.copy_in"(%long, %x, %n, %n) : (memref<128xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  %e = "ascendc.local_tensor"() {name_hint = "e"} : () -> memref<64xf32, "ub">
  "ascendc.exp"(%e, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.copy_out"(%x, %e, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %long, %n, %n) : (memref<?xf32, "gm">, memref<128xf32, "ub">, index, index) -> ()
  return
}

// -----

// The error names what is live together, with its bytes, and the budget. Buffers that could share are not to blame.
// expected-error@below {{the buffers of this kernel need 768 bytes of unified buffer, the budget is 512}}
func.func @too_much(%x: memref<?xf32, "gm">, %n: index) attributes {ascend.kernel} {
  // expected-note@below {{'a' takes 256 bytes and is live here}}
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<64xf32, "ub">
  "ascendc.copy_in"(%a, %x, %n, %n) : (memref<64xf32, "ub">, memref<?xf32, "gm">, index, index) -> ()
  // expected-note@below {{'b' takes 256 bytes and is live here}}
  %b = "ascendc.local_tensor"() {name_hint = "b"} : () -> memref<64xf32, "ub">
  "ascendc.exp"(%b, %a) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  // expected-note@below {{'sum' takes 256 bytes and is live here}}
  %sum = "ascendc.local_tensor"() {name_hint = "sum"} : () -> memref<64xf32, "ub">
  "ascendc.add"(%sum, %a, %b) : (memref<64xf32, "ub">, memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()
  "ascendc.copy_out"(%x, %a, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %b, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  "ascendc.copy_out"(%x, %sum, %n, %n) : (memref<?xf32, "gm">, memref<64xf32, "ub">, index, index) -> ()
  return
}
