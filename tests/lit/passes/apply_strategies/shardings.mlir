// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-merge-operators,alpa-choose-strategies{mesh=x:2,y:2 solution=0},alpa-apply-strategies)' | FileCheck %s --check-prefix=WHOLE
// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-merge-operators,alpa-choose-strategies{mesh=x:2,y:2 solution=1},alpa-apply-strategies)' | FileCheck %s --check-prefix=SPLIT

// The argument's strategy is the operator's that follows it; the broadcast constant is made in the
// sharding in which it is needed.

// WHOLE: alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>
// WHOLE: @main(%{{.*}}: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RR>})
// WHOLE: stablehlo.add{{.*}}alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>]

// SPLIT: @main(%{{.*}}: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<[[S:.*]]>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<[[S]]>})
// SPLIT: stablehlo.broadcast_in_dim{{.*}}alpa.results = [#alpa.sharding<[[S]]>]
// SPLIT: stablehlo.add{{.*}}alpa.operands = [#alpa.sharding<[[S]]>, #alpa.sharding<[[S]]>], alpa.results = [#alpa.sharding<[[S]]>]
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
