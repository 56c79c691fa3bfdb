// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @c1(%q: tensor<4x8xf32>, %k: tensor<6x7xf32>, %v: tensor<6x3xf32>) {
  // expected-error @below {{key has sizes [6, 7], expected [6, 8]}}
  %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 0 : i64, block_bytes = 64 : i64, dims = [], products = [{}, {}], weights = f32}> ({
  ^bb0(%s: tensor<4x6xf32>):
    alpa.yield %s : tensor<4x6xf32>
  }) : (tensor<4x8xf32>, tensor<6x7xf32>, tensor<6x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @c2(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x3xf32>, %b: tensor<6xf32>) {
  // expected-error @below {{expects ascending dimensions of the scores, not array<i64: 2>}}
  %o, %m, %l = "alpa.attention"(%q, %k, %v, %b) <{batch = 0 : i64, block_bytes = 64 : i64, dims = [array<i64: 2>], products = [{}, {}], weights = f32}> ({
  ^bb0(%s: tensor<4x6xf32>, %x: tensor<6xf32>):
    alpa.yield %s : tensor<4x6xf32>
  }) : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x3xf32>, tensor<6xf32>) -> (tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @c3(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x3xf32>) {
  // expected-error @below {{has a region that does not take scores and extras and yield tensors of shape [4, 6]}}
  %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 0 : i64, block_bytes = 64 : i64, dims = [], products = [{}, {}], weights = f32}> ({
  ^bb0(%s: tensor<4x6xf32>):
    %0 = stablehlo.transpose %s, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    alpa.yield %0 : tensor<6x4xf32>
  }) : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @c4(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x3xf32>) {
  // expected-error @below {{maximum has sizes [6], expected [4]}}
  %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 0 : i64, block_bytes = 64 : i64, dims = [], products = [{}, {}], weights = f32}> ({
  ^bb0(%s: tensor<4x6xf32>):
    alpa.yield %s : tensor<4x6xf32>
  }) : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x3xf32>) -> (tensor<4x3xf32>, tensor<6xf32>, tensor<6xf32>)
  return
}
