// RUN: stablehlo-alpa-opt %s -split-input-file -allow-unregistered-dialect -alpa-export-shardings | FileCheck %s

// The gradient of a kernel, which sums over an image that one of two axes splits: XLA's partitioners, which would add it up over both,
// are given the whole image. So they are for a window that moves over it, whose results are split behind; features stay split.

module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  // CHECK-LABEL: func.func @main
  // CHECK: %[[X:.*]] = "sdy.sharding_constraint"(%arg0)
  // CHECK: %[[G:.*]] = "sdy.sharding_constraint"(%arg1)
  // CHECK: %[[WHOLE_X:.*]] = "sdy.sharding_constraint"(%[[X]]) {sharding = {{.*}}, [{}, {}, {}]>}
  // CHECK: %[[WHOLE_G:.*]] = "sdy.sharding_constraint"(%[[G]]) {sharding = {{.*}}, [{}, {}, {}]>}
  // CHECK: stablehlo.convolution(%[[WHOLE_X]], %[[WHOLE_G]])
  func.func @main(%x: tensor<4x8x6xf32> {alpa.sharding = #alpa.sharding<RS1R>}, %g: tensor<4x8x10xf32> {alpa.sharding = #alpa.sharding<RS1R>}) -> (tensor<3x6x10xf32> {alpa.sharding = #alpa.sharding<RRR>}) {
    %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, alpa.strategy = #alpa.strategy<d=[1]>, alpa.operands = [#alpa.sharding<RS1R>, #alpa.sharding<RS1R>], alpa.results = [#alpa.sharding<RRRP1>]} : (tensor<4x8x6xf32>, tensor<4x8x10xf32>) -> tensor<3x6x10xf32>
    %1 = alpa.reshard %0 from <RRRP1> to <RRR> : tensor<3x6x10xf32>
    "func.return"(%1) {alpa.operands = [#alpa.sharding<RRR>], alpa.results = []} : (tensor<3x6x10xf32>) -> ()
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  // CHECK-LABEL: func.func @main
  // CHECK: %[[X:.*]] = "sdy.sharding_constraint"(%arg0) {sharding = {{.*}}, [{}, {"x"}, {}]>}
  // CHECK: %[[K:.*]] = "sdy.sharding_constraint"(%arg1) {sharding = {{.*}}, [{}, {}, {"y"}]>}
  // CHECK: %[[WHOLE:.*]] = "sdy.sharding_constraint"(%[[X]]) {sharding = {{.*}}, [{}, {}, {}]>}
  // CHECK: %[[MADE:.*]] = stablehlo.convolution(%[[WHOLE]], %[[K]])
  // CHECK: %[[UNSPLIT:.*]] = "sdy.sharding_constraint"(%[[MADE]]) {sharding = {{.*}}, [{}, {}, {"y"}]>}
  // CHECK: %[[SPLIT:.*]] = "sdy.sharding_constraint"(%[[UNSPLIT]]) {sharding = {{.*}}, [{}, {"x"}, {"y"}]>}
  // CHECK: return %[[SPLIT]]
  func.func @main(%x: tensor<4x8x6xf32> {alpa.sharding = #alpa.sharding<RS0R>}, %k: tensor<3x6x8xf32> {alpa.sharding = #alpa.sharding<RRS1>}) -> (tensor<4x8x8xf32> {alpa.sharding = #alpa.sharding<RS0S1>}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, alpa.strategy = #alpa.strategy<d=[0], b=[1]>, alpa.operands = [#alpa.sharding<RS0R>, #alpa.sharding<RRS1>], alpa.results = [#alpa.sharding<RS0S1>]} : (tensor<4x8x6xf32>, tensor<3x6x8xf32>) -> tensor<4x8x8xf32>
    "func.return"(%0) {alpa.operands = [#alpa.sharding<RS0S1>], alpa.results = []} : (tensor<4x8x8xf32>) -> ()
  }
}
