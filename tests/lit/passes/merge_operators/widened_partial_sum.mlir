// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

// A sum that is needed in a wider type is resolved before it is widened: half as much is sent.
func.func @main(%x: tensor<16x32xbf16>, %w: tensor<32x64xbf16>) -> tensor<16x64xf32> {
  // CHECK: %[[DOT:.*]] = stablehlo.dot_general
  // CHECK: %[[SUM:.*]] = alpa.resolve %[[DOT]] {{.*}} : tensor<16x64xbf16>
  // CHECK: %[[WIDE:.*]] = stablehlo.convert {{.*}}%[[SUM]]
  // CHECK-NOT: alpa.resolve
  // CHECK: stablehlo.tanh %[[WIDE]]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xbf16>, tensor<32x64xbf16>) -> tensor<16x64xbf16>
  %1 = stablehlo.convert %0 : (tensor<16x64xbf16>) -> tensor<16x64xf32>
  %2 = stablehlo.tanh %1 : tensor<16x64xf32>
  return %2 : tensor<16x64xf32>
}
