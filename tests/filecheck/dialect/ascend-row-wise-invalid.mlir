// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @other_type(%x: tensor<2x8xf32>) {
  // expected-error@below {{result 'out' must be float32[2, 8], got bfloat16[2, 8]}}
  %0 = "ascend.row_wise"(%x) : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  return
}
