// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline | FileCheck %s --check-prefix=MERGED
// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline --alpa-plan-pipeline="mesh=x:2 solution=2,1,0,1,1,1" --alpa-spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// The slices of a scan lie as what they are slices of, without the dimension that it runs through; carried values
// are the same before, inside and behind. Its length is its trip count.

// MERGED: chlo.scan{{.*}}alpa.trip_count = 4
// MERGED: stablehlo.add {{.*}} {alpa.follows = 0 : i64, alpa.role = "follower"} : tensor<8x16xf32>

// LOCAL: func.func @main(%[[X:.+]]: tensor<4x4x16xf32>, %[[INIT:.+]]: tensor<4x16xf32>,
// LOCAL-NEXT: chlo.scan(%[[X]]) inits (%[[INIT]]) dimension=0
// LOCAL-NEXT: ^bb0(%[[SLICE:.+]]: tensor<4x16xf32>, %[[CARRY:.+]]: tensor<4x16xf32>):
// LOCAL-NEXT: stablehlo.add %[[SLICE]], %[[CARRY]] : tensor<4x16xf32>
// LOCAL: stablehlo.return {{.*}} : tensor<4x16xf32>, tensor<4x16xf32>
// LOCAL-NEXT: } : (tensor<4x4x16xf32>, tensor<4x16xf32>) -> (tensor<4x4x16xf32>, tensor<4x16xf32>)

func.func @main(%x: tensor<4x8x16xf32>, %init: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>) {
  %0:2 = "chlo.scan"(%x, %init) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<8x16xf32>, %h: tensor<8x16xf32>):
    %1 = stablehlo.add %a, %h : tensor<8x16xf32>
    %2 = stablehlo.tanh %1 : tensor<8x16xf32>
    stablehlo.return %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>
  }) : (tensor<4x8x16xf32>, tensor<8x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>)
  return %0#0, %0#1 : tensor<4x8x16xf32>, tensor<8x16xf32>
}
