// RUN: stablehlo-alpa-opt %s --alpa-loop-second-pass=micro-batches=4 | FileCheck %s

// Examples meet in the scores: all of what these are made of is kept, the rows of scores that a part of
// the batch needs and its gradients are made part by part.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W:.+]]: tensor<16x16xf32>, %[[X:.+]]: tensor<8x16xf32>
// CHECK: %[[H:.+]] = stablehlo.dot_general %[[X]], %[[W]]
// CHECK: stablehlo.while({{.*}}%[[ALL:[a-zA-Z0-9_]+]] = %[[H]]
// CHECK: do
// CHECK: %[[S:.+]] = stablehlo.dot_general %{{.+}}, %[[ALL]], contracting_dims = [1] x [1] : (tensor<2x16xf32>, tensor<8x16xf32>) -> tensor<2x8xf32>
// CHECK: %[[G:.+]] = stablehlo.dot_general %[[S]], %[[ALL]]
// CHECK: stablehlo.dot_general %{{.+}}, %[[G]], contracting_dims = [0] x [0] : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<16x16xf32>
func.func @main(%w: tensor<16x16xf32>, %x: tensor<8x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("step/jvp()/dot")
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32> loc("step/jvp()/dot")
  %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc("step/transpose(jvp())/dot")
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32> loc("step/transpose(jvp())/dot")
  return %3 : tensor<16x16xf32>
}
