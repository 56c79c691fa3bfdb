// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

// What is added up over the micro-batches is resolved once per step, and so is what is made of it
// then; what a micro-batch makes is resolved with every one.

// CHECK: %[[Y:.+]] = stablehlo.dot_general
// CHECK: %[[EACH:.+]] = alpa.resolve %[[Y]] {alpa.role = "leader"}
// CHECK: stablehlo.tanh %[[EACH]]
// CHECK: %[[G:.+]] = stablehlo.dot_general
// CHECK: %[[SUM:.+]] = alpa.accumulate %[[G]]
// CHECK: %[[ONCE:.+]] = alpa.resolve %[[SUM]] {alpa.phase = 2 : i64, alpa.role = "leader"}
// CHECK: %[[P:.+]] = stablehlo.dot_general %[[ONCE]], %[[ONCE]]
// CHECK: alpa.resolve %[[P]] {alpa.layer = 0 : i64, alpa.phase = 3 : i64, alpa.role = "leader"}
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {alpa.micro_batches = 4 : i64} {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.tanh %0 {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = "alpa.accumulate"(%2) {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 3 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = stablehlo.tanh %4 {alpa.layer = 0 : i64, alpa.phase = 3 : i64} : tensor<64x64xf32>
  return %5 : tensor<64x64xf32>
}
