// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="remark: result 0 lives"

// The rounds of a generator of random bits are one kernel, which writes what is returned.

// CHECK: remark: result 0 lives from
// CHECK-NEXT: %c =
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %d =

func.func @main(%x: tensor<8x128xui32>, %y: tensor<8x128xui32>) -> (tensor<8x128xui32>, tensor<8x128xui32>) {
  %a = stablehlo.add %x, %y : tensor<8x128xui32>
  %b = stablehlo.xor %y, %a : tensor<8x128xui32>
  %c = stablehlo.add %a, %b : tensor<8x128xui32>
  %d = stablehlo.xor %b, %c : tensor<8x128xui32>
  return %c, %d : tensor<8x128xui32>, tensor<8x128xui32>
}
