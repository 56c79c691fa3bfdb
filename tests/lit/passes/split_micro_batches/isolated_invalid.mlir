// RUN: stablehlo-alpa-opt %s -alpa-layers-pipeline=micro-batches=2 -verify-diagnostics

// Slices that may be combined in any order have no carry that is handed on only.

// expected-remark @below {{2 micro-batches: cut along dimension 0: argument 1}}
func.func @main(%x: tensor<4x8x16xf32>, %init: tensor<8x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>) {
  // expected-error @below {{cannot be handed the number of the micro-batch, by which its region takes a part of what is whole: use num_micro_batches=1, or a scan that is not associative}}
  %0:2 = "chlo.scan"(%x, %init) <{dimension = 0 : i64, is_associative = true, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<8x16xf32>, %h: tensor<8x16xf32>):
    %1 = stablehlo.add %a, %h : tensor<8x16xf32>
    stablehlo.return %1, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  }) : (tensor<4x8x16xf32>, tensor<8x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>)
  return %0#0, %0#1 : tensor<4x8x16xf32>, tensor<8x16xf32>
}
