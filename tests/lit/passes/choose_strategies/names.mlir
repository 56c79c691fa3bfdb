// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-merge-operators,alpa-choose-strategies{mesh=x:2 solution=1,0,1,1,1})' | FileCheck %s

// A strategy stands on its operator; a loop, which has none, gets the shardings that it carries, and
// so do arguments and results.
// CHECK: alpa.mesh = #alpa.mesh<["x"=2]>
// CHECK: func.func @main(%{{.*}}: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<[[X:.*]]>}, %{{.*}}: tensor<16x16xf32> {alpa.sharding = #alpa.sharding<{{.*}}>}, %{{.*}}: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<{{.*}}>})
// CHECK: stablehlo.constant {alpa.role = "replicated", alpa.strategy = #alpa.strategy<>}
// CHECK: stablehlo.while{{.*}}attributes {alpa.results = [#alpa.sharding<>, #alpa.sharding<{{.*}}>]}
// CHECK: stablehlo.dot_general{{.*}}alpa.role = "leader", alpa.strategy = #alpa.strategy<{{[a-c]}}=[0]>
// CHECK: stablehlo.tanh{{.*}}alpa.role = "follower", alpa.strategy = #alpa.strategy<{{[ab]?}}
// CHECK-NOT: alpa.operands
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<8x16xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %c = %x) : tensor<i32>, tensor<8x16xf32>
   cond {
    %p = stablehlo.compare GT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %d = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %t = stablehlo.tanh %d : tensor<8x16xf32>
    stablehlo.return %j, %t : tensor<i32>, tensor<8x16xf32>
  }
  return %0#1 : tensor<8x16xf32>
}
