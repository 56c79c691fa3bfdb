// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// A scatter whose sums are of a wider type than its operands: so is the spare row.

// CHECK: %[[PADDED:.+]] = stablehlo.pad %arg0
// CHECK: "stablehlo.scatter"(%[[PADDED]]
// CHECK: (tensor<5x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<5x4xf64>
// CHECK: stablehlo.slice {{.*}} : (tensor<5x4xf64>) -> tensor<4x4xf64>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<RR>}, %u: tensor<6x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4xf64> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = "stablehlo.scatter"(%table, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %1 = stablehlo.add %a, %b : tensor<f64>
      stablehlo.return %1 : tensor<f64>
    }) {alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>]} : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<8x4xf64>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<8x4xf64>
  }
}
