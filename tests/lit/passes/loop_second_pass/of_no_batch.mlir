// RUN: stablehlo-alpa-opt %s --alpa-loop-second-pass=micro-batches=4 --verify-diagnostics | FileCheck %s

// What uses nothing of the batch runs as it is, once.

// CHECK: stablehlo.dot_general {{.*}}, contracting_dims = [0] x [0] : (tensor<8x16xf32>
// CHECK: %[[MOVED:.+]] = stablehlo.subtract
// CHECK: stablehlo.dot_general %{{.+}}, %[[MOVED]], contracting_dims = [1] x [0] {alpa.once}
module {
  // expected-remark @below {{gradients behind the first ones use nothing of the batch: they are taken once per step, and not by 4 micro-batches}}
  func.func @main(%w: tensor<16x16xf32> {alpa.alias = 0 : i64}, %z: tensor<6x16xf32>, %x: tensor<8x16xf32>) -> (tensor<16x16xf32>, tensor<6x16xf32>) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32> loc("step/transpose(jvp())/dot")
    %1 = stablehlo.optimization_barrier %0 : tensor<16x16xf32> loc("step/alpa_gradients/optimization_barrier")
    %2 = stablehlo.subtract %w, %1 : tensor<16x16xf32> loc("step/sub")
    %3 = stablehlo.dot_general %z, %2, contracting_dims = [1] x [0] : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32> loc("step/jvp()/dot")
    %4 = stablehlo.optimization_barrier %3 : tensor<6x16xf32> loc("step/alpa_gradients/optimization_barrier")
    return %2, %4 : tensor<16x16xf32>, tensor<6x16xf32>
  }
}
