func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %flag: i1) -> tensor<8x16xf32> {
  %0 = scf.if %flag -> tensor<8x16xf32> {
    %1 = stablehlo.tanh %x : tensor<8x16xf32>
    scf.yield %1 : tensor<8x16xf32>
  } else {
    scf.yield %y : tensor<8x16xf32>
  }
  return %0 : tensor<8x16xf32>
}
