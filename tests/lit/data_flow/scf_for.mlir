// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline | FileCheck %s --check-prefix=MERGED
// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline --alpa-plan-pipeline="mesh=x:2 solution=2,1,2,3,2" --alpa-spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// A value that a counted loop carries is one edge: operand, argument, what is yielded, result. Here it is split along
// what the product contracts, so that a partial sum is scattered in every iteration.

// MERGED: scf.for
// MERGED: stablehlo.dot_general {{.*}} {alpa.role = "leader"}
// MERGED: stablehlo.tanh {{.*}} {alpa.follows = 0 : i64, alpa.role = "follower"}
// MERGED: alpa.trip_count = 4

// LOCAL: func.func @main(%[[X:.+]]: tensor<8x8xf32>, %[[W:.+]]: tensor<8x16xf32>) -> tensor<8x8xf32>
// LOCAL: scf.for {{.*}} iter_args(%[[A:.+]] = %[[X]]) -> (tensor<8x8xf32>)
// LOCAL: %[[PRODUCT:.+]] = stablehlo.dot_general %[[A]], %{{.+}}, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x16xf32>)
// LOCAL: %[[PART:.+]] = "stablehlo.reduce_scatter"(%[[PRODUCT]])
// LOCAL: %[[NEXT:.+]] = stablehlo.tanh %[[PART]]
// LOCAL: scf.yield %[[NEXT]] : tensor<8x8xf32>

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
