// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// The backward phase itself compares the sine with what the forward phase hands on, as a rule for
// gradients of one's own does: it is given the sine, which it would round otherwise. The cosine is
// compared with nothing that is made of it, and is made again.

// CHECK-LABEL: module @forward
// CHECK: %[[SINE:.+]] = stablehlo.sine
// CHECK: return {{.+}} %[[SINE]], %
// CHECK-LABEL: module @backward
// CHECK-NOT: stablehlo.sine
// CHECK: stablehlo.cosine
// CHECK-NOT: stablehlo.sine
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, %y: tensor<8x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %c: tensor<8x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.transfer = 2 : i64, alpa.sharding = #alpa.sharding<S0R>}) attributes {alpa.micro_batches = 2 : i64} {
    %s = stablehlo.sine %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %t = stablehlo.cosine %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %m = stablehlo.maximum %s, %y {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %zero = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} dense<0.0> : tensor<8x4xf32>
    %difference = stablehlo.subtract %s, %m {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %equal = stablehlo.compare EQ, %difference, %zero {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
    %0 = stablehlo.select %equal, %c, %zero {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xi1>, tensor<8x4xf32>
    %less = stablehlo.compare LT, %t, %m {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
    %1 = stablehlo.select %less, %0, %zero {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xi1>, tensor<8x4xf32>
    "func.return"(%m, %1) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = []} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
  }
}
