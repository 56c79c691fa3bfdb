// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-import)' | FileCheck %s

// What lies on the device is not moved there: %b says that it does not, and %there was moved away.

// CHECK: func.func @main(%[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32> {mhlo.memory_kind = "pinned_host"})
// CHECK: %[[MOVED:.*]] = stablehlo.custom_call @annotate_device_placement(%[[B]])
// CHECK: %[[SUM:.*]] = stablehlo.add %[[A]], %[[MOVED]]
// CHECK: %[[THERE:.*]] = stablehlo.custom_call @annotate_device_placement(%[[SUM]])
// CHECK: %[[BACK:.*]] = stablehlo.custom_call @annotate_device_placement(%[[THERE]])
// CHECK: return %[[BACK]], %[[A]]
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32> {mhlo.memory_kind = "pinned_host"}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.custom_call @annotate_device_placement(%a) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @annotate_device_placement(%b) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<8xf32>) -> tensor<8xf32>
  %sum = stablehlo.add %0, %1 : tensor<8xf32>
  %there = stablehlo.custom_call @annotate_device_placement(%sum) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<8xf32>) -> tensor<8xf32>
  %back = stablehlo.custom_call @annotate_device_placement(%there) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<8xf32>) -> tensor<8xf32>
  return %back, %0 : tensor<8xf32>, tensor<8xf32>
}
