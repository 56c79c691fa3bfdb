// RUN: stablehlo-alpa-opt %s -alpa-import -split-input-file -verify-diagnostics

// expected-error @below {{argument 0 has the dynamic type 'tensor<?xf32>'; planning needs static shapes}}
func.func @main(%a: tensor<?xf32>) {
  return
}

// -----

// XLA hands the size on to whatever is made from the result, whose type does not say so.
func.func @of_static_type(%x: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {
  // expected-error @below {{'stablehlo.set_dimension_size' makes a size that is known when it runs; planning needs static shapes}}
  %0 = stablehlo.set_dimension_size %x, %n, dim = 1 : (tensor<4x4xf32>, tensor<i32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
