// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd | FileCheck %s

// A function of the host is the custom call again that it was imported from, on whole values; what is
// not pure has a side effect, and what is ordered hands on a token.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<4x4xf32>, %[[T:.*]]: tensor<i32>)
// CHECK:       %[[ALL:.*]] = "stablehlo.all_gather"(%[[X]])
// CHECK-NEXT:  %[[Y:.*]] = stablehlo.custom_call @alpa_callback(%[[ALL]]) {api_version = 4 : i32, backend_config = {index = 2 : i64, name = "sin", ordered = false}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:  stablehlo.custom_call @alpa_callback(%[[T]], %[[Y]]) {api_version = 4 : i32, backend_config = {index = 3 : i64, name = "log", ordered = true}, has_side_effect = true} : (tensor<i32>, tensor<8x4xf32>) -> tensor<i32>
// CHECK:       stablehlo.dynamic_slice %[[Y]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S1R>}, %t: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S1R>}) {
    %0 = alpa.reshard %x from <S1R> to <RR> : tensor<8x4xf32>
    %1 = alpa.callback "sin" index 2 pure(%0) {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = alpa.callback "log" index 3 ordered(%t, %1) {alpa.operands = [#alpa.sharding<>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<>]} : (tensor<i32>, tensor<8x4xf32>) -> tensor<i32>
    %3 = alpa.reshard %1 from <RR> to <S1R> : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<S1R>], alpa.results = []} %3 : tensor<8x4xf32>
  }
}
