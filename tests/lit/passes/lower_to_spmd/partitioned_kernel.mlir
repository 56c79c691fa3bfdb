// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd | FileCheck %s

// The call of a device says which axes split its tensors; its rule is that of the block.

// CHECK: @alpa_kernel(%arg0, %arg1)
// CHECK-SAME: operands = {{\[\[}}array<i64: 0, 1>, array<i64>], [array<i64>]]
// CHECK-SAME: results = {{\[\[}}array<i64: 0, 1>, array<i64>]]
// CHECK-SAME: rule = #alpa.rule<([a, b], [b]) -> ([a, b]) {a=2, b=4} flops=8>
// CHECK-SAME: (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<16x4xf32> {alpa.sharding = #alpa.sharding<S01R>}, %b: tensor<4xf32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<16x4xf32> {alpa.sharding = #alpa.sharding<S01R>}) {
    %0 = stablehlo.custom_call @alpa_kernel(%a, %b) {api_version = 4 : i32, backend_config = {index = 0 : i64, name = "norm", rule = #alpa.rule<([x, y], [y]) -> ([x, y]) {x=16, y=4} flops=64>}, alpa.operands = [#alpa.sharding<S01R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<S01R>], alpa.strategy = #alpa.strategy<a=[0, 1]>} : (tensor<16x4xf32>, tensor<4xf32>) -> tensor<16x4xf32>
    return %0 : tensor<16x4xf32>
  }
}
