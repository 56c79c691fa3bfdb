// RUN: stablehlo-alpa-opt %s -alpa-insert-reshards | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-insert-reshards=reach=1 | FileCheck %s --check-prefix=NEAR

// What was gathered is kept for operators near by.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: alpa.reshard %{{.*}} from <S0R> to <RR>
  // CHECK-NOT: alpa.reshard
  // NEAR: %[[A:.*]] = alpa.reshard %{{.*}} from <S0R> to <RR>
  // NEAR: stablehlo.tanh %[[A]]
  // NEAR: stablehlo.negate %[[A]]
  // NEAR: %[[B:.*]] = alpa.reshard %{{.*}} from <S0R> to <RR>
  // NEAR: stablehlo.sine %[[B]]
  func.func @main(%x: tensor<32x64xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<32x64xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.tanh %x {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>]} : tensor<32x64xf32>
    %1 = stablehlo.negate %x {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>]} : tensor<32x64xf32>
    %2 = stablehlo.sine %x {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>]} : tensor<32x64xf32>
    "func.return"(%0, %1, %2) {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = []} : (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) -> ()
  }
}
