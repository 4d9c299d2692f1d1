// RUN: jascend-opt %s --cluster-rows --verify-diagnostics

func.func @wide(%x: tensor<1xi64>) -> tensor<8xi64> {
  %empty = tensor.empty() : tensor<8xi64>
  // expected-error@below {{kernels write floats, int32, int8 and booleans to memory, not i64}}
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (0)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<1xi64>) outs(%empty : tensor<8xi64>) {
  ^bb0(%a: i64, %out: i64):
    linalg.yield %a : i64
  } -> tensor<8xi64>
  return %s : tensor<8xi64>
}
