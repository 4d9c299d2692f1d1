// RUN: jascend-opt %s --split-input-file --verify-diagnostics

func.func @dtype_of_key(%key: tensor<4x2xf32>) {
  // expected-error@below {{key must be int32, but is float32[4,2]}}
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "gumbel", low = 0.0 : f32, counts = "row"} : (tensor<4x2xf32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @three_words(%key: tensor<4x3xi32>) {
  // expected-error@below {{must have two words for each row, shape [B, 2], but is int32[4,3]}}
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "gumbel", low = 0.0 : f32, counts = "row"} : (tensor<4x3xi32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @low_of_exponential(%key: tensor<4x2xi32>) {
  // expected-error@below {{must be 0 for 'exponential', but is 0.5}}
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "exponential", low = 0.5 : f32, counts = "row"} : (tensor<4x2xi32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @low_of_one(%key: tensor<4x2xi32>) {
  // expected-error@below {{must be at least 0 and below 1 for 'gumbel', but is 1.0}}
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "gumbel", low = 1.0 : f32, counts = "row"} : (tensor<4x2xi32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @no_numbers(%key: tensor<4x2xi32>) {
  // expected-error@below {{must be at least 1, but is 0}}
  %0 = "ascend.random_exponential"(%key) {length = 0 : i64, draw = "gumbel", low = 0.0 : f32, counts = "row"} : (tensor<4x2xi32>) -> tensor<4x0xf32>
  return
}

// -----

func.func @another_draw(%key: tensor<4x2xi32>) {
  // expected-error@below {{'draw' must be one of "exponential", "gumbel", got "normal"}}
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "normal", low = 0.0 : f32, counts = "row"} : (tensor<4x2xi32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @another_result(%key: tensor<4x2xi32>) {
  // expected-error@below {{result 'q' must be float32[4, 9], got float32[4, 8]}}
  %0 = "ascend.random_exponential"(%key) {length = 9 : i64, draw = "gumbel", low = 0.0 : f32, counts = "array"} : (tensor<4x2xi32>) -> tensor<4x8xf32>
  return
}
