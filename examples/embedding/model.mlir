// A layer that scales the rows of its input by an operation of the compiler's own.
module {
  func.func public @main(%x: tensor<64x256xf32>, %scales: tensor<64xf32>, %w: tensor<256x512xf32>) -> tensor<64x512xf32> {
    %0 = "tiny.scale_rows"(%x, %scales) : (tensor<64x256xf32>, tensor<64xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x512xf32>) -> tensor<64x512xf32>
    return %1 : tensor<64x512xf32>
  }
}
