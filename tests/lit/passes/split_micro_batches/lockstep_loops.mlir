// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 -split-input-file | FileCheck %s

// Rows that want no other turn stay as they are: each micro-batch asks its own.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: %[[WANTS:.+]] = stablehlo.compare {{.*}}alpa.results = [#alpa.sharding<S0>]
// CHECK: %[[ANY:.+]] = alpa.manual(%[[WANTS]]) on <["time"=2]> ins {{\[\[\["time"\]\]\]}} outs {{\[\[\]\]}}
// CHECK: ^bb0(%[[OWN:.+]]: tensor<4xi1>):
// CHECK: stablehlo.reduce(%[[OWN]] init: {{.*}}) applies stablehlo.or
// CHECK: stablehlo.return %[[ANY]]
// CHECK: stablehlo.select {{.*}}alpa.results = [#alpa.sharding<S0>]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.while(%i = %x) : tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %i : tensor<8xf32>
    %2 = stablehlo.compare LT, %i, %c : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.select %2, %1, %i : tensor<8xi1>, tensor<8xf32>
    stablehlo.return %3 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
