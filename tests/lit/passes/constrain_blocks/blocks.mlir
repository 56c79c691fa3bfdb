// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-constrain-blocks -split-input-file | FileCheck %s

// Positions and products, each for all that read it; not what a device reshapes of its own.

// CHECK-LABEL: @moved
// CHECK: %[[I:.+]] = stablehlo.iota
// CHECK-NEXT: %[[POSITIONS:.+]] = "sdy.sharding_constraint"(%[[I]]) {sharding = #sdy.sharding<mesh<[]>, {{\[}}{}, {}]>}
// CHECK-NEXT: %[[D:.+]] = stablehlo.dot_general %arg0, %[[POSITIONS]]
// CHECK-NEXT: %[[PRODUCT:.+]] = "sdy.sharding_constraint"(%[[D]])
// CHECK-NEXT: %[[S:.+]] = stablehlo.reshape %[[PRODUCT]]
// CHECK-NEXT: stablehlo.add %[[S]], %[[S]]
// CHECK-NOT: sdy.sharding_constraint
func.func @moved(%a: tensor<1x4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x4xf32>
  %1 = stablehlo.dot_general %a, %0, contracting_dims = [1] x [0] : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %2 = stablehlo.reshape %1 : (tensor<1x4xf32>) -> tensor<4xf32>
  %3 = stablehlo.add %2, %2 : tensor<4xf32>
  %4 = stablehlo.negate %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// What is received is constrained in the order in which it is read.

// CHECK-LABEL: @received
// CHECK: %[[E:.+]] = "stablehlo.all_to_all"
// CHECK-NEXT: %[[T:.+]] = stablehlo.transpose %[[E]]
// CHECK-NEXT: %[[R:.+]] = "sdy.sharding_constraint"(%[[T]])
// CHECK-NEXT: stablehlo.negate %[[R]]
// CHECK: %[[G:.+]] = "stablehlo.all_gather"
// CHECK-NEXT: %[[GATHERED:.+]] = "sdy.sharding_constraint"(%[[G]])
// CHECK-NEXT: stablehlo.negate %[[GATHERED]]
func.func @received(%a: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<4x3xf32>) {
  %0 = "stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.negate %1 : tensor<3x2xf32>
  %3 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %4 = stablehlo.negate %3 : tensor<4x3xf32>
  return %2, %4 : tensor<3x2xf32>, tensor<4x3xf32>
}

// -----

// Scalars have no dimension to move; elementwise operators and transpositions of a device's own are not moved across.

// CHECK-LABEL: @others
// CHECK-NOT: sdy.sharding_constraint
func.func @others(%a: tensor<4xf32>, %b: tensor<2x3xf32>) -> (tensor<f32>, tensor<3x2xf32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %1 = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.negate %1 : tensor<3x2xf32>
  return %0, %2 : tensor<f32>, tensor<3x2xf32>
}
