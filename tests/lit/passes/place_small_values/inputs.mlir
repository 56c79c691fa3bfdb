// RUN: stablehlo-alpa-opt %s "-alpa-place-small-values=inputs=0,1 results=0,1" -split-input-file | FileCheck %s
// RUN: stablehlo-alpa-opt %s "-pass-pipeline=builtin.module(alpa-place-small-values{inputs=0,1 results=0,1},alpa-enumerate-strategies{mesh=x:2})" -split-input-file 2>&1 | FileCheck %s --check-prefix=GRAPH

// A bias and the sum of a few columns have strategies; the matrix has some anyhow.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[BIAS:[^:]+]]: tensor<8xf32> {alpa.placed}, %{{[^:]+}}: tensor<64x8xf32>)
// CHECK-SAME: -> (tensor<64x8xf32>, tensor<8xf32> {alpa.placed})
// CHECK: %[[WHOLE:.+]] = alpa.resolve %[[BIAS]] {alpa.role = "replicated"}
// CHECK: stablehlo.broadcast_in_dim %[[WHOLE]]
// CHECK: return %{{.+}}, %[[WHOLE]]

// GRAPH: remark: {{.*}}input{{.*}}S0
func.func @main(%bias: tensor<8xf32>, %x: tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<8xf32>) {
  %0 = stablehlo.broadcast_in_dim %bias, dims = [1] {alpa.role = "rematerialized"} : (tensor<8xf32>) -> tensor<64x8xf32>
  %1 = stablehlo.add %x, %0 {alpa.role = "follower", alpa.follows = 0 : i64} : tensor<64x8xf32>
  return %1, %bias : tensor<64x8xf32>, tensor<8xf32>
}
