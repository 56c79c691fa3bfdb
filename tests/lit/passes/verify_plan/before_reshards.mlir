// RUN: stablehlo-alpa-opt %s -alpa-verify-plan=resharded=false -o /dev/null
// RUN: not stablehlo-alpa-opt %s -alpa-verify-plan -o /dev/null 2>&1 | FileCheck %s

// Producers and consumers may differ as long as reshards have not been inserted.
// CHECK: operand 0 arrives as #alpa.sharding<S0> and is needed as #alpa.sharding<R>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) {
    %0 = stablehlo.tanh %x {alpa.operands = [#alpa.sharding<R>], alpa.results = [#alpa.sharding<R>], alpa.strategy = #alpa.strategy<>} : tensor<8xf32>
    return {alpa.operands = [#alpa.sharding<R>]} %0 : tensor<8xf32>
  }
}
