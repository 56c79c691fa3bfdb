// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-order-gradients | FileCheck %s

// CHECK-NOT: optimization_barrier

// Without collectives nothing is put off.
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>) {
  %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx1 = stablehlo.dot_general %dx, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %dw, %dx1 : tensor<4x4xf32>, tensor<8x4xf32>
}

// -----

// Five values lead on: that is within a layer.
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %0:5 = "stablehlo.sort"(%dy, %dy, %h, %h, %all) <{dimension = 0 : i64}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>, %l1: tensor<f32>, %r1: tensor<f32>, %l2: tensor<f32>, %r2: tensor<f32>, %l3: tensor<f32>, %r3: tensor<f32>, %l4: tensor<f32>, %r4: tensor<f32>):
    %less = stablehlo.compare LT, %l, %r, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  %1:5 = "stablehlo.sort"(%0#0, %0#1, %0#2, %0#3, %0#4) <{dimension = 0 : i64}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>, %l1: tensor<f32>, %r1: tensor<f32>, %l2: tensor<f32>, %r2: tensor<f32>, %l3: tensor<f32>, %r3: tensor<f32>, %l4: tensor<f32>, %r4: tensor<f32>):
    %less = stablehlo.compare LT, %l, %r, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  %2 = stablehlo.dot_general %1#0, %1#1, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %dw, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}
