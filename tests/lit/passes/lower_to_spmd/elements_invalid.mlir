// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect -alpa-lower-to-spmd

// Tensors of anything but numbers are not split.

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4x!stablehlo.token> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<RR>}, %u: tensor<6x4x!stablehlo.token> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4x!stablehlo.token> {alpa.sharding = #alpa.sharding<S0R>}) {
    // expected-error @below {{operand #0 must be variadic of ranked tensor of}}
    %0 = "stablehlo.scatter"(%table, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<!stablehlo.token>, %b: tensor<!stablehlo.token>):
      stablehlo.return %b : tensor<!stablehlo.token>
    }) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>]} : (tensor<8x4x!stablehlo.token>, tensor<6x1xi32>, tensor<6x4x!stablehlo.token>) -> tensor<8x4x!stablehlo.token>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<8x4x!stablehlo.token>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4x!quant.uniform<i8:f32, 0.5>> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<RR>}, %u: tensor<6x4x!quant.uniform<i8:f32, 0.5>> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4x!quant.uniform<i8:f32, 0.5>> {alpa.sharding = #alpa.sharding<S0R>}) {
    // expected-error @below {{its shardings follow from none}}
    %0 = "stablehlo.scatter"(%table, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5>>, %b: tensor<!quant.uniform<i8:f32, 0.5>>):
      stablehlo.return %b : tensor<!quant.uniform<i8:f32, 0.5>>
    }) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>]} : (tensor<8x4x!quant.uniform<i8:f32, 0.5>>, tensor<6x1xi32>, tensor<6x4x!quant.uniform<i8:f32, 0.5>>) -> tensor<8x4x!quant.uniform<i8:f32, 0.5>>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<8x4x!quant.uniform<i8:f32, 0.5>>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4xvector<2xf32>> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<RR>}, %u: tensor<6x4xvector<2xf32>> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4xvector<2xf32>> {alpa.sharding = #alpa.sharding<S0R>}) {
    // expected-error @below {{operand #0 must be variadic of ranked tensor of}}
    %0 = "stablehlo.scatter"(%table, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<vector<2xf32>>, %b: tensor<vector<2xf32>>):
      stablehlo.return %b : tensor<vector<2xf32>>
    }) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>]} : (tensor<8x4xvector<2xf32>>, tensor<6x1xi32>, tensor<6x4xvector<2xf32>>) -> tensor<8x4xvector<2xf32>>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<8x4xvector<2xf32>>
  }
}
