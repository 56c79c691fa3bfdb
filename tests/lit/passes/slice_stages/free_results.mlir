// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 | FileCheck %s --check-prefix=FIRST
// RUN: stablehlo-alpa-opt %s "--alpa-slice-stages=stages=0,1 last-makes-free" | FileCheck %s --check-prefix=LAST

// Any stage could make the next count. The first does, or the last: where stages update by
// themselves its update comes first.

// FIRST-LABEL: module @stage_0
// FIRST: func.func @main({{.*}}) -> ({{.*}}tensor<i32> {alpa.output = 1 : i64
// FIRST-LABEL: module @stage_1
// FIRST: func.func @main({{.*}}) -> (tensor<64x64xf32> {{{.*}}alpa.output = 0 : i64{{.*}}}

// LAST-LABEL: module @stage_0
// LAST-NOT: alpa.output
// LAST-LABEL: module @stage_1
// LAST: func.func @main({{.*}}) -> (tensor<64x64xf32> {{{.*}}alpa.output = 0 : i64{{.*}}}, tensor<i32> {alpa.output = 1 : i64
func.func @main(%a: tensor<64x64xf32>, %count: tensor<i32>) -> (tensor<64x64xf32>, tensor<i32>) attributes {alpa.micro_batches = 2 : i64} {
  %0 = stablehlo.negate %a {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %1 = stablehlo.negate %0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %sum = alpa.accumulate %1 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %count, %one {alpa.phase = 2 : i64} : tensor<i32>
  return %sum, %next : tensor<64x64xf32>, tensor<i32>
}
