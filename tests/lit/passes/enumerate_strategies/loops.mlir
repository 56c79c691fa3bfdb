// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline | FileCheck %s --check-prefix=TRIPS
// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -o %t.merged
// RUN: stablehlo-alpa-opt %t.merged -alpa-enumerate-strategies=mesh=x:2 2>&1 | FileCheck %s

// The values that a loop carries are nodes of their own; what is in the loop
// counts as often as it runs. The bound may be carried, too, as JAX's scan does.
// TRIPS: stablehlo.while
// TRIPS: alpa.trip_count = 4
// CHECK: remark: {{.*}}carry
// CHECK: dot_general
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %bound = stablehlo.constant dense<4> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:3 = "stablehlo.while"(%zero, %bound, %x) ({
  ^bb0(%i: tensor<i32>, %n: tensor<i32>, %a: tensor<8x16xf32>):
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %n: tensor<i32>, %a: tensor<8x16xf32>):
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    stablehlo.return %1, %n, %2 : tensor<i32>, tensor<i32>, tensor<8x16xf32>
  }) : (tensor<i32>, tensor<i32>, tensor<8x16xf32>) -> (tensor<i32>, tensor<i32>, tensor<8x16xf32>)
  return %0#2 : tensor<8x16xf32>
}
