// RUN: jascend-opt %s | jascend-opt | FileCheck %s
// RUN: jascend-opt %s --mlir-print-op-generic | jascend-opt | FileCheck %s

// CHECK-LABEL: func.func @rows(
// CHECK:         "ascend.moe_init_routing"(%arg0, %arg1) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
func.func @rows(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>) {
  %0:3 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = -1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>) -> (tensor<12x64xf32>, tensor<12xi32>, tensor<8xi64>)
  return
}

// CHECK-LABEL: func.func @dynamic_tokens_to_int8(
// CHECK:         "ascend.moe_init_routing"(%arg0, %arg1, %arg2) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0>, quant_mode = 1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 1 : i64, target = "ascend910b"} : (tensor<?x7168xbf16>, tensor<?x8xi32>, tensor<8x7168xf32>) -> (tensor<?x7168xi8>, tensor<?xi32>, tensor<8x2xi32>, tensor<?xf32>)
func.func @dynamic_tokens_to_int8(%x: tensor<?x7168xbf16>, %e: tensor<?x8xi32>, %s: tensor<8x7168xf32>) {
  %0:4 = "ascend.moe_init_routing"(%x, %e, %s) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0>, quant_mode = 1 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 1 : i64, target = "ascend910b"} : (tensor<?x7168xbf16>, tensor<?x8xi32>, tensor<8x7168xf32>) -> (tensor<?x7168xi8>, tensor<?xi32>, tensor<8x2xi32>, tensor<?xf32>)
  return
}

// CHECK-LABEL: func.func @mxfp8_of_a_shard(
// CHECK:         "ascend.moe_init_routing"(%arg0, %arg1) {active_expert_range = array<i32: 2, 6>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 3 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64} : (tensor<6x93xbf16>, tensor<6x2xi32>) -> (tensor<12x93xf8E4M3FN>, tensor<12xi32>, tensor<4xi64>, tensor<12x4xf8E8M0FNU>)
func.func @mxfp8_of_a_shard(%x: tensor<6x93xbf16>, %e: tensor<6x2xi32>) {
  %0:4 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 2, 6>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 3 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64} : (tensor<6x93xbf16>, tensor<6x2xi32>) -> (tensor<12x93xf8E4M3FN>, tensor<12xi32>, tensor<4xi64>, tensor<12x4xf8E8M0FNU>)
  return
}

// HiFloat8 is ui8. An empty range is all experts.
// CHECK-LABEL: func.func @no_counts(
// CHECK:         "ascend.moe_init_routing"(%arg0, %arg1) {active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 6 : i64, resultSegmentSizes = array<i32: 1, 1, 0, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf16>, tensor<6x2xi32>) -> (tensor<12x64xui8>, tensor<12xi32>)
func.func @no_counts(%x: tensor<6x64xf16>, %e: tensor<6x2xi32>) {
  %0:2 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = false, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 6 : i64, resultSegmentSizes = array<i32: 1, 1, 0, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf16>, tensor<6x2xi32>) -> (tensor<12x64xui8>, tensor<12xi32>)
  return
}

// CHECK-LABEL: func.func @padded(
// CHECK:         "ascend.moe_init_routing"(%arg0, %arg1, %arg2, %arg3) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 1 : i64, expert_capacity = 3 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>, quant_mode = 0 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<8x3x64xi8>, tensor<12xi32>, tensor<8xi64>)
func.func @padded(%x: tensor<6x64xf32>, %e: tensor<6x2xi32>, %s: tensor<1xf32>, %o: tensor<1xf32>) {
  %0:3 = "ascend.moe_init_routing"(%x, %e, %s, %o) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 1 : i64, expert_capacity = 3 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>, quant_mode = 0 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 0>, row_idx_type = 0 : i64} : (tensor<6x64xf32>, tensor<6x2xi32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<8x3x64xi8>, tensor<12xi32>, tensor<8xi64>)
  return
}

// Leading dimensions are a batch.
// CHECK-LABEL: func.func @batch_of_routings(
// CHECK:         "ascend.moe_init_routing"(%arg0, %arg1) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 13 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64} : (tensor<3x6x64xf32>, tensor<3x6x2xi32>) -> (tensor<3x12x64xi4>, tensor<3x12xi32>, tensor<3x8xi32>, tensor<3x12xf32>)
func.func @batch_of_routings(%x: tensor<3x6x64xf32>, %e: tensor<3x6x2xi32>) {
  %0:4 = "ascend.moe_init_routing"(%x, %e) {active_expert_range = array<i32: 0, 8>, active_num = -1 : i64, drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 8 : i64, expert_tokens_num_flag = true, expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 13 : i64, resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64} : (tensor<3x6x64xf32>, tensor<3x6x2xi32>) -> (tensor<3x12x64xi4>, tensor<3x12xi32>, tensor<3x8xi32>, tensor<3x12xf32>)
  return
}
