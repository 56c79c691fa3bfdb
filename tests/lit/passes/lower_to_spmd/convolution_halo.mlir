// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// A row of each neighbour, and no padding; the ends of the whole get zeros.

// CHECK-LABEL: func.func @main(%arg0: tensor<1x4x3xf32>
// CHECK: %[[LAST:.+]] = stablehlo.slice %arg0 [0:1, 3:4, 0:3]
// CHECK: %[[LOW:.+]] = "stablehlo.collective_permute"(%[[LAST]]) <{{.*}}source_target_pairs = dense<{{\[\[}}0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>
// CHECK: %[[FIRST:.+]] = stablehlo.slice %arg0 [0:1, 0:1, 0:3]
// CHECK: %[[HIGH:.+]] = "stablehlo.collective_permute"(%[[FIRST]]) <{{.*}}source_target_pairs = dense<{{\[\[}}1, 0], [2, 1], [3, 2]]> : tensor<3x2xi64>
// CHECK: %[[ROWS:.+]] = stablehlo.concatenate %[[LOW]], %arg0, %[[HIGH]], dim = 1
// CHECK: stablehlo.convolution(%[[ROWS]], %arg1) {{.*}} window = {pad = {{\[\[}}0, 0]]}
// CHECK-SAME: (tensor<1x6x3xf32>, tensor<3x3x5xf32>) -> tensor<1x4x5xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%x: tensor<1x16x3xf32> {alpa.sharding = #alpa.sharding<RS0R>}, %k: tensor<3x3x5xf32> {alpa.sharding = #alpa.sharding<RRR>}) -> (tensor<1x16x5xf32> {alpa.sharding = #alpa.sharding<RS0R>}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {alpa.operands = [#alpa.sharding<RS0R>, #alpa.sharding<RRR>], alpa.results = [#alpa.sharding<RS0R>], alpa.strategy = #alpa.strategy<c=[0]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<3x3x5xf32>) -> tensor<1x16x5xf32>
    return {alpa.operands = [#alpa.sharding<RS0R>], alpa.results = []} %0 : tensor<1x16x5xf32>
  }
}

// -----

// Under a stride only the rows behind: what a block has in front of its first window is padding no more.

// CHECK-LABEL: func.func @main(%arg0: tensor<1x8x3xf32>
// CHECK-COUNT-1: "stablehlo.collective_permute"(%{{.+}}) <{{.*}}source_target_pairs = dense<{{\[\[}}1, 0]]>
// CHECK: stablehlo.convolution(%{{.+}}) {{.*}} window = {stride = [2], pad = {{\[\[}}0, 0]]}
// CHECK-SAME: (tensor<1x9x3xf32>, tensor<3x3x5xf32>) -> tensor<1x4x5xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<1x16x3xf32> {alpa.sharding = #alpa.sharding<RS0R>}, %k: tensor<3x3x5xf32> {alpa.sharding = #alpa.sharding<RRR>}) -> (tensor<1x8x5xf32> {alpa.sharding = #alpa.sharding<RS0R>}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 1]]} {alpa.operands = [#alpa.sharding<RS0R>, #alpa.sharding<RRR>], alpa.results = [#alpa.sharding<RS0R>], alpa.strategy = #alpa.strategy<c=[0]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<3x3x5xf32>) -> tensor<1x8x5xf32>
    return {alpa.operands = [#alpa.sharding<RS0R>], alpa.results = []} %0 : tensor<1x8x5xf32>
  }
}

// -----

// The gradient of a kernel: the taps are split with the input, and every device has a share of the sum.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x8x1xf32>{{.*}}, %arg1: tensor<8x1x5xf32>
// CHECK-COUNT-2: "stablehlo.collective_permute"
// CHECK: stablehlo.convolution(%{{.+}}, %arg1) {{.*}} window = {pad = {{\[\[}}0, 0]]}
// CHECK-SAME: (tensor<3x10x1xf32>, tensor<8x1x5xf32>) -> tensor<3x3x5xf32>
// CHECK: "stablehlo.all_reduce"
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<3x16x1xf32> {alpa.sharding = #alpa.sharding<RS0R>}, %g: tensor<16x1x5xf32> {alpa.sharding = #alpa.sharding<S0RR>}) -> (tensor<3x3x5xf32> {alpa.sharding = #alpa.sharding<RRR>}) {
    %0 = stablehlo.convolution(%x, %g) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {alpa.operands = [#alpa.sharding<RS0R>, #alpa.sharding<S0RR>], alpa.results = [#alpa.sharding<RRRP0>], alpa.strategy = #alpa.strategy<c=[0]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<3x16x1xf32>, tensor<16x1x5xf32>) -> tensor<3x3x5xf32>
    %1 = alpa.reshard %0 from <RRRP0> to <RRR> : tensor<3x3x5xf32>
    return {alpa.operands = [#alpa.sharding<RRR>], alpa.results = []} %1 : tensor<3x3x5xf32>
  }
}

// -----

// A window that is wider than a block takes the blocks of several neighbours.

// CHECK-LABEL: func.func @main(%arg0: tensor<1x4x3xf32>
// CHECK: "stablehlo.collective_permute"(%{{.+}}) <{{.*}}source_target_pairs = dense<{{\[\[}}0, 2], [1, 3]]>
// CHECK: "stablehlo.collective_permute"(%arg0) <{{.*}}source_target_pairs = dense<{{\[\[}}0, 1], [1, 2], [2, 3]]>
// CHECK: (tensor<1x14x3xf32>, tensor<11x3x5xf32>) -> tensor<1x4x5xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%x: tensor<1x16x3xf32> {alpa.sharding = #alpa.sharding<RS0R>}, %k: tensor<11x3x5xf32> {alpa.sharding = #alpa.sharding<RRR>}) -> (tensor<1x16x5xf32> {alpa.sharding = #alpa.sharding<RS0R>}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[5, 5]]} {alpa.operands = [#alpa.sharding<RS0R>, #alpa.sharding<RRR>], alpa.results = [#alpa.sharding<RS0R>], alpa.strategy = #alpa.strategy<c=[0]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<11x3x5xf32>) -> tensor<1x16x5xf32>
    return {alpa.operands = [#alpa.sharding<RS0R>], alpa.results = []} %0 : tensor<1x16x5xf32>
  }
}
