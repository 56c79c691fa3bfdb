// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// A mask of random bits that two fusions read is stored for both, as XLA for GPU does not mix the bits twice; a comparison of what is
// there is computed by each.

// CHECK-NOT: result 0
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %mask = stablehlo.compare
// CHECK-NOT: %sign =

func.func @main(%bits: tensor<16x16xui32>, %x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<16x16xf32>
  %none = stablehlo.constant dense<0> : tensor<16x16xui32>
  %s0 = stablehlo.add %bits, %bits : tensor<16x16xui32>
  %1 = stablehlo.xor %s0, %bits : tensor<16x16xui32>
  %s1 = stablehlo.add %1, %bits : tensor<16x16xui32>
  %2 = stablehlo.xor %s1, %1 : tensor<16x16xui32>
  %s2 = stablehlo.add %2, %bits : tensor<16x16xui32>
  %3 = stablehlo.xor %s2, %2 : tensor<16x16xui32>
  %s3 = stablehlo.add %3, %bits : tensor<16x16xui32>
  %4 = stablehlo.xor %s3, %3 : tensor<16x16xui32>
  %s4 = stablehlo.add %4, %bits : tensor<16x16xui32>
  %5 = stablehlo.xor %s4, %4 : tensor<16x16xui32>
  %s5 = stablehlo.add %5, %bits : tensor<16x16xui32>
  %6 = stablehlo.xor %s5, %5 : tensor<16x16xui32>
  %s6 = stablehlo.add %6, %bits : tensor<16x16xui32>
  %7 = stablehlo.xor %s6, %6 : tensor<16x16xui32>
  %s7 = stablehlo.add %7, %bits : tensor<16x16xui32>
  %8 = stablehlo.xor %s7, %7 : tensor<16x16xui32>
  %mask = stablehlo.compare GT, %8, %none : (tensor<16x16xui32>, tensor<16x16xui32>) -> tensor<16x16xi1>
  %sign = stablehlo.compare GT, %x, %zero : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xi1>
  %both = stablehlo.and %mask, %sign : tensor<16x16xi1>
  %either = stablehlo.or %mask, %sign : tensor<16x16xi1>
  %a = stablehlo.select %both, %x, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %b = stablehlo.select %either, %w, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %c = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %d = stablehlo.dot_general %c, %b, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %c, %d : tensor<16x16xf32>, tensor<16x16xf32>
}
