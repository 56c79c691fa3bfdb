// RUN: stablehlo-alpa-opt %s -alpa-outline-attention="keys=8 block-bytes=4096" -verify-diagnostics | FileCheck %s

// Attention over two heads with a causal mask, and its gradients, as JAX differentiates a softmax: scores are made again from what
// was kept of each row. No scores are left outside.

// CHECK-LABEL: func.func public @main
// CHECK-DAG: %[[Q:.+]] = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<8x2x4xf32>) -> tensor<2x8x4xf32>
// CHECK-DAG: %[[K:.+]] = stablehlo.transpose %arg1, dims = [1, 0, 2]
// CHECK-DAG: %[[V:.+]] = stablehlo.transpose %arg2, dims = [1, 0, 2]
// CHECK: %[[O:.+]], %[[M:.+]], %[[L:.+]] = "alpa.attention"(%[[Q]], %[[K]], %[[V]])
// CHECK: %[[G:.+]] = stablehlo.transpose %{{.+}}, dims = [0, 2, 1] : (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
// CHECK: %[[DQ:.+]], %[[DK:.+]], %[[DV:.+]] = "alpa.attention_gradient"(%[[Q]], %[[K]], %[[V]], %[[O]], %[[M]], %[[L]], %[[G]])
// CHECK: ^bb0(%[[S:.+]]: tensor<2x8x8xf32>):
// CHECK: %[[SCALED:.+]] = stablehlo.multiply %[[S]], %{{.+}}
// CHECK: %[[X:.+]] = stablehlo.select %{{.+}}, %[[SCALED]], %{{.+}}
// CHECK: alpa.yield %[[X]]
// CHECK: ^bb0(%[[D:.+]]: tensor<2x8x8xf32>, %{{.+}}: tensor<2x8x8xf32>):
// CHECK: %[[SEEN:.+]] = stablehlo.select %{{.+}}, %[[D]], %{{.+}}
// CHECK: %[[Y:.+]] = stablehlo.multiply %[[SEEN]], %{{.+}}
// CHECK: alpa.yield %[[Y]]
// CHECK-NOT: stablehlo.dot_general
// CHECK-NOT: stablehlo.exponential
// CHECK-DAG: %[[TV:.+]] = stablehlo.transpose %[[DV]]
// CHECK-DAG: %[[TK:.+]] = stablehlo.transpose %[[DK]], dims = [1, 0, 2]
// CHECK-DAG: %[[TQ:.+]] = stablehlo.transpose %[[DQ]], dims = [1, 0, 2]
// CHECK: return %{{.+}}, %[[TQ]], %[[TK]], %{{.+}}
func.func public @main(%arg0: tensor<8x2x4xf32>, %arg1: tensor<8x2x4xf32>, %arg2: tensor<8x2x4xf32>, %arg3: tensor<8x2x4xf32>) -> (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x2x4xf32>) {
  %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
  %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %cst_2 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
  %c = stablehlo.constant dense<false> : tensor<i1>
  %c_3 = stablehlo.constant dense<0> : tensor<i32>
  %c_4 = stablehlo.constant dense<true> : tensor<i1>
  %cst_5 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
  // expected-remark @below {{attention over 8 keys is computed in blocks of keys}}
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<8x2x4xf32>, tensor<8x2x4xf32>) -> tensor<2x8x8xf32>
  %1 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x8x8xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2x8x8xf32>
  %3 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
  %4 = stablehlo.iota dim = 0 : tensor<8x8xi32>
  %5 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
  %6 = stablehlo.add %4, %5 : tensor<8x8xi32>
  %7 = stablehlo.iota dim = 1 : tensor<8x8xi32>
  %8 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
  %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
  %10 = stablehlo.select %8, %3, %9 : tensor<8x8xi1>, tensor<8x8xi1>
  %11 = stablehlo.broadcast_in_dim %10, dims = [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x8x8xf32>
  %13 = stablehlo.select %11, %2, %12 : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  %14 = stablehlo.reduce(%13 init: %cst_1) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %15 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
  %16 = stablehlo.maximum %15, %14 : tensor<2x8xf32>
  %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
  %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x8xf32>
  %19 = stablehlo.subtract %13, %18 : tensor<2x8x8xf32>
  %20 = stablehlo.exponential %19 : tensor<2x8x8xf32>
  %21 = stablehlo.reduce(%20 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
  %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x8xf32>
  %24 = stablehlo.divide %20, %23 : tensor<2x8x8xf32>
  %25 = stablehlo.multiply %22, %22 : tensor<2x8x1xf32>
  %26 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x1xf32>
  %27 = stablehlo.divide %26, %25 : tensor<2x8x1xf32>
  %28 = stablehlo.dot_general %arg2, %24, batching_dims = [1] x [0], contracting_dims = [0] x [2] : (tensor<8x2x4xf32>, tensor<2x8x8xf32>) -> tensor<2x4x8xf32>
  %29 = stablehlo.transpose %28, dims = [2, 0, 1] : (tensor<2x4x8xf32>) -> tensor<8x2x4xf32>
  %30 = stablehlo.transpose %arg3, dims = [1, 2, 0] : (tensor<8x2x4xf32>) -> tensor<2x4x8xf32>
  %31 = stablehlo.dot_general %30, %arg2, batching_dims = [0] x [1], contracting_dims = [1] x [2] : (tensor<2x4x8xf32>, tensor<8x2x4xf32>) -> tensor<2x8x8xf32>
  %32 = stablehlo.dot_general %30, %24, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x8xf32>, tensor<2x8x8xf32>) -> tensor<2x4x8xf32>
  %33 = stablehlo.transpose %32, dims = [2, 0, 1] : (tensor<2x4x8xf32>) -> tensor<8x2x4xf32>
  %34 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2] : (tensor<2x8x1xf32>) -> tensor<2x8x8xf32>
  %35 = stablehlo.multiply %31, %34 : tensor<2x8x8xf32>
  %36 = stablehlo.multiply %35, %20 : tensor<2x8x8xf32>
  %37 = stablehlo.reduce(%36 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %38 = stablehlo.reshape %37 : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
  %39 = stablehlo.negate %38 : tensor<2x8x1xf32>
  %40 = stablehlo.divide %31, %23 : tensor<2x8x8xf32>
  %41 = stablehlo.reduce(%39 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<2x8x1xf32>, tensor<f32>) -> tensor<2x8xf32>
  %42 = stablehlo.broadcast_in_dim %41, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
  %43 = stablehlo.add %40, %42 : tensor<2x8x8xf32>
  %44 = stablehlo.multiply %43, %20 : tensor<2x8x8xf32>
  %45 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x8x8xf32>
  %46 = stablehlo.select %11, %44, %45 : tensor<2x8x8xi1>, tensor<2x8x8xf32>
  %47 = stablehlo.multiply %46, %1 : tensor<2x8x8xf32>
  %48 = stablehlo.dot_general %47, %arg0, batching_dims = [0] x [1], contracting_dims = [1] x [0] : (tensor<2x8x8xf32>, tensor<8x2x4xf32>) -> tensor<2x8x4xf32>
  %49 = stablehlo.transpose %48, dims = [1, 0, 2] : (tensor<2x8x4xf32>) -> tensor<8x2x4xf32>
  %50 = stablehlo.dot_general %47, %arg1, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<2x8x8xf32>, tensor<8x2x4xf32>) -> tensor<2x8x4xf32>
  %51 = stablehlo.transpose %50, dims = [1, 0, 2] : (tensor<2x8x4xf32>) -> tensor<8x2x4xf32>
  return %29, %51, %49, %33 : tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x2x4xf32>
}
