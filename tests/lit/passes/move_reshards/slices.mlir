// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-move-reshards -alpa-verify-plan | FileCheck %s

// Devices scale the part that they need, of what they have all of.

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[PART:.*]] = alpa.reshard %arg0 from <RR> to <RS0>
// CHECK-DAG: %[[SCALE:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] {{.*}}alpa.results = [#alpa.sharding<RS0>]
// CHECK: %[[SCALED:.*]] = stablehlo.multiply %[[SCALE]], %[[PART]]
// CHECK: return {{.*}} %[[SCALED]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %c: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = stablehlo.broadcast_in_dim %c, dims = [] {alpa.operands = [#alpa.sharding<>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<f32>) -> tensor<8x4xf32>
    %1 = stablehlo.multiply %0, %x {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<8x4xf32>
    %2 = alpa.reshard %1 from <RR> to <RS0> : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} %2 : tensor<8x4xf32>
  }
}

// -----

// Two slices would be held in the place of one.

// CHECK-LABEL: func.func @main
// CHECK: %[[SUM:.*]] = stablehlo.add %arg0, %arg1
// CHECK: alpa.reshard %[[SUM]] from <RR> to <RS0>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %y: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = stablehlo.add %x, %y {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<8x4xf32>
    %1 = alpa.reshard %0 from <RR> to <RS0> : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} %1 : tensor<8x4xf32>
  }
}
