// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-prepare-pipeline -alpa-enumerate-strategies="mesh=x:2" -allow-unregistered-dialect 2>&1 | FileCheck %s

// What has scales per axis, and numbers of type `index`, are exchanged by nothing: they are whole at the boundary,
// on their way through regions and in operators. Elements with one scale are exchanged.

// CHECK: node 0 input: RR{{$}}
// CHECK: node 1 input: RR | S0R | RS0{{$}}
// CHECK: node 2 stablehlo.add: RR,RR->RR{{$}}
!axis = !quant.uniform<i8:f32:1, {0.5, 0.25, 0.5, 0.25}>
!one = !quant.uniform<i8:f32, 0.5>
func.func @quantized(%x: tensor<8x4x!axis>, %y: tensor<8x4x!one>) -> (tensor<8x4x!axis>, tensor<8x4x!one>) {
  %0 = stablehlo.add %x, %x : tensor<8x4x!axis>
  return %0, %y : tensor<8x4x!axis>, tensor<8x4x!one>
}

// -----

// CHECK: node 0 input: RR{{$}}
// CHECK: alpa.constrain: RR->RR{{$}}
// CHECK: carry: RR{{$}}
func.func @index(%n: index, %x: tensor<8x4xindex>) -> tensor<8x4xindex> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = alpa.constrain %x [["x"], []] : tensor<8x4xindex>
  %1 = scf.for %i = %zero to %n step %one iter_args(%a = %0) -> tensor<8x4xindex> {
    %2 = "other.next"(%a) : (tensor<8x4xindex>) -> tensor<8x4xindex>
    scf.yield %2 : tensor<8x4xindex>
  }
  return %1 : tensor<8x4xindex>
}
