// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-move-reshards -alpa-verify-plan | FileCheck %s

// Devices add their parts, scale them, and gather once. Whoever needs a part has it.

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[PART:.*]] = alpa.reshard %arg1 from <RR> to <S0R>
// CHECK-DAG: %[[SUM:.*]] = stablehlo.add %arg0, %[[PART]]
// CHECK-DAG: %[[SCALE:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [] {{.*}}alpa.results = [#alpa.sharding<S0R>]
// CHECK: %[[SCALED:.*]] = stablehlo.multiply %[[SUM]], %[[SCALE]]
// CHECK: %[[ALL:.*]] = alpa.reshard %[[SCALED]] from <S0R> to <RR>
// CHECK-NOT: alpa.reshard
// CHECK: return {{.*}} %[[ALL]], %[[SCALED]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %y: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %c: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = alpa.reshard %x from <S0R> to <RR> : tensor<8x4xf32>
    %1 = stablehlo.add %0, %y {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<8x4xf32>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] {alpa.operands = [#alpa.sharding<>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<f32>) -> tensor<8x4xf32>
    %3 = stablehlo.multiply %1, %2 {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<8x4xf32>
    %4 = alpa.reshard %3 from <RR> to <S0R> : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<S0R>], alpa.results = []} %3, %4 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// One gather instead of two.

// CHECK-LABEL: func.func @main
// CHECK: %[[SUM:.*]] = stablehlo.add %arg0, %arg1
// CHECK-NEXT: alpa.reshard %[[SUM]] from <S0R> to <RR>
// CHECK-NOT: alpa.reshard
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %y: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %x from <S0R> to <RR> : tensor<8x4xf32>
    %1 = alpa.reshard %y from <S0R> to <RR> : tensor<8x4xf32>
    %2 = stablehlo.add %0, %1 {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %2 : tensor<8x4xf32>
  }
}

// -----

// A wider type would be gathered.

// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:.*]] = alpa.reshard %arg0 from <S0R> to <RR>
// CHECK: stablehlo.convert %[[ALL]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xbf16> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %x from <S0R> to <RR> : tensor<8x4xbf16>
    %1 = stablehlo.convert %0 {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<8x4xbf16>) -> tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %1 : tensor<8x4xf32>
  }
}

// -----

// What was made of the part goes on to be made of the part.

// CHECK-LABEL: func.func @main
// CHECK: %[[PART:.*]] = stablehlo.negate %arg0
// CHECK-DAG: alpa.reshard %[[PART]] from <S0R> to <RR>
// CHECK-DAG: alpa.reshard %[[PART]] from <S0R> to <S0S1>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0S1>}) {
    %0 = alpa.reshard %x from <S0R> to <RR> : tensor<8x4xf32>
    %1 = stablehlo.negate %0 {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<8x4xf32>
    %2 = alpa.reshard %1 from <RR> to <S0R> : tensor<8x4xf32>
    %3 = alpa.reshard %2 from <S0R> to <S0S1> : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<S0S1>], alpa.results = []} %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
