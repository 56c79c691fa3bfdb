// RUN: stablehlo-alpa-opt %s -alpa-outline-attention="keys=8 block-bytes=4096" -verify-diagnostics | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-outline-attention=keys=9 | FileCheck %s --check-prefix=FEW

// Scores of two heads, which stand behind the sequence in what comes in; a causal mask is made anew from places of rows and
// keys, and a bias for every key comes along.

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[Q:.+]] = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<8x2x4xf32>) -> tensor<2x8x4xf32>
// CHECK-DAG: %[[K:.+]] = stablehlo.transpose %arg1, dims = [1, 0, 2]
// CHECK-DAG: %[[V:.+]] = stablehlo.transpose %arg2, dims = [1, 0, 2]
// CHECK: %[[O:.+]], %{{.+}}, %{{.+}} = "alpa.attention"(%[[Q]], %[[K]], %[[V]], %arg3) <{batch = 1 : i64, block_bytes = 4096 : i64, dims = [array<i64: 2>]
// CHECK: ^bb0(%[[S:.+]]: tensor<2x8x8xf32>, %[[BIAS:.+]]: tensor<8xf32>):
// CHECK-DAG: stablehlo.iota dim = 1 : tensor<2x8x8xi32>
// CHECK-DAG: stablehlo.iota dim = 2 : tensor<2x8x8xi32>
// CHECK-DAG: %[[SPREAD:.+]] = stablehlo.broadcast_in_dim %[[BIAS]], dims = [2]
// CHECK: stablehlo.add %[[S]], %[[SPREAD]]
// CHECK: %[[X:.+]] = stablehlo.select
// CHECK: alpa.yield %[[X]]
// CHECK: %[[BACK:.+]] = stablehlo.transpose %[[O]], dims = [0, 2, 1] : (tensor<2x8x4xf32>) -> tensor<2x4x8xf32>
// CHECK: return %[[BACK]]
// CHECK-NOT: stablehlo.exponential

// FEW-NOT: alpa.attention
func.func @main(%q: tensor<8x2x4xf32>, %k: tensor<8x2x4xf32>, %v: tensor<8x2x4xf32>, %bias: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %low = stablehlo.constant dense<-1.0e9> : tensor<2x8x8xf32>
  // expected-remark @below {{attention over 8 keys is computed in blocks of keys}}
  %s = stablehlo.dot_general %q, %k, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<8x2x4xf32>, tensor<8x2x4xf32>) -> tensor<2x8x8xf32>
  %b = stablehlo.broadcast_in_dim %bias, dims = [2] : (tensor<8xf32>) -> tensor<2x8x8xf32>
  %sb = stablehlo.add %s, %b : tensor<2x8x8xf32>
  %row = stablehlo.iota dim = 0 : tensor<8x8xi32>
  %column = stablehlo.iota dim = 1 : tensor<8x8xi32>
  %seen = stablehlo.compare GE, %row, %column, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
  %mask = stablehlo.broadcast_in_dim %seen, dims = [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %x = stablehlo.select %mask, %sb, %low : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %d = stablehlo.subtract %x, %mb : tensor<2x8x8xf32>
  %e = stablehlo.exponential %d : tensor<2x8x8xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x8x8xf32>
  %o = stablehlo.dot_general %v, %p, batching_dims = [1] x [0], contracting_dims = [0] x [2] : (tensor<8x2x4xf32>, tensor<2x8x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}
