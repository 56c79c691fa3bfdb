// RUN: stablehlo-alpa-opt %s | stablehlo-alpa-opt | FileCheck %s

// Two heads of four queries and six keys; the bias has a value for every query and key.

// CHECK-LABEL: func.func @main
// CHECK: "alpa.attention"(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}) <{batch = 1 : i64, block_bytes = 64 : i64, dims = [array<i64: 1, 2>]
func.func @main(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x3xf32>, %bias: tensor<4x6xf32>) -> tensor<2x4x3xf32> {
  %o, %m, %l = "alpa.attention"(%q, %k, %v, %bias) <{batch = 1 : i64, block_bytes = 64 : i64, dims = [array<i64: 1, 2>], products = [{}, {}], weights = f32}> ({
  ^bb0(%s: tensor<2x4x6xf32>, %b: tensor<4x6xf32>):
    %0 = stablehlo.broadcast_in_dim %b, dims = [1, 2] : (tensor<4x6xf32>) -> tensor<2x4x6xf32>
    %1 = stablehlo.add %s, %0 : tensor<2x4x6xf32>
    alpa.yield %1 : tensor<2x4x6xf32>
  }) : (tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x3xf32>, tensor<4x6xf32>) -> (tensor<2x4x3xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  return %o : tensor<2x4x3xf32>
}
