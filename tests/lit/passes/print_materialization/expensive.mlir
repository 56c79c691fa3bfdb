// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// A hyperbolic tangent of narrow numbers that two fusions read is stored for both; an exponential is computed by each.

// CHECK: %hidden = stablehlo.dot_general
// CHECK: remark: result 0 lives from 1 to 4
// CHECK-NEXT: %tanh = stablehlo.tanh
// CHECK-NOT: %exp =

func.func @main(%x: tensor<8x16xbf16>, %w: tensor<16x16xbf16>, %v: tensor<8x16xbf16>) -> (tensor<16x16xbf16>, tensor<16x16xbf16>) {
  %hidden = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %tanh = stablehlo.tanh %hidden : tensor<8x16xbf16>
  %exp = stablehlo.exponential %hidden : tensor<8x16xbf16>
  %once = stablehlo.add %tanh, %exp : tensor<8x16xbf16>
  %twice = stablehlo.multiply %tanh, %exp : tensor<8x16xbf16>
  %a = stablehlo.dot_general %once, %v, contracting_dims = [0] x [0] : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<16x16xbf16>
  %b = stablehlo.dot_general %twice, %v, contracting_dims = [0] x [0] : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<16x16xbf16>
  return %a, %b : tensor<16x16xbf16>, tensor<16x16xbf16>
}
