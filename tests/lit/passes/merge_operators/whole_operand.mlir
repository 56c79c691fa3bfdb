// RUN: stablehlo-alpa-opt %s -alpa-merge-operators -verify-diagnostics | FileCheck %s

// What is computed whole on every device drags nothing along: a follower follows what can be split,
// although the whole value is the deeper one, and the sum behind the product may wait for it.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.custom_call @factor{{.*}}alpa.role = "leader"
// CHECK: %[[DOT:.*]] = stablehlo.dot_general
// CHECK: stablehlo.multiply %[[DOT]], %{{.*}} {alpa.follows = 0 : i64, alpa.role = "follower"}
// The first operator on whole values leads, so that it may be split; the next ones follow it.
// CHECK: stablehlo.rng_bit_generator {{.*}}alpa.role = "leader"
// CHECK: stablehlo.shift_right_logical {{.*}}alpa.role = "leader"
// CHECK: stablehlo.compare {{.*}}alpa.follows = 0 : i64, alpa.role = "follower"
func.func @main(%a: tensor<64x64xi32>, %x: tensor<64x32xi32>, %w: tensor<32x64xi32>, %state: tensor<2xui64>) -> (tensor<64x64xi32>, tensor<256x64xi1>) {
  // expected-remark @below {{'stablehlo.custom_call' @factor has no sharding rule and is replicated: every device reads and writes 32768 bytes, 12.5 % of those of the step}}
  %q = stablehlo.custom_call @factor(%a) : (tensor<64x64xi32>) -> tensor<64x64xi32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xi32>, tensor<32x64xi32>) -> tensor<64x64xi32>
  %1 = stablehlo.multiply %0, %q : tensor<64x64xi32>
  // expected-remark @below {{'stablehlo.rng_bit_generator' has no dimension that can be split and is replicated: every device does 0 FLOPs, reads and writes 65568 bytes, 0.0 % and 25.0 % of those of the step}}
  %new, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<256x64xui32>)
  %c = stablehlo.constant dense<9> : tensor<256x64xui32>
  %2 = stablehlo.shift_right_logical %bits, %c : tensor<256x64xui32>
  %3 = stablehlo.compare LT, %2, %c : (tensor<256x64xui32>, tensor<256x64xui32>) -> tensor<256x64xi1>
  return %1, %3 : tensor<64x64xi32>, tensor<256x64xi1>
}
