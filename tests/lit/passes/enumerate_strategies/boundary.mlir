// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-import-constraints{axes=x,y},alpa-merge-operators,alpa-enumerate-strategies{mesh=x:2,y:2})' -allow-unregistered-dialect 2>&1 | FileCheck %s

// The sharding that a module gives an argument is the argument's: `%a` lies as it says, and a
// dimension that is open may be split further, but not by an axis that is to split nothing.

// CHECK: remark: node 0 input: S0R{{$}}
// CHECK: remark: node 1 input: S0R | S01R | S0S1{{$}}
module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=2]>, sym_name = "mesh"}> : () -> ()
  func.func @main(%a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}>}, %b: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>}) -> tensor<64x64xf32> {
    %0 = stablehlo.add %a, %b : tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}
