// RUN: jascend-opt %s --lower-to-tile=target=ascend950 --split-input-file --verify-diagnostics

func.func private @mxfp8(%x: tensor<4x64xbf16>, %ids: tensor<4x2xi32>) -> (tensor<8x64xf8E5M2>, tensor<8xi32>, tensor<8x2xf8E8M0FNU>) attributes {ascend.kernel} {
  // expected-error@below {{'ascend.moe_init_routing' has no kernel for quant_mode 2 on ascend950 yet}}
  %0:3 = "ascend.moe_init_routing"(%x, %ids) {
    active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 8 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, quant_mode = 2 : i64,
    row_idx_type = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 1>
  } : (tensor<4x64xbf16>, tensor<4x2xi32>) -> (tensor<8x64xf8E5M2>, tensor<8xi32>, tensor<8x2xf8E8M0FNU>)
  return %0#0, %0#1, %0#2 : tensor<8x64xf8E5M2>, tensor<8xi32>, tensor<8x2xf8E8M0FNU>
}
