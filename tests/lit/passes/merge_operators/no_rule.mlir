// RUN: stablehlo-alpa-opt %s --allow-unregistered-dialect --alpa-merge-operators --verify-diagnostics | FileCheck %s

// An operator that nobody described is computed whole on every device, and a remark names it.

// CHECK: "other.plain"({{.*}}) {alpa.role = "replicated"}
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-remark @below {{'other.plain' has no sharding rule and is replicated}}
  %0 = "other.plain"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
