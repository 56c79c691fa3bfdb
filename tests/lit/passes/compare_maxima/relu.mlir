// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-compare-maxima | FileCheck %s
// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-compare-maxima 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK-COUNT-2: remark: positive parts that are compared: 1

// What a product makes, with a bias, ends with the positive part: the mask of the gradient reads that, and XLA cannot compute it again.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8x4xf32>, %w: tensor<2x4xf32>, %b: tensor<4xf32>, %dy: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.dot_general %x, %all, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x4xf32>
  // CHECK: %[[MAX:.*]] = stablehlo.maximum
  // CHECK-NEXT: %[[Y:.*]] = stablehlo.optimization_barrier %[[MAX]]
  %y = stablehlo.maximum %2, %zero : tensor<8x4xf32>
  // CHECK: stablehlo.compare GT, %[[Y]],
  %mask = stablehlo.compare GT, %2, %zero : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %dx = stablehlo.select %mask, %dy, %zero : tensor<8x4xi1>, tensor<8x4xf32>
  return %y, %dx : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// The other way round, of what devices have gathered.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x4xf32>, %dy: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<8x4xf32>
  // CHECK: %[[MAX:.*]] = stablehlo.maximum
  // CHECK-NEXT: %[[Y:.*]] = stablehlo.optimization_barrier %[[MAX]]
  %y = stablehlo.maximum %zero, %0 : tensor<8x4xf32>
  // CHECK: stablehlo.compare LT, %{{.*}}, %[[Y]]
  %mask = stablehlo.compare LT, %zero, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %dx = stablehlo.select %mask, %dy, %zero : tensor<8x4xi1>, tensor<8x4xf32>
  return %y, %dx : tensor<8x4xf32>, tensor<8x4xf32>
}
