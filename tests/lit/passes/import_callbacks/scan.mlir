// RUN: stablehlo-alpa-opt %s -alpa-import-callbacks | FileCheck %s

// The token of ordered callbacks is one carry more of a scan.

// CHECK: %[[T:.+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: %[[S:.+]]:2 = chlo.scan({{.*}}) inits (%{{.+}}, %[[T]])
// CHECK-NEXT: ^bb0({{.*}}, %[[OWN:.+]]: tensor<i32>):
// CHECK: %[[NEXT:.+]] = alpa.callback "print" index 0 ordered(%[[OWN]], %{{.+}})
// CHECK: stablehlo.return %{{.+}}, %[[NEXT]]
// CHECK: alpa.callback "last" index 1 ordered(%[[S]]#1)
func.func @main(%x: tensor<4x8xf32>, %init: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "chlo.scan"(%x, %init) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: tensor<8xf32>, %h: tensor<8xf32>):
    stablehlo.custom_call @alpa_callback(%a) {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : i64, name = "print", ordered = true}} : (tensor<8xf32>) -> ()
    stablehlo.return %a : tensor<8xf32>
  }) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  stablehlo.custom_call @alpa_callback() {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 1 : i64, name = "last", ordered = true}} : () -> ()
  return %0 : tensor<8xf32>
}
