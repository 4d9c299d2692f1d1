// RUN: jascend-opt %s --lower-to-tile=target=ascend950 --split-input-file --verify-diagnostics

func.func private @batch(%x: tensor<3x9x64xbf16>, %ids: tensor<3x9x2xi32>) -> (tensor<3x18x64xbf16>, tensor<3x18xi32>) attributes {ascend.kernel} {
  // expected-error@below {{'ascend.moe_init_routing' is generated for one routing, not for a batch of them}}
  %0:2 = "ascend.moe_init_routing"(%x, %ids) {
    active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64,
    expert_num = 8 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, quant_mode = -1 : i64,
    row_idx_type = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0>
  } : (tensor<3x9x64xbf16>, tensor<3x9x2xi32>) -> (tensor<3x18x64xbf16>, tensor<3x18xi32>)
  return %0#0, %0#1 : tensor<3x18x64xbf16>, tensor<3x18xi32>
}
