// RUN: stablehlo-alpa-opt %s | stablehlo-alpa-opt | FileCheck %s

// CHECK-LABEL: func.func @manual
func.func @manual(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
  // CHECK:      %{{.*}}:2 = alpa.manual(%{{.*}}) on <["x"=2, "y"=4]> ins {{\[\[\["x"\], \["y"\]\]\]}} outs {{\[\[\["x", "y"\], \[\]\], \[\]\]}} : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<4x1xf32>):
  // CHECK:      alpa.yield %{{.*}}, %{{.*}} : tensor<1x4xf32>, tensor<f32>
  %0:2 = alpa.manual (%x) on <["x"=2, "y"=4]> ins [[["x"], ["y"]]] outs [[["x", "y"], []], []] : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<f32>) {
  ^bb0(%a: tensor<4x1xf32>):
    %1 = stablehlo.reshape %a : (tensor<4x1xf32>) -> tensor<1x4xf32>
    %2 = stablehlo.constant dense<0.0> : tensor<f32>
    alpa.yield %1, %2 : tensor<1x4xf32>, tensor<f32>
  }
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<f32>
}
