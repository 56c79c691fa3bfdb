func.func @main(%x: tensor<8x16xf32>, %limit: tensor<f32>) -> tensor<16x8xf32> {
  %0:2 = scf.while (%a = %x) : (tensor<8x16xf32>) -> (tensor<16x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
    %less = stablehlo.compare LT, %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %go = tensor.extract %less[] : tensor<i1>
    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    scf.condition(%go) %t, %sum : tensor<16x8xf32>, tensor<f32>
  } do {
  ^bb0(%b: tensor<16x8xf32>, %s: tensor<f32>):
    %back = stablehlo.transpose %b, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %next = stablehlo.tanh %back : tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  }
  return %0#0 : tensor<16x8xf32>
}
