// RUN: stablehlo-alpa-opt %s --alpa-loop-second-pass=micro-batches=4 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-loop-second-pass=micro-batches=1 | FileCheck %s --check-prefix=ONE

// What is taken at the moved weights is a loop over 4 parts of the batch, which adds up gradients and
// collects what there is of each example; what uses the sums stands behind it.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W:.+]]: tensor<4x4xf32>, %[[X:.+]]: tensor<8x4xf32>
// CHECK: %[[G:.+]] = stablehlo.dot_general %[[X]], %[[X]], contracting_dims = [0] x [0]
// CHECK: %[[MOVED:.+]] = stablehlo.subtract %[[W]], %[[G]]
// CHECK: stablehlo.reshape %[[X]] {alpa.once} : (tensor<8x4xf32>) -> tensor<4x2x4xf32>
// CHECK: stablehlo.while
// CHECK-SAME: %[[MOVED]]
// CHECK-SAME: attributes {alpa.once}
// CHECK: stablehlo.dynamic_slice {{.*}}, sizes = [1, 2, 4]
// CHECK: %[[H:.+]] = stablehlo.dot_general {{.*}}, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK: %[[P:.+]] = stablehlo.dot_general {{.*}}, %[[H]], contracting_dims = [0] x [0]
// CHECK-DAG: stablehlo.add %{{.+}}, %[[P]]
// CHECK-DAG: stablehlo.dynamic_update_slice
// CHECK: stablehlo.return
// CHECK: stablehlo.subtract %[[MOVED]]
// ONE-NOT: stablehlo.while
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("step/transpose(jvp())/dot")
  %1 = stablehlo.subtract %w, %0 : tensor<4x4xf32> loc("step/sub")
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("step/jvp()/dot")
  %3 = stablehlo.dot_general %x, %2, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("step/transpose(jvp())/dot")
  %4 = stablehlo.subtract %1, %3 : tensor<4x4xf32> loc("step/sub")
  return %4, %2 : tensor<4x4xf32>, tensor<8x4xf32>
}
