// RUN: stablehlo-alpa-opt %s -alpa-merge-operators -verify-diagnostics | FileCheck %s

// A function of the host is called by one device with whole values: sums are added up before, and what
// that costs is said.

// CHECK: %[[DOT:.+]] = stablehlo.dot_general
// CHECK: %[[SUM:.+]] = alpa.resolve %[[DOT]]
// CHECK: alpa.callback "look" index 0(%[[SUM]]) {alpa.role = "replicated"}
// CHECK: alpa.callback "ask" index 1 ordered{{.*}}alpa.role = "replicated"
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %t = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-remark @below {{callback 'look' runs on the first device: 16384 bytes are gathered there, 256 bytes come back to all devices}}
  %1 = alpa.callback "look" index 0 (%0) : (tensor<64x64xf32>) -> tensor<64xf32>
  // expected-remark @below {{callback 'ask' runs on the first device: 256 bytes are gathered there, 256 bytes come back to all devices}}
  %2:2 = alpa.callback "ask" index 1 ordered (%t, %1) : (tensor<i32>, tensor<64xf32>) -> (tensor<i32>, tensor<64xf32>)
  return %0, %2#1 : tensor<64x64xf32>, tensor<64xf32>
}
