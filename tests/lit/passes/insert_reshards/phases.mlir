// RUN: stablehlo-alpa-opt %s -alpa-insert-reshards | FileCheck %s

// A gathered value is not kept from one phase to the next, a scattered one is.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: %[[A:.*]] = alpa.reshard %{{.*}} from <S0R> to <RR>
  // CHECK: stablehlo.tanh %[[A]]
  // CHECK: %[[B:.*]] = alpa.reshard %{{.*}} from <RR> to <S0R>
  // CHECK: stablehlo.negate %[[B]]
  // CHECK: %[[C:.*]] = alpa.reshard %{{.*}} from <S0R> to <RR>
  // CHECK: stablehlo.tanh %[[C]]
  // CHECK: stablehlo.negate %[[B]]
  // CHECK-NOT: alpa.reshard
  func.func @main(%x: tensor<32x64xf32> {alpa.sharding = #alpa.sharding<S0R>}, %y: tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<32x64xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<32x64xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.tanh %x {alpa.phase = 0, alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>]} : tensor<32x64xf32>
    %1 = stablehlo.negate %y {alpa.phase = 0, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : tensor<32x64xf32>
    %2 = stablehlo.tanh %x {alpa.phase = 1, alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>]} : tensor<32x64xf32>
    %3 = stablehlo.negate %y {alpa.phase = 1, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : tensor<32x64xf32>
    "func.return"(%0, %1, %2, %3) {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<S0R>], alpa.results = []} : (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) -> ()
  }
}
