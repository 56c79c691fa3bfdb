// RUN: stablehlo-alpa-opt %s -alpa-insert-reshards | FileCheck %s

// Two uses in one sharding share a reshard.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: %[[R:.*]] = alpa.reshard %{{.*}} from <S0R> to <RS0>
  // CHECK-NOT: alpa.reshard
  // CHECK: stablehlo.tanh %[[R]]
  // CHECK: stablehlo.negate %[[R]]
  func.func @main(%x: tensor<32x64xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RS0>}, tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = stablehlo.tanh %x {alpa.operands = [#alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RS0>]} : tensor<32x64xf32>
    %1 = stablehlo.negate %x {alpa.operands = [#alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RS0>]} : tensor<32x64xf32>
    "func.return"(%0, %1) {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<RS0>], alpa.results = []} : (tensor<32x64xf32>, tensor<32x64xf32>) -> ()
  }
}
