// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline | FileCheck %s --check-prefix=MERGED
// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline --alpa-plan-pipeline="mesh=x:2 solution=1,2,1" --alpa-spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// Both branches make the result as one strategy has it; what lies otherwise is resharded in the branch that needs it,
// which all devices take.

// MERGED: scf.if
// MERGED: stablehlo.tanh %{{.+}} {alpa.follows = 0 : i64, alpa.role = "follower"}

// LOCAL: func.func @main(%[[X:.+]]: tensor<4x16xf32>, %[[Y:.+]]: tensor<8x8xf32>, %[[FLAG:.+]]: i1) -> tensor<4x16xf32>
// LOCAL: %[[IF:.+]] = scf.if %[[FLAG]] -> (tensor<4x16xf32>)
// LOCAL: %[[TANH:.+]] = stablehlo.tanh %[[X]] : tensor<4x16xf32>
// LOCAL: scf.yield %[[TANH]] : tensor<4x16xf32>
// LOCAL: else
// LOCAL: %[[PART:.+]] = "stablehlo.all_to_all"(%[[Y]])
// LOCAL: scf.yield %[[PART]] : tensor<4x16xf32>
// LOCAL: return %[[IF]]

func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %flag: i1) -> tensor<8x16xf32> {
  %0 = scf.if %flag -> tensor<8x16xf32> {
    %1 = stablehlo.tanh %x : tensor<8x16xf32>
    scf.yield %1 : tensor<8x16xf32>
  } else {
    scf.yield %y : tensor<8x16xf32>
  }
  return %0 : tensor<8x16xf32>
}
