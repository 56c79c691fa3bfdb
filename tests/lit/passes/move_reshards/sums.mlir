// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-move-reshards -alpa-verify-plan | FileCheck %s

// Shares are added up before they are transposed and negated.

// CHECK-LABEL: func.func @main
// CHECK: %[[SUM:.*]] = alpa.reshard %arg0 from <RRP0> to <RS0> : tensor<8x4xf32>
// CHECK: %[[TURNED:.*]] = stablehlo.transpose %[[SUM]]
// CHECK-SAME: alpa.results = [#alpa.sharding<S0R>]
// CHECK: %[[NEGATED:.*]] = stablehlo.negate %[[TURNED]]
// CHECK: return {{.*}} %[[NEGATED]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.local = 0, alpa.sharding = #alpa.sharding<RRP0>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.transpose %x, dims = [1, 0] {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.negate %0 {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x8xf32>
    %2 = alpa.reshard %1 from <RRP0> to <S0R> : tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %2 : tensor<4x8xf32>
  }
}

// -----

// Two sums would be completed instead of one.

// CHECK-LABEL: func.func @main
// CHECK: %[[BOTH:.*]] = stablehlo.add %arg0, %arg1
// CHECK: alpa.reshard %[[BOTH]] from <RRP0> to <S0R>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.local = 0, alpa.sharding = #alpa.sharding<RRP0>}, %y: tensor<8x4xf32> {alpa.local = 0, alpa.sharding = #alpa.sharding<RRP0>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.add %x, %y {alpa.operands = [#alpa.sharding<RRP0>, #alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<8x4xf32>
    %1 = alpa.reshard %0 from <RRP0> to <S0R> : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %1 : tensor<8x4xf32>
  }
}

// -----

// The shares are read elsewhere.

// CHECK-LABEL: func.func @main
// CHECK: %[[TURNED:.*]] = stablehlo.transpose %arg0
// CHECK: alpa.reshard %[[TURNED]] from <RRP0> to <S0R>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.local = 0, alpa.sharding = #alpa.sharding<RRP0>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<4x8xf32> {alpa.local = 0, alpa.sharding = #alpa.sharding<RRP0>}) {
    %0 = stablehlo.transpose %x, dims = [1, 0] {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %1 = alpa.reshard %0 from <RRP0> to <S0R> : tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RRP0>], alpa.results = []} %1, %0 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// The operator runs for every micro-batch, the sum is completed once.

// CHECK-LABEL: func.func @main
// CHECK: %[[TURNED:.*]] = stablehlo.transpose %arg0
// CHECK: alpa.reshard %[[TURNED]] from <RRP0> to <S0R>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.local = 0, alpa.sharding = #alpa.sharding<RRP0>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.transpose %x, dims = [1, 0] {alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %1 = alpa.reshard %0 from <RRP0> to <S0R> : tensor<4x8xf32>
    %2 = stablehlo.negate %1 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %2 : tensor<4x8xf32>
  }
}
