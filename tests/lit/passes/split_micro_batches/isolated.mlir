// RUN: stablehlo-alpa-opt %s -alpa-layers-pipeline=micro-batches=2 2>&1 | FileCheck %s

// The region of a scan sees nothing around it: the number of the micro-batch, by which it takes a part of what is
// whole, is carried through it, and through the one inside.

// CHECK: func.func @main(%{{.+}}: tensor<4x8x16xf32>{{.*}}, %[[INIT:.+]]: tensor<4x16xf32> {alpa.batch = 1 : i64}, %[[NUMBER:.+]]: tensor<ui32>
// CHECK-NEXT: %[[S:.+]]:3 = chlo.scan({{.*}}) inits (%[[INIT]], %[[NUMBER]])
// CHECK-NEXT: ^bb0({{.*}}, %[[N:.+]]: tensor<ui32>):
// CHECK: stablehlo.remainder %[[N]]
// CHECK: chlo.scan({{.*}}) inits ({{.*}}, %[[N]])
// CHECK-NEXT: ^bb0({{.*}}, %[[INNER:.+]]: tensor<ui32>):
// CHECK: stablehlo.remainder %[[INNER]]
// CHECK: stablehlo.return {{.*}}, %[[INNER]] :
// CHECK: stablehlo.return {{.*}}, %[[N]] :
// CHECK: alpa.collect %[[S]]#0 at %[[NUMBER]] along 1
// CHECK: alpa.collect %[[S]]#1 at %[[NUMBER]] along 0
func.func @main(%x: tensor<4x8x16xf32>, %init: tensor<8x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>) {
  %0:2 = "chlo.scan"(%x, %init) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<8x16xf32>, %h: tensor<8x16xf32>):
    %1 = stablehlo.add %a, %h : tensor<8x16xf32>
    %t = stablehlo.iota dim = 0 : tensor<3x8x16xf32>
    %m = stablehlo.multiply %t, %t : tensor<3x8x16xf32>
    %2:2 = "chlo.scan"(%m, %1) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%b: tensor<8x16xf32>, %c: tensor<8x16xf32>):
      %3 = stablehlo.add %b, %c : tensor<8x16xf32>
      stablehlo.return %3, %3 : tensor<8x16xf32>, tensor<8x16xf32>
    }) : (tensor<3x8x16xf32>, tensor<8x16xf32>) -> (tensor<3x8x16xf32>, tensor<8x16xf32>)
    stablehlo.return %1, %2#1 : tensor<8x16xf32>, tensor<8x16xf32>
  }) : (tensor<4x8x16xf32>, tensor<8x16xf32>) -> (tensor<4x8x16xf32>, tensor<8x16xf32>)
  return %0#0, %0#1 : tensor<4x8x16xf32>, tensor<8x16xf32>
}
