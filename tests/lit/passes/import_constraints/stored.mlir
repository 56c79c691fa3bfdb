// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-import-constraints{axes=x,y})' -split-input-file -verify-diagnostics | FileCheck %s

// Shardy's notation in a module that is stored: meshes and shardings are strings, its operations are calls.
// CHECK-NOT:   xla.sdy
// CHECK-LABEL: func.func @kept
// CHECK-SAME:  (%[[X:.*]]: tensor<8x4xf32> {jax.buffer_donor = true}, %[[Y:.*]]: tensor<8x4xf32> {mhlo.frontend_attributes = {own = "1"}})
// CHECK-NEXT:  %[[B:.*]] = alpa.constrain %[[Y]] {{\[\[}}], ["y"]] : tensor<8x4xf32>
// CHECK-NEXT:  %[[A:.*]] = alpa.constrain %[[X]] {{\[\[}}"x"], []] : tensor<8x4xf32>
// CHECK-NEXT:  %[[C:.*]] = stablehlo.add %[[A]], %[[B]]
// CHECK-NEXT:  %[[D:.*]] = alpa.constrain %[[C]] {{\[\[}}], ["x", "y"]] : tensor<8x4xf32>
// CHECK-NEXT:  %[[E:.*]] = alpa.constrain %[[D]] {{\[\[}}"x", unit], []] : tensor<8x4xf32>
// CHECK-NEXT:  return %[[E]]
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{none = #sdy.mesh<[], device_ids=[0]>, mesh = #sdy.mesh<[\22x\22=2, \22y\22=2]>}"}} {
  func.func @kept(
      %x: tensor<8x4xf32> {jax.buffer_donor = true, mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\22x\22}, {}]>"}},
      %y: tensor<8x4xf32> {mhlo.frontend_attributes = {own = "1", xla.sdy.sharding = "#sdy.sharding<@mesh, [{}, {\22y\22}]>"}}) -> tensor<8x4xf32> {
    %0 = stablehlo.add %x, %y : tensor<8x4xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}, {\22x\22, \22y\22}]>]>"}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%1) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\22x\22, ?}p1, {}]>]>"}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // On no axes.
    %3 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%2) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@none, [{}, {}]>]>"}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %3 : tensor<8x4xf32>
  }
}

// -----

// As earlier versions wrote quotes; and what a propagation has left on an operator, of another mesh.
// CHECK-NOT:   xla.sdy
// CHECK-LABEL: func.func @older
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT:  %[[A:.*]] = stablehlo.negate %[[X]] : tensor<8xf32>
// CHECK-NEXT:  %[[B:.*]] = alpa.constrain %[[A]] {{\[\[}}"x"]] : tensor<8xf32>
// CHECK-NEXT:  return %[[B]]
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\\\22x\\\22=2]>, other = #sdy.mesh<[\\\22z\\\22=2]>}"}} {
  func.func @older(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-remark @below {{2 sharding constraints are ignored: the mesh that is planned for has other axes than z}}
    %0 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%x) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@other, [{\\\22z\\\22}]>]>"}} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.negate %0 {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\\\22x\\\22}]>]>"}} : tensor<8xf32>
    %2 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%1) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{\\\22x\\\22}]>]>"}} : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}

// -----

// Meshes that no string names, and what is no string.
// CHECK-LABEL: func.func @broken
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "mesh>"}} {
  func.func @broken(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-remark @below {{3 sharding constraints are ignored: no axes are named}}
    %0 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%x) {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}]>]>"}} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%0) {mhlo.frontend_attributes = {xla.sdy.sharding = 1 : i32}} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%1) : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}
