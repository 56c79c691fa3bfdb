// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-order-gradients | FileCheck %s
// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-order-gradients 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK-COUNT-4: remark: kernels that wait for gradients: 1

// Two layers, split over their batch: the backward phase of the first one waits for the gradients of the second, of its kernel and
// of its bias, and their sums over devices come behind. Nothing waits for the gradients of the first layer.

// CHECK-LABEL: @main
// CHECK: %[[DW2:.+]] = stablehlo.dot_general %arg1, %arg2
// CHECK-NEXT: %[[DB2:.+]] = stablehlo.reduce(%arg2
// CHECK-NEXT: %[[DX:.+]] = stablehlo.dot_general %arg2, %arg3
// CHECK-NEXT: %[[ALL:.+]]:3 = stablehlo.optimization_barrier %[[DX]], %[[DW2]], %[[DB2]]
// CHECK-NEXT: %[[SUM2:.+]] = "stablehlo.all_reduce"(%[[ALL]]#1)
// CHECK: %[[NEW2:.+]] = stablehlo.subtract %arg3, %[[SUM2]]
// CHECK: %[[DX1:.+]] = stablehlo.dot_general %[[ALL]]#0, %arg4
// CHECK: %[[DW1:.+]] = stablehlo.dot_general %arg0, %[[DX1]]
// CHECK-NOT: optimization_barrier
// CHECK: return %[[NEW2]], %[[ALL]]#2
func.func @main(%x: tensor<8x4xf32>, %h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w2: tensor<4x4xf32>, %w1: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %dw2 = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %sum2 = "stablehlo.all_reduce"(%dw2) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %new2 = stablehlo.subtract %w2, %sum2 : tensor<4x4xf32>
  %db2 = stablehlo.reduce(%dy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %dx = stablehlo.dot_general %dy, %w2, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx1 = stablehlo.dot_general %dx, %w1, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dw1 = stablehlo.dot_general %x, %dx1, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %new2, %db2, %dw1 : tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>
}

// -----

// What leads on is sent to other devices: the gradient may run beside that, and what follows waits for both.

// CHECK-LABEL: @main
// CHECK: %[[DX:.+]] = "stablehlo.all_reduce"
// CHECK: %[[ALL:.+]]:2 = stablehlo.optimization_barrier %[[DX]], %{{.+}} : tensor<8x4xf32>, tensor<4x4xf32>
// CHECK: stablehlo.dot_general %[[ALL]]#0, %arg3
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w2: tensor<4x4xf32>, %w1: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>) {
  %dw2 = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %part = stablehlo.dot_general %dy, %w2, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx = "stablehlo.all_reduce"(%part) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %dx1 = stablehlo.dot_general %dx, %w1, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx2 = stablehlo.dot_general %dx1, %w1, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %dw2, %dx2 : tensor<4x4xf32>, tensor<8x4xf32>
}

// -----

// A micro-batch adds its gradient to a sum, in the kernel of the product: it is the sum that is waited for.

// CHECK-LABEL: @main
// CHECK: %[[SUM:.+]] = stablehlo.add %arg4, %{{.+}} : tensor<4x4xf32>
// CHECK: %[[ALL:.+]]:2 = stablehlo.optimization_barrier %{{.+}}, %[[SUM]] : tensor<8x4xf32>, tensor<4x4xf32>
// CHECK: return %[[ALL]]#1
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w2: tensor<4x4xf32>, %w1: tensor<4x4xf32>, %before: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>, tensor<8x8xf32>) {
  %all = "stablehlo.all_gather"(%w1) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x8xf32>
  %dw2 = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %sum = stablehlo.add %before, %dw2 : tensor<4x4xf32>
  %dx = stablehlo.dot_general %dy, %w2, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx1 = stablehlo.dot_general %dx, %w1, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx2 = stablehlo.dot_general %dx1, %all, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %sum, %dx1, %dx2 : tensor<4x4xf32>, tensor<8x4xf32>, tensor<8x8xf32>
}

// -----

// Of the bias's gradient devices send a part, and sum up what they have received: nothing waits for that.

// CHECK-LABEL: @main
// CHECK: %[[ALL:.+]]:2 = stablehlo.optimization_barrier %{{.+}}, %{{.+}} : tensor<8x4xf32>, tensor<4x4xf32>
// CHECK-NOT: optimization_barrier
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w2: tensor<4x4xf32>, %w1: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %parts = "stablehlo.all_gather"(%h) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<16x4xf32>
  %db = stablehlo.reduce(%parts init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16x4xf32>, tensor<f32>) -> tensor<4xf32>
  %dw2 = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %dx = stablehlo.dot_general %dy, %w2, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx1 = stablehlo.dot_general %dx, %w1, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx2 = stablehlo.dot_general %dx1, %w1, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %dw2, %dx2, %db : tensor<4x4xf32>, tensor<8x4xf32>, tensor<4xf32>
}
