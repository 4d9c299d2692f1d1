// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @dtype_of_key(%key: tensor<4x2xi64>, %count: tensor<4xi32>) {
  // expected-error@below {{key must be int32, but is int64[4,2]}}
  %0 = "ascend.random_key"(%key, %count) : (tensor<4x2xi64>, tensor<4xi32>) -> tensor<4x2xi32>
  return
}

// -----

func.func @one_word(%key: tensor<4x1xi32>, %count: tensor<4xi32>) {
  // expected-error@below {{must have two words for each row, shape [B, 2], but is int32[4,1]}}
  %0 = "ascend.random_key"(%key, %count) : (tensor<4x1xi32>, tensor<4xi32>) -> tensor<4x2xi32>
  return
}

// -----

func.func @other_rows(%key: tensor<4x2xi32>, %count: tensor<5xi32>) {
  // expected-error@below {{count must have one element a row, shape [4], but is int32[5]}}
  %0 = "ascend.random_key"(%key, %count) : (tensor<4x2xi32>, tensor<5xi32>) -> tensor<4x2xi32>
  return
}

// -----

func.func @another_result(%key: tensor<4x2xi32>, %count: tensor<4xi32>) {
  // expected-error@below {{result 'child' must be int32[4, 2], got int32[4, 3]}}
  %0 = "ascend.random_key"(%key, %count) : (tensor<4x2xi32>, tensor<4xi32>) -> tensor<4x3xi32>
  return
}
