// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @other_type(%x: tensor<2x8xf32>) {
  // expected-error@below {{result 'out' must be float32[2, 8], got bfloat16[2, 8]}}
  %0 = "ascend.row_wise"(%x) : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  return
}

// -----

func.func @other_shape(%x: tensor<2x8xf32>, %y: tensor<2x7xf32>) {
  // expected-error@below {{row_wise_pair: other must have the shape of float32[2,8], but is float32[2,7]}}
  %0:2 = "ascend.row_wise_pair"(%x, %y) : (tensor<2x8xf32>, tensor<2x7xf32>) -> (tensor<2x8xf32>, tensor<2x7xf32>)
  return
}
