// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -o %t.merged
// RUN: FileCheck %s --check-prefix=MERGED < %t.merged
// RUN: stablehlo-alpa-opt %t.merged -alpa-enumerate-strategies=mesh=x:2 2>&1 | FileCheck %s --check-prefix=GRAPH
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<8x16xf32> {
    %1 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.tanh %1 : tensor<8x16xf32>
    scf.yield %2 : tensor<8x16xf32>
  }
  return %0 : tensor<8x16xf32>
}
