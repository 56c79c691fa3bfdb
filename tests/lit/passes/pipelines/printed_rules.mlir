// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -split-input-file -o %t
// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules=as-attributes -split-input-file | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules=as-attributes -alpa-prepare-pipeline -split-input-file | diff %t -

// Rules that are printed on a module, and pasted back, are not in the way of what gives operators other forms.

func.func @main(%a: tensor<64x8xf32>, %b: tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
  // CHECK: optimization_barrier {alpa.rule
  %0:2 = stablehlo.optimization_barrier %a, %b : tensor<64x8xf32>, tensor<64x8xf32>
  return %0#0, %0#1 : tensor<64x8xf32>, tensor<64x8xf32>
}

// -----

func.func @main(%a: tensor<4x8xf32>, %b: tensor<0x8xf32>, %c: tensor<2x8xf32>) -> tensor<6x8xf32> {
  // CHECK: concatenate {{.*}}alpa.rule
  %0 = stablehlo.concatenate %a, %b, %c, dim = 0 : (tensor<4x8xf32>, tensor<0x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}

// -----

func.func @main(%a: tensor<4x8xf32>) -> tensor<8x4xf32> {
  // CHECK-COUNT-2: reshape {{.*}}alpa.rule
  %0 = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<32xf32>
  %1 = stablehlo.reshape %0 : (tensor<32xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// Of one that is made for sizes of the whole, and says itself that it has no parts.
func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: custom_call @tpu_custom_call{{.*}}alpa.rule
  %0 = stablehlo.custom_call @tpu_custom_call(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
