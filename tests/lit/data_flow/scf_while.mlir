// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline | FileCheck %s --check-prefix=MERGED
// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline --alpa-plan-pipeline="mesh=x:2 solution=1,1,2" --alpa-spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// The regions of a while loop pass on values of two types, so that there are two edges: what goes into the first
// region, and what it hands on. The condition is the same on every device: its sum is reduced first.

// MERGED: scf.while
// MERGED: stablehlo.compare {{.*}} {alpa.role = "replicated"}
// MERGED: tensor.extract {{.*}} {alpa.role = "replicated"}

// LOCAL: func.func @main(%[[X:.+]]: tensor<4x16xf32>, %[[LIMIT:.+]]: tensor<f32>) -> tensor<16x4xf32>
// LOCAL: scf.while (%[[A:.+]] = %[[X]]) : (tensor<4x16xf32>) -> tensor<16x4xf32>
// LOCAL: %[[SUM:.+]] = stablehlo.reduce(%[[A]]
// LOCAL: %[[TOTAL:.+]] = "stablehlo.all_reduce"(%[[SUM]])
// LOCAL: stablehlo.compare LT, %[[TOTAL]], %[[LIMIT]]
// LOCAL: scf.condition(%{{.+}}) %{{.+}} : tensor<16x4xf32>
// LOCAL: ^bb0(%[[B:.+]]: tensor<16x4xf32>):
// LOCAL: scf.yield %{{.+}} : tensor<4x16xf32>

func.func @main(%x: tensor<8x16xf32>, %limit: tensor<f32>) -> tensor<16x8xf32> {
  %0:2 = scf.while (%a = %x) : (tensor<8x16xf32>) -> (tensor<16x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
    %less = stablehlo.compare LT, %sum, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %go = tensor.extract %less[] : tensor<i1>
    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    scf.condition(%go) %t, %sum : tensor<16x8xf32>, tensor<f32>
  } do {
  ^bb0(%b: tensor<16x8xf32>, %s: tensor<f32>):
    %back = stablehlo.transpose %b, dims = [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
    %next = stablehlo.tanh %back : tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  }
  return %0#0 : tensor<16x8xf32>
}
