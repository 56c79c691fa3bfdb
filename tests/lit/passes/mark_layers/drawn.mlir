// RUN: stablehlo-alpa-opt %s -alpa-mark-layers=micro-batches=1 | FileCheck %s

// What is returned of numbers that a layer draws is what it has drawn; what is
// made of them without effects is made again, so that no stage has to keep it.
func.func @main(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<16> : tensor<1xi64>
  // CHECK: %[[DRAWN:.*]] = stablehlo.rng {{.*}}alpa.phase = 0
  // CHECK-NOT: stablehlo.rng
  %u = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<16xf32>
  %s = stablehlo.sine %u : tensor<16xf32>
  %h = stablehlo.add %x, %s : tensor<16xf32>
  %l = alpa.accumulate %h : tensor<16xf32>
  // CHECK: %[[AGAIN:.*]] = stablehlo.sine %[[DRAWN]] {alpa.phase = 2
  // CHECK: stablehlo.negate %[[AGAIN]]
  %n = stablehlo.negate %s : tensor<16xf32>
  return %l, %n : tensor<16xf32>, tensor<16xf32>
}
