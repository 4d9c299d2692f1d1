// RUN: jascend-opt %s --insert-sync --split-input-file --verify-diagnostics

func.func @no_address(%s: f32) attributes {ascend.kernel} {
  // expected-error@below {{insert-sync needs buffers with addresses: run allocate-ub first}}
  %a = "ascendc.local_tensor"() {name_hint = "a"} : () -> memref<64xf32, "ub">
  "ascendc.duplicate"(%a, %s) : (memref<64xf32, "ub">, f32) -> ()
  return
}

// -----

func.func @synchronised_already(%s: f32) attributes {ascend.kernel} {
  // expected-error@below {{insert-sync runs on kernels without synchronisation, this one has some already}}
  "ascendc.pipe_barrier"() {pipe = "V"} : () -> ()
  return
}
