// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -o %t.merged
// RUN: stablehlo-alpa-opt %t.merged -alpa-enumerate-strategies=mesh=x:2 2>&1 | FileCheck %s

// Branches of a conditional meet in one sharding of each result.
// CHECK: remark: {{.*}}branch result
func.func @main(%p: tensor<i1>, %x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    stablehlo.return %1 : tensor<8x16xf32>
  }, {
    %1 = stablehlo.tanh %x : tensor<8x16xf32>
    stablehlo.return %1 : tensor<8x16xf32>
  }) : (tensor<i1>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
