// RUN: stablehlo-alpa-opt %s -o %t.once && stablehlo-alpa-opt %t.once | diff %t.once -
// RUN: stablehlo-alpa-opt %s -mlir-print-op-generic -o %t.generic && stablehlo-alpa-opt %t.generic | diff %t.once -
// RUN: FileCheck %s < %t.once

// CHECK-LABEL: @broadcast
func.func @broadcast(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %p: tensor<4x1xi1>) -> tensor<4x8xf32> {
  // CHECK: chlo.broadcast_add %{{.*}}, %{{.*}} {broadcast_dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %0 = chlo.broadcast_add %x, %v {broadcast_dimensions = array<i64: 1>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: chlo.broadcast_compare %{{.*}}, %{{.*}} {comparison_direction = #chlo<comparison_direction LT>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %1 = chlo.broadcast_compare %x, %v {comparison_direction = #chlo<comparison_direction LT>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  // CHECK: chlo.broadcast_complex %{{.*}} -> tensor<4x8xcomplex<f32>>
  %2 = chlo.broadcast_complex %x, %v : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xcomplex<f32>>
  // CHECK: chlo.broadcast_select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4x1xi1>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %3 = chlo.broadcast_select %p, %0, %v : (tensor<4x1xi1>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// CHECK-LABEL: @constants
func.func @constants(%x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: chlo.constant dense<1> : tensor<4xi32>
  %0 = chlo.constant dense<1> : tensor<4xi32>
  // CHECK: "chlo.constant_like"(%{{.*}}) <{value = 2.000000e+00 : f32}> : (tensor<?xf32>) -> tensor<?xf32>
  %1 = "chlo.constant_like"(%x) {value = 2.0 : f32} : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// CHECK-LABEL: @unranked
func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  // CHECK: chlo.top_k(%{{.*}}, k = 8) : tensor<*xf32> -> (tensor<*xf32>, tensor<*xi32>)
  %0:2 = chlo.top_k(%x, k = 8) : tensor<*xf32> -> (tensor<*xf32>, tensor<*xi32>)
  return %0#0 : tensor<*xf32>
}

// CHECK-LABEL: @scan
func.func @scan(%x: tensor<4x8xf32>, %c: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  // CHECK: chlo.scan(%{{.*}}) inits (%{{.*}}) dimension=0 {
  // CHECK-NEXT: ^bb0(%input: tensor<8xf32>, %carry: tensor<8xf32>):
  // CHECK: } : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  %0:2 = chlo.scan(%x) inits (%c) dimension=0 {
  ^bb0(%row: tensor<8xf32>, %sum: tensor<8xf32>):
    %2 = stablehlo.add %row, %sum : tensor<8xf32>
    stablehlo.return %2, %2 : tensor<8xf32>, tensor<8xf32>
  } : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  // CHECK: chlo.scan() inits (%{{.*}}) dimension=0 attributes {is_reverse = true, scan_dim_size = 4 : i64} {
  // CHECK-NEXT: ^bb0(%carry: tensor<8xf32>):
  %1:2 = chlo.scan() inits (%c) dimension=0 attributes {is_reverse = true, scan_dim_size = 4 : i64} {
  ^bb0(%sum: tensor<8xf32>):
    stablehlo.return %sum, %sum : tensor<8xf32>, tensor<8xf32>
  } : (tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  // CHECK: chlo.scan(%{{.*}}, %{{.*}}) inits () dimension=1 {
  %3 = chlo.scan(%0#0, %x) inits () dimension=1 {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    stablehlo.return %b : tensor<4xf32>
  } : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3, %1#1 : tensor<4x8xf32>, tensor<8xf32>
}
