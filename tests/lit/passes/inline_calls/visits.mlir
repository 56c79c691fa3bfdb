// RUN: stablehlo-alpa-opt %s -alpa-inline-calls=report=true -split-input-file -verify-diagnostics

// Seven operators are read, returns and calls among them; the first call copies
// three (a region counts with what is in it), the second moves them.
// expected-remark @below {{inlining read, moved or copied 13 operators}}
module {
  func.func @main(%x: tensor<8xf32>, %p: tensor<i1>) -> tensor<8xf32> {
    %0 = call @f(%x, %p) : (tensor<8xf32>, tensor<i1>) -> tensor<8xf32>
    %1 = call @f(%0, %p) : (tensor<8xf32>, tensor<i1>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @f(%x: tensor<8xf32>, %p: tensor<i1>) -> tensor<8xf32> {
    %0 = "stablehlo.if"(%p) ({
      stablehlo.return %x : tensor<8xf32>
    }, {
      stablehlo.return %x : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// What nothing calls is not read.
// expected-remark @below {{inlining read, moved or copied 1 operators}}
module {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
  func.func private @unused(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %x : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
