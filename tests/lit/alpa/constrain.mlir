// RUN: stablehlo-alpa-opt %s | stablehlo-alpa-opt | FileCheck %s

func.func @constrain(%x: tensor<8x4x2xf32>, %s: tensor<f32>) -> (tensor<8x4x2xf32>, tensor<f32>) {
  // CHECK: alpa.constrain %{{.*}} {{\[\[}}"data", "model"], [unit], []] : tensor<8x4x2xf32>
  %0 = alpa.constrain %x [["data", "model"], [unit], []] : tensor<8x4x2xf32>
  // CHECK: alpa.constrain %{{.*}} [] : tensor<f32>
  %1 = alpa.constrain %s [] : tensor<f32>
  // CHECK: alpa.constrain %{{.*}} {{\[\[}}"data", unit], [], [unit]] replicated ["model"] : tensor<8x4x2xf32>
  %2 = alpa.constrain %x [["data", unit], [], [unit]] replicated ["model"] : tensor<8x4x2xf32>
  return %0, %1 : tensor<8x4x2xf32>, tensor<f32>
}
