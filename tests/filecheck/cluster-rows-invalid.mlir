// RUN: jascend-opt %s --cluster-rows --verify-diagnostics

func.func @mask(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xi1> {
  %empty = tensor.empty() : tensor<8xi1>
  // expected-error@below {{kernels write floats, int32 and int8 to memory, not i1}}
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%empty : tensor<8xi1>) {
  ^bb0(%a: f32, %b: f32, %out: i1):
    %q = arith.cmpf ogt, %a, %b : f32
    linalg.yield %q : i1
  } -> tensor<8xi1>
  return %s : tensor<8xi1>
}
