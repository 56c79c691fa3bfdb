// RUN: stablehlo-alpa-opt %s --alpa-loop-second-pass=micro-batches=4 --verify-diagnostics

// Examples that meet each other in the second pass.

func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("step/transpose(jvp())/dot")
  %1 = stablehlo.subtract %w, %0 : tensor<4x4xf32> loc("step/sub")
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("step/jvp()/dot")
  %3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  // expected-error @-1 {{cannot run once per micro-batch}}
  %4 = stablehlo.dot_general %3, %2, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = stablehlo.dot_general %x, %4, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %5 : tensor<4x4xf32>
}
