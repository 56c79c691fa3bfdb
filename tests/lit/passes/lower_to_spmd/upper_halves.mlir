// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// The upper half of a product in a type twice as wide.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<8xui32>, %{{.+}}: tensor<8xui32>)
// CHECK-DAG: %[[A:.+]] = stablehlo.convert %arg0 : (tensor<8xui32>) -> tensor<8xui64>
// CHECK-DAG: %[[B:.+]] = stablehlo.convert %arg1 : (tensor<8xui32>) -> tensor<8xui64>
// CHECK: %[[P:.+]] = stablehlo.multiply %[[A]], %[[B]]
// CHECK: %[[H:.+]] = stablehlo.shift_right_logical %[[P]], %{{.+}}
// CHECK: stablehlo.convert %[[H]] : (tensor<8xui64>) -> tensor<8xui32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%a: tensor<16xui32> {alpa.sharding = #alpa.sharding<S0>}, %b: tensor<16xui32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<16xui32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = chlo.mulhi %a, %b {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>]} : tensor<16xui32>, tensor<16xui32> -> tensor<16xui32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xui32>
  }
}

// -----

// There is no wider type: four products of halves.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<8xi64>, %{{.+}}: tensor<8xi64>)
// CHECK-COUNT-4: stablehlo.multiply
// CHECK-NOT: stablehlo.multiply
// CHECK: return %{{.+}} : tensor<8xi64>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%a: tensor<16xi64> {alpa.sharding = #alpa.sharding<S0>}, %b: tensor<16xi64> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<16xi64> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = chlo.mulhi %a, %b {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>]} : tensor<16xi64>, tensor<16xi64> -> tensor<16xi64>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xi64>
  }
}
