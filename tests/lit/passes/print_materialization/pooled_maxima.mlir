// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -split-input-file -o /dev/null 2>&1 | FileCheck --check-prefix=TPU %s

// What a pooling selected is added to zeros: those of the rectifier in front of it, which the fusion of that writes besides. XLA for
// TPU makes them where they are needed.

// CHECK: remark: result 0 lives from 2 to
// CHECK-NEXT: %positive = stablehlo.maximum
// CHECK: remark: result 0 lives from 2 to
// CHECK-NEXT: %back = "stablehlo.select_and_scatter"
// TPU: remark: result 0 lives from 4 to
// TPU-NEXT: %back = "stablehlo.select_and_scatter"

func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x4xf32>) {
  %zeros = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %positive = stablehlo.maximum %x, %zeros : tensor<4x8xf32>
  %g = stablehlo.dot_general %positive, %y, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %back = "stablehlo.select_and_scatter"(%positive, %g, %zero) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %back, %g : tensor<4x8xf32>, tensor<4x4xf32>
}
