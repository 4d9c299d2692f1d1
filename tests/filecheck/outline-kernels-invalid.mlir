// RUN: jascend-opt %s --outline-kernels --split-input-file --verify-diagnostics

// The scaled logits are an output of the program too: nothing would write them.
func.func @producer_returned(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  // expected-error@below {{unsupported operation 'linalg.generic': its result is needed outside the kernels}}
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%empty : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}
