// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// A product computes its operand itself where nothing else reads it (%once), or where as much is read as without (%relu).
// A narrower form that two products read (%twice), be it in another shape, is stored for both: here of a parameter, from
// the forward to the backward phase.

// CHECK: remark: result 0 lives from 0 to 8
// CHECK-NEXT: %twice = stablehlo.convert
// CHECK: remark: result 0 lives from 1 to 6
// CHECK-NEXT: %hidden = stablehlo.dot_general
// CHECK: remark: result 0 lives from 5 to 8
// CHECK-NEXT: %out = stablehlo.dot_general
// CHECK: remark: result 0 lives from 6 to 9
// CHECK-NEXT: %dv = stablehlo.dot_general
// CHECK: remark: result 0 lives from 8 to 9
// CHECK-NEXT: %back = stablehlo.dot_general
// CHECK-NOT: remark: result

func.func @main(%x: tensor<8x16xbf16>, %w: tensor<16x16xf32>, %v: tensor<16x16xf32>) -> (tensor<8x16xbf16>, tensor<16x16xbf16>) {
  %twice = stablehlo.convert %w : (tensor<16x16xf32>) -> tensor<16x16xbf16>
  %hidden = stablehlo.dot_general %x, %twice, contracting_dims = [1] x [0] : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %zero = stablehlo.constant dense<0.0> : tensor<8x16xbf16>
  %relu = stablehlo.maximum %hidden, %zero : tensor<8x16xbf16>
  %once = stablehlo.convert %v : (tensor<16x16xf32>) -> tensor<16x16xbf16>
  %out = stablehlo.dot_general %relu, %once, contracting_dims = [1] x [0] : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %dv = stablehlo.dot_general %relu, %out, contracting_dims = [0] x [0] : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<16x16xbf16>
  %turned = stablehlo.transpose %twice, dims = [1, 0] : (tensor<16x16xbf16>) -> tensor<16x16xbf16>
  %back = stablehlo.dot_general %out, %turned, contracting_dims = [1] x [0] : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  return %back, %dv : tensor<8x16xbf16>, tensor<16x16xbf16>
}
