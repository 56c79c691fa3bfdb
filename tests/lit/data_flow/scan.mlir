func.func @main(%x: tensor<4x8x16xf32>, %init: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>) {
  %0:2 = "chlo.scan"(%x, %init) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<8x16xf32>, %h: tensor<8x16xf32>):
    %1 = stablehlo.add %a, %h : tensor<8x16xf32>
    %2 = stablehlo.tanh %1 : tensor<8x16xf32>
    stablehlo.return %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>
  }) : (tensor<4x8x16xf32>, tensor<8x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>)
  return %0#0, %0#1 : tensor<4x8x16xf32>, tensor<8x16xf32>
}
