// RUN: not stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,2 2>&1 | FileCheck %s --check-prefix=GAP
// RUN: not stablehlo-alpa-opt %s --alpa-slice-stages=stages=0 2>&1 | FileCheck %s --check-prefix=SHORT

// GAP: stages ascend from 0 by 0 or 1 from layer to layer, found 2 where 1 is the next
// SHORT: belongs to layer 1, stages are given for 1 layers
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
