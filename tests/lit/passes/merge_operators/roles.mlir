// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>, %b: tensor<64xf32>) -> (tensor<16x64xf32>, tensor<f32>) {
  // CHECK: stablehlo.constant {alpa.role = "replicated"}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: stablehlo.dot_general {{.*}} {alpa.role = "leader"}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  // CHECK: alpa.resolve {{.*}}alpa.role = "leader"
  // CHECK: stablehlo.broadcast_in_dim {{.*}}alpa.role = "rematerialized"
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xf32>) -> tensor<16x64xf32>
  // CHECK: stablehlo.broadcast_in_dim {{.*}}alpa.role = "rematerialized"
  %2 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
  // CHECK: stablehlo.add {{.*}}alpa.follows = 0 : i64, alpa.role = "follower"
  %3 = stablehlo.add %0, %1 : tensor<16x64xf32>
  // CHECK: stablehlo.maximum {{.*}}alpa.follows = 0 : i64, alpa.role = "follower"
  %4 = stablehlo.maximum %3, %2 : tensor<16x64xf32>
  return %4, %zero : tensor<16x64xf32>, tensor<f32>
}
