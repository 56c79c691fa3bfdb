// RUN: stablehlo-alpa-opt %s -alpa-import-constraints=axes=x -allow-unregistered-dialect | FileCheck %s

// What only has the name of a constraint, or of a mesh, stays as it is.
// CHECK: %{{.*}} = "sdy.mesh"() : () -> i32
%mesh = "sdy.mesh"() : () -> i32

// CHECK-LABEL: func.func @other_types
func.func @other_types(%x: tensor<8xf32>) -> tensor<4xf32> {
  // CHECK: "sdy.sharding_constraint"(%{{.*}}) : (tensor<8xf32>) -> tensor<4xf32>
  %0 = "sdy.sharding_constraint"(%x) : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @of_itself
func.func @of_itself() {
  return
// CHECK: ^bb1:
^bb1:
  // CHECK: %[[S:.*]] = "sdy.sharding_constraint"(%[[S]])
  %0 = "sdy.sharding_constraint"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  "some.jump"()[^bb1] : () -> ()
}

// CHECK-LABEL: func.func @at_the_end
func.func @at_the_end(%x: tensor<8xf32>) {
  // CHECK: "sdy.sharding_constraint"(%{{.*}}) : (tensor<8xf32>) -> tensor<8xf32>
  %0 = "sdy.sharding_constraint"(%x) : (tensor<8xf32>) -> tensor<8xf32>
}
