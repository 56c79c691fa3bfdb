// The same layer three times, in a loop of the compiler's own.
module {
  func.func public @main(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> tensor<64x256xf32> {
    %0 = "tiny.repeat"(%x) ({
    ^bb0(%a: tensor<64x256xf32>):
      %1 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
      %2 = stablehlo.tanh %1 : tensor<64x256xf32>
      "tiny.done"(%2) : (tensor<64x256xf32>) -> ()
    }) {count = 3 : i64} : (tensor<64x256xf32>) -> tensor<64x256xf32>
    return %0 : tensor<64x256xf32>
  }
}
