// RUN: jascend-opt %s --outline-kernels --split-input-file --verify-diagnostics

func.func @no_lowering(%x: tensor<2x8xf32>, %i: tensor<2x8xi32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  // expected-error@below {{unsupported operation 'apply_top_k_top_p_with_sorted': no kernel is generated for it}}
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%x, %i, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<2xi32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

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
