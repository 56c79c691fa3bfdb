// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// Every micro-batch writes its part into what is collected, at the position of its number.

// CHECK-LABEL: module @forward
// CHECK: func.func @main(%[[X:[a-z0-9]+]]: tensor<2x4xf32> {alpa.batch = 0 : i64{{.*}}%[[N:[a-z0-9]+]]: tensor<ui32> {alpa.micro_batch = 0 : i64{{.*}}%[[ALL:[a-z0-9]+]]: tensor<8x4xf32> {alpa.accumulator = 0 : i64{{.*}}) -> (tensor<8x4xf32> {alpa.accumulator = 0 : i64
// CHECK: %[[OWN:.+]] = stablehlo.tanh %[[X]]
// CHECK-DAG: %[[AT:.+]] = stablehlo.convert %[[N]]
// CHECK-DAG: %[[TWO:.+]] = stablehlo.constant {{.*}}dense<2>
// CHECK: %[[START:.+]] = stablehlo.multiply %[[AT]], %[[TWO]]
// CHECK: %[[ZERO:.+]] = stablehlo.constant {{.*}}dense<0>
// CHECK: %[[NEXT:.+]] = stablehlo.dynamic_update_slice %[[ALL]], %[[OWN]], %[[START]], %[[ZERO]]
// CHECK: return {{.*}}%[[NEXT]]
// CHECK-LABEL: module @apply_0
// CHECK: func.func @main(%[[ALL:.+]]: tensor<8x4xf32> {alpa.accumulator = 0 : i64{{.*}}) -> (tensor<8x4xf32> {alpa.output = 0 : i64
// CHECK: return {{.*}}%[[ALL]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<2x4xf32> {alpa.batch = 0 : i64, alpa.sharding = #alpa.sharding<RS0>}, %n: tensor<ui32> {alpa.micro_batch = 0 : i64, alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<RS0>}) attributes {alpa.micro_batches = 4 : i64} {
    %0 = stablehlo.tanh %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<b=[0]>} : tensor<2x4xf32>
    %1 = alpa.collect %0 at %n along 0 {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<2x4xf32>, tensor<ui32> to tensor<8x4xf32>
    "func.return"(%1) {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} : (tensor<8x4xf32>) -> ()
  }
}
