// RUN: stablehlo-alpa-opt %s --allow-unregistered-dialect --alpa-check-regions --verify-diagnostics --split-input-file
// RUN: not stablehlo-alpa-opt %s --allow-unregistered-dialect --alpa-prepare-pipeline --split-input-file 2>&1 | FileCheck %s

// CHECK: 'other.region' is not known and has a region; it cannot be planned
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'other.region' is not known and has a region; it cannot be planned}}
  %0 = "other.region"(%x) ({
    "other.end"() : () -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: 'sdy.manual_computation' is not known and has a region; it cannot be planned
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'sdy.manual_computation' is not known and has a region; it cannot be planned}}
  %0 = "sdy.manual_computation"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    "sdy.return"(%a) : (tensor<2xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What has no region passes, and is replicated.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "other.plain"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
