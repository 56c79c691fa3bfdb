// RUN: stablehlo-alpa-opt %s -alpa-import-callbacks | FileCheck %s

// Ordered callbacks hand on a token: through branches, loops, and past those
// that have no order. Pure ones say so.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>, %[[I:.*]]: tensor<i32>)
// CHECK:       %[[T0:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK:       %[[A:.*]]:2 = alpa.callback "first" index 0 ordered(%[[T0]], %[[X]]) : (tensor<i32>, tensor<8xf32>) -> (tensor<i32>, tensor<8xf32>)
// CHECK:       alpa.callback "print" index 1(%[[A]]#1) : (tensor<8xf32>) -> ()
// CHECK:       alpa.callback "sin" index 2 pure(%[[A]]#1) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK:       %[[T1:.*]] = "stablehlo.case"(%[[I]])
// CHECK:         %[[T2:.*]] = alpa.callback "second" index 3 ordered(%[[A]]#0) : (tensor<i32>) -> tensor<i32>
// CHECK:         stablehlo.return %[[T2]]
// CHECK:         stablehlo.return %[[A]]#0
// CHECK:       %[[LOOP:.*]]:2 = stablehlo.while(%{{.*}} = %[[I]], %[[T3:.*]] = %[[T1]])
// CHECK:         %[[T4:.*]] = alpa.callback "third" index 4 ordered(%[[T3]]) : (tensor<i32>) -> tensor<i32>
// CHECK:         stablehlo.return %{{.*}}, %[[T4]]
// CHECK:       alpa.callback "last" index 5 ordered(%[[LOOP]]#1) : (tensor<i32>) -> tensor<i32>
func.func @main(%x: tensor<8xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<i32>) {
  %0 = stablehlo.custom_call @alpa_callback(%x) {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : i64, name = "first", ordered = true}} : (tensor<8xf32>) -> tensor<8xf32>
  stablehlo.custom_call @alpa_callback(%0) {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 1 : i64, name = "print", ordered = false}} : (tensor<8xf32>) -> ()
  %1 = stablehlo.custom_call @alpa_callback(%0) {api_version = 4 : i32, backend_config = {index = 2 : i64, name = "sin", ordered = false}} : (tensor<8xf32>) -> tensor<8xf32>
  "stablehlo.case"(%i) ({
    stablehlo.custom_call @alpa_callback() {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 3 : i64, name = "second", ordered = true}} : () -> ()
    "stablehlo.return"() : () -> ()
  }, {
    "stablehlo.return"() : () -> ()
  }) : (tensor<i32>) -> ()
  %2 = "stablehlo.while"(%i) ({
  ^bb0(%c: tensor<i32>):
    %3 = stablehlo.compare LT, %c, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%3) : (tensor<i1>) -> ()
  }, {
  ^bb0(%c: tensor<i32>):
    stablehlo.custom_call @alpa_callback() {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 4 : i64, name = "third", ordered = true}} : () -> ()
    %3 = stablehlo.add %c, %c : tensor<i32>
    "stablehlo.return"(%3) : (tensor<i32>) -> ()
  }) : (tensor<i32>) -> tensor<i32>
  stablehlo.custom_call @alpa_callback() {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 5 : i64, name = "last", ordered = true}} : () -> ()
  return %1, %2 : tensor<8xf32>, tensor<i32>
}
