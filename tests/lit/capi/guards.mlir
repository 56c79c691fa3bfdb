// RUN: split-file %s %t
// RUN: not alpa-capi-test text %t/results.mlir | FileCheck %s --check-prefix=RESULTS
// RUN: not alpa-capi-test text %t/use.mlir | FileCheck %s --check-prefix=USE
// RUN: not alpa-capi-test text %t/elements.mlir | FileCheck %s --check-prefix=ELEMENTS
// RUN: alpa-capi-test text %t/names.mlir | FileCheck %s --check-prefix=NAMES

// What MLIR's parser does not survive is refused before it, with the reason; what only looks like it is not.

// RESULTS: failed: the module does not parse: result number 65537 is above 65536
//--- results.mlir
%0:65537 = "some.operator"() : () -> ()

// USE: failed: the module does not parse: result number 99999999999999999999 is above 65536
//--- use.mlir
"some.operator"(%0#99999999999999999999) : (tensor<f32>) -> ()

// ELEMENTS: failed: the module does not parse: elements of type ui00 have no bits
//--- elements.mlir
func.func @main() -> tensor<4xui00> {
  %0 = stablehlo.constant dense<0> : tensor<4xui00>
  return %0 : tensor<4xui00>
}

// NAMES: func.func @main
//--- names.mlir
func.func @main(%i0: tensor<4xi32> {some.note = "tensor<4xi0>"}) -> tensor<4xi32> {
  return %i0 : tensor<4xi32>
}
