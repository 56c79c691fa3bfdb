// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-merge-operators -alpa-enumerate-strategies="mesh=x:2" -mlir-print-op-on-diagnostic=false -o /dev/null 2>&1 | FileCheck %s --check-prefix=NODES

// The first sum is only added to; the second is read in every turn, and the
// third begins with an argument.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while{{.*}}alpa.partial_edges = array<i64: 1>
// CHECK: stablehlo.add %{{.*}} {alpa.role = "leader"}
// CHECK: %[[DOT:.*]] = stablehlo.dot_general
// CHECK: %[[SUM:.*]] = alpa.resolve %[[DOT]]
// CHECK: stablehlo.add %{{.*}}, %[[SUM]]
// NODES: carry: RR | S0R | RS0 | RRP0
// NODES: carry: RR | S0R | RS0{{$}}
// NODES: carry: RR | S0R | RS0{{$}}
func.func @main(%x: tensor<16x32xf32>, %y: tensor<16x64xf32>, %begin: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) {
  %n = stablehlo.constant dense<8> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
  %0:4 = stablehlo.while(%c = %i, %a = %zeros, %b = %zeros, %d = %begin) : tensor<i32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
    cond {
      %1 = stablehlo.compare LT, %c, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %c, %one : tensor<i32>
      %2 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
      %3 = stablehlo.add %a, %2 : tensor<32x64xf32>
      %4 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
      %5 = stablehlo.tanh %b : tensor<32x64xf32>
      %6 = stablehlo.add %b, %4 : tensor<32x64xf32>
      %7 = stablehlo.add %6, %5 : tensor<32x64xf32>
      %8 = stablehlo.add %d, %5 : tensor<32x64xf32>
      stablehlo.return %1, %3, %7, %8 : tensor<i32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
    }
  return %0#1, %0#2, %0#3 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
}
