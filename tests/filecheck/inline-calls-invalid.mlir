// RUN: jascend-opt %s --inline-calls --verify-diagnostics

func.func @even(%x: f32) -> f32 {
  %0 = call @odd(%x) : (f32) -> f32
  return %0 : f32
}
func.func @odd(%x: f32) -> f32 {
  // expected-error@below {{'even' calls itself: a recursive function cannot be inlined}}
  %0 = call @even(%x) : (f32) -> f32
  return %0 : f32
}
