// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-merge-operators | FileCheck %s

// What two products read is resharded once for both; what else reads it is not
// in their way.
// CHECK-LABEL: func.func @main(%arg0
// CHECK: %[[SHARED:.*]] = alpa.resolve %arg0 {alpa.role = "leader"}
// CHECK: stablehlo.dot_general %[[SHARED]], %arg1
// CHECK: stablehlo.dot_general %[[SHARED]], %arg2
// CHECK: stablehlo.tanh %arg0
func.func @main(%x: tensor<16x32xf32>, %a: tensor<32x64xf32>, %b: tensor<32x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x32xf32>) {
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %1 = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %2 = stablehlo.tanh %x : tensor<16x32xf32>
  return %0, %1, %2 : tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x32xf32>
}

// -----

// A product of a value with itself shares it with nobody.
// CHECK-LABEL: func.func @main(%arg0
// CHECK-NOT: alpa.resolve
func.func @main(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

// Products of two phases of a pipeline share nothing: what is gathered would be
// kept from one to the other.
// CHECK-LABEL: func.func @main(%arg0
// CHECK-NOT: alpa.resolve
func.func @main(%x: tensor<16x32xf32>, %a: tensor<32x64xf32>, %b: tensor<32x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>) {
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] {alpa.phase = 0 : i64} : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %1 = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] {alpa.phase = 1 : i64} : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  return %0, %1 : tensor<16x64xf32>, tensor<16x64xf32>
}

// -----

// What waits for the first product is not given what the first has gathered.
// CHECK-LABEL: func.func @main(%arg0
// CHECK-NOT: alpa.resolve %arg0
func.func @main(%x: tensor<32x32xf32>, %a: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = stablehlo.tanh %0 : tensor<32x32xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}

// -----

// Nor does what runs once per step share with what every micro-batch does.
// CHECK-LABEL: func.func @main(%arg0
// CHECK-NOT: alpa.resolve %arg0
func.func @main(%x: tensor<16x32xf32>, %a: tensor<32x64xf32>, %b: tensor<32x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>) {
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] {alpa.phase = 0 : i64} : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %1 = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] {alpa.once, alpa.phase = 0 : i64} : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  return %0, %1 : tensor<16x64xf32>, tensor<16x64xf32>
}
