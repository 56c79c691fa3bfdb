// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// What the forward phase hands on is kept, and the sine would be made again and rounded otherwise:
// whether they are equal is found where both are made, and likewise for what is made again of what is
// kept. What is compared with a constant is made again.

// CHECK-LABEL: module @forward
// CHECK: func.func @main({{.*}}) -> (tensor<8x4xi1> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xi1> {alpa.local = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>, alpa.transfer = 0 : i64}) {
// CHECK: stablehlo.compare EQ
// CHECK: stablehlo.compare LE
// CHECK-LABEL: module @backward
// CHECK: %[[EQUAL:.+]]: tensor<8x4xi1> {alpa.local = 0 : i64
// CHECK-SAME: %[[LESS:[^:]+]]: tensor<8x4xi1> {alpa.local = 1 : i64
// CHECK-NOT: stablehlo.compare {{EQ|LE}}
// CHECK: stablehlo.select %[[EQUAL]],
// CHECK: stablehlo.compare GT
// CHECK: stablehlo.select %[[LESS]],
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, %y: tensor<8x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %c: tensor<8x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.transfer = 2 : i64, alpa.sharding = #alpa.sharding<S0R>}) attributes {alpa.micro_batches = 2 : i64} {
    %s = stablehlo.sine %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %m = stablehlo.maximum %s, %y {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %zero = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} dense<0.0> : tensor<8x4xf32>
    %equal = stablehlo.compare EQ, %s, %m {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
    %0 = stablehlo.select %equal, %c, %zero {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xi1>, tensor<8x4xf32>
    %positive = stablehlo.compare GT, %s, %zero {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
    %1 = stablehlo.select %positive, %0, %zero {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xi1>, tensor<8x4xf32>
    %twice = stablehlo.add %m, %m {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %less = stablehlo.compare LE, %s, %twice {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
    %2 = stablehlo.select %less, %1, %zero {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xi1>, tensor<8x4xf32>
    "func.return"(%m, %2) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = []} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
  }
}
