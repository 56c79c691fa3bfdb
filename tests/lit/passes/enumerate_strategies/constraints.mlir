// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -o %t.merged
// RUN: stablehlo-alpa-opt %t.merged -alpa-enumerate-strategies=mesh=x:2,y:2 2>&1 | FileCheck %s

// A constraint has the strategies that it allows, and no others.
// CHECK: sharding constraint {{.*}} is ignored: no sharding of 'tensor<6x4xf32>' on {{.*}} is what it asks for
// CHECK: alpa.constrain: S1S0->S1S0{{$}}
// CHECK: alpa.constrain: S0R->S0R | S0S1->S0S1{{$}}
// CHECK: alpa.constrain: S0R->S0R{{$}}
// CHECK: alpa.constrain: RR->RR | {{.*}} | RS01->RS01{{$}}
func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<8x4xf32>, %d: tensor<6x4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<6x4xf32>) {
  %0 = alpa.constrain %a [["y"], ["x"]] : tensor<8x4xf32>
  // Only what is left open may be split further.
  %1 = alpa.constrain %b [["x"], [unit]] : tensor<8x4xf32>
  // Axes that the mesh lacks are of size 1.
  %2 = alpa.constrain %c [["x", "z"], []] : tensor<8x4xf32>
  // Four devices do not divide six rows.
  %3 = alpa.constrain %d [["x", "y"], []] : tensor<6x4xf32>
  return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<6x4xf32>
}
