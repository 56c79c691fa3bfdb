// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 --verify-diagnostics | FileCheck %s

// Arguments keep their shapes; they are padded where a product reads them. Zeros stand behind what is
// summed over: zeros from the padding, or those that are put there where a value is computed padded.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<8x8xf32>, %{{.*}}: tensor<8x5xf32>, %{{.*}}: tensor<5x8xf32>
// CHECK-DAG: %[[V:.*]] = stablehlo.pad %arg2, %{{.*}}, low = [0, 0], high = [3, 0], interior = [0, 0]
// CHECK-DAG: %[[W:.*]] = stablehlo.pad %arg1, %{{.*}}, low = [0, 0], high = [0, 3], interior = [0, 0]
// CHECK: %[[H:.*]] = stablehlo.dot_general %arg0, %[[W]]
// CHECK: %[[E:.*]] = stablehlo.exponential %[[H]] : tensor<8x8xf32>
// CHECK: %[[INSIDE:.*]] = stablehlo.compare LT, {{.*}} : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
// CHECK: %[[MASK:.*]] = stablehlo.broadcast_in_dim %[[INSIDE]], dims = [1] : (tensor<8xi1>) -> tensor<8x8xi1>
// CHECK: %[[Z:.*]] = stablehlo.select %[[MASK]], %[[E]], %{{.*}} : tensor<8x8xi1>, tensor<8x8xf32>
// CHECK: %[[CUT:.*]] = stablehlo.slice %[[Z]] [0:8, 0:5]
// CHECK: %[[SUM:.*]] = stablehlo.dot_general %[[Z]], %[[V]], {{.*}} -> tensor<8x8xf32>
// CHECK: return %[[SUM]], %[[CUT]] : tensor<8x8xf32>, tensor<8x5xf32>
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x5xf32>, %v: tensor<5x8xf32>) -> (tensor<8x8xf32>, tensor<8x5xf32>) {
  // expected-remark @below {{a loop of 5 is padded to 8, a multiple of 4 devices, in 3 operators; 480 bytes are padded or cut off}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %1 = stablehlo.exponential %0 : tensor<8x5xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<8x5xf32>, tensor<5x8xf32>) -> tensor<8x8xf32>
  return %2, %1 : tensor<8x8xf32>, tensor<8x5xf32>
}
