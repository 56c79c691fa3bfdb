// RUN: stablehlo-alpa-opt %s -split-input-file --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// State that lies on the host, is moved to the device where the update reads it, not where the step begins, and back:
// neither %m nor what is returned takes memory of the device.

// CHECK: remark: argument 0 lives from 0 to 4
// CHECK: remark: argument 2 lives from 0 to 4
// CHECK: remark: result 0 lives from 1 to 2
// CHECK-NEXT: %on_device = stablehlo.custom_call
// CHECK: remark: result 0 lives from 0 to 2
// CHECK-NEXT: %g = stablehlo.dot_general
// CHECK: remark: result 0 lives from 3 to 3
// CHECK-NEXT: %new = stablehlo.add
// CHECK-NOT: lives from

func.func @main(%x: tensor<8x8xf32>, %m: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %on_device = stablehlo.custom_call @annotate_device_placement(%m) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %new = stablehlo.add %on_device, %g : tensor<8x8xf32>
  %on_host = stablehlo.custom_call @annotate_device_placement(%new) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %on_host : tensor<8x8xf32>
}

// -----

// What a loop stacks on the host, and what is read of it behind the loop, is one tensor there. Three numbers of a turn
// and the row that is read again are on the device.

// CHECK: remark: argument 0 lives
// CHECK-NEXT: func.func
// CHECK: remark: result 0 lives
// CHECK-NEXT: %p =
// CHECK: remark: result 0 lives
// CHECK-NEXT: %j =
// CHECK: remark: result 0 lives
// CHECK-NEXT: %h =
// CHECK: remark: result 0 lives
// CHECK-NEXT: %1:2 = stablehlo.while(%i = %zero,
// CHECK: remark: result 0 lives
// CHECK-NEXT: %here =
// CHECK-NOT: remark: result 1 lives
// CHECK-NOT: %next =
// CHECK: remark: reads

func.func @main(%x: tensor<8xf32>, %stack: tensor<4x8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %1:2 = stablehlo.while(%i = %zero, %all = %stack) : tensor<i32>, tensor<4x8xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %h = stablehlo.tanh %x : tensor<8xf32>
    %there = stablehlo.custom_call @annotate_device_placement(%h) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<8xf32>) -> tensor<8xf32>
    %row = stablehlo.reshape %there : (tensor<8xf32>) -> tensor<1x8xf32>
    %next = stablehlo.dynamic_update_slice %all, %row, %i, %zero : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    stablehlo.return %j, %next : tensor<i32>, tensor<4x8xf32>
  }
  %row = stablehlo.dynamic_slice %1#1, %one, %zero, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
  %flat = stablehlo.reshape %row : (tensor<1x8xf32>) -> tensor<8xf32>
  %here = stablehlo.custom_call @annotate_device_placement(%flat) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<8xf32>) -> tensor<8xf32>
  %sum = stablehlo.add %here, %x : tensor<8xf32>
  return %sum : tensor<8xf32>
}
