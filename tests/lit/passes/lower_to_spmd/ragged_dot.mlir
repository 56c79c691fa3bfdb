// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd | FileCheck %s

// Rows: a block of them has groups of other sizes, and all weights.
// CHECK: stablehlo.partition_id
// CHECK: stablehlo.clamp
// CHECK: "chlo.ragged_dot"(%arg0, %arg1, %{{.*}}) {{.*}} (tensor<6x8xf32>, tensor<4x8x6xf32>, tensor<4xi32>) -> tensor<6x6xf32>
// CHECK-NOT: stablehlo.concatenate
// CHECK-NOT: stablehlo.all_
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%a: tensor<12x8xf32> {alpa.sharding = #alpa.sharding<S0R>}, %b: tensor<4x8x6xf32> {alpa.sharding = #alpa.sharding<RRR>}, %s: tensor<4xi32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<12x6xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = "chlo.ragged_dot"(%a, %b, %s) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RRR>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<12x8xf32>, tensor<4x8x6xf32>, tensor<4xi32>) -> tensor<12x6xf32>
    return %0 : tensor<12x6xf32>
  }
}

// -----

// Groups: the rows of a device's own come first; the others are zeros of its share of the sum.
// CHECK: stablehlo.concatenate %arg0, %arg0
// CHECK: stablehlo.dynamic_slice
// CHECK: %[[PART:.*]] = "chlo.ragged_dot"(%{{.*}}, %arg1, %{{.*}}) {{.*}} (tensor<12x8xf32>, tensor<2x8x6xf32>, tensor<2xi32>) -> tensor<12x6xf32>
// CHECK: %[[OWN:.*]] = stablehlo.select %{{.*}}, %[[PART]], %{{.*}}
// CHECK: stablehlo.concatenate %[[OWN]], %[[OWN]]
// CHECK: "stablehlo.reduce_scatter"
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%a: tensor<12x8xf32> {alpa.sharding = #alpa.sharding<RR>}, %b: tensor<4x8x6xf32> {alpa.sharding = #alpa.sharding<S0RR>}, %s: tensor<4xi32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<12x6xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = "chlo.ragged_dot"(%a, %b, %s) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<S0RR>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<d=[0]>} : (tensor<12x8xf32>, tensor<4x8x6xf32>, tensor<4xi32>) -> tensor<12x6xf32>
    %1 = alpa.reshard %0 from <RRP0> to <S0R> : tensor<12x6xf32>
    return %1 : tensor<12x6xf32>
  }
}

// -----

// Gradients of weights: of its own groups, each device sums up all their rows.
// CHECK: "chlo.ragged_dot"(%{{.*}}, %{{.*}}, %{{.*}}) {{.*}} (tensor<12x8xf32>, tensor<12x6xf32>, tensor<2xi32>) -> tensor<2x8x6xf32>
// CHECK-NEXT: return
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%a: tensor<12x8xf32> {alpa.sharding = #alpa.sharding<RR>}, %b: tensor<12x6xf32> {alpa.sharding = #alpa.sharding<RR>}, %s: tensor<4xi32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<4x8x6xf32> {alpa.sharding = #alpa.sharding<S0RR>}) {
    %0 = "chlo.ragged_dot"(%a, %b, %s) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]>}> {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<S0RR>], alpa.strategy = #alpa.strategy<d=[0]>} : (tensor<12x8xf32>, tensor<12x6xf32>, tensor<4xi32>) -> tensor<4x8x6xf32>
    return %0 : tensor<4x8x6xf32>
  }
}
