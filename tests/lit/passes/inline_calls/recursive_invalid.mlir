// RUN: stablehlo-alpa-opt %s -alpa-inline-calls -split-input-file -verify-diagnostics

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// expected-error @below {{@f calls itself: recursive functions cannot be planned}}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @first(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @first(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// expected-error @below {{@f calls itself through @g, @h: recursive functions cannot be planned}}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @g(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @h(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @h(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
