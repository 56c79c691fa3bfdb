// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-import-constraints{axes=data,model})' -split-input-file -allow-unregistered-dialect -verify-diagnostics | FileCheck %s

// Constraints of Shardy's on the axes that are planned for; P.UNCONSTRAINED is `{?}`.
// CHECK-LABEL: func.func @kept
// CHECK-SAME:  (%[[X:.*]]: tensor<8x4x2xf32>)
// CHECK:       %[[W:.*]] = alpa.constrain %[[X]] {{\[\[}}], [], []] : tensor<8x4x2xf32>
// CHECK:       %[[A:.*]] = alpa.constrain %[[W]] {{\[\[}}"data"], [unit], []] : tensor<8x4x2xf32>
// CHECK:       %[[B:.*]] = alpa.constrain %[[A]] {{\[\[}}"model"], [], ["data", unit]] : tensor<8x4x2xf32>
// CHECK:       %[[C:.*]] = alpa.constrain %[[B]] {{\[\[}}unit], [unit], [unit]] replicated ["data"] : tensor<8x4x2xf32>
// CHECK:       %[[D:.*]] = alpa.constrain %[[C]] {{\[\[}}], ["model"], []] : tensor<8x4x2xf32>
// CHECK:       return %[[D]]
// CHECK-NOT:   sdy
module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["data"=2, "model"=4]>, sym_name = "mesh"}> : () -> ()
  func.func @kept(%x: tensor<8x4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) -> (tensor<8x4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}) {
    %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@mesh, [{"data"}, {?}, {}]>}> : (tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
    %1 = "sdy.sharding_constraint"(%0) <{sharding = #sdy.sharding<mesh<["data"=2, "model"=4]>, [{"model"}p1, {}, {"data", ?}]>}> : (tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
    %3 = "sdy.sharding_constraint"(%1) <{sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}], replicated={"data"}>}> : (tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
    // Nothing is asked for.
    %2 = "sdy.sharding_constraint"(%3) <{sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}]>}> : (tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
    return %2 : tensor<8x4x2xf32>
  }
}

// -----

// Of another mesh, with parts of axes, with partial sums, or as GSPMD writes them: left out.
// CHECK-LABEL: func.func @left_out
// CHECK-SAME:  (%[[X:.*]]: tensor<8x4xf32>)
// CHECK-NEXT:  return %[[X]]
module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["data"=2, "expert"=4]>, sym_name = "other"}> : () -> ()
  func.func @left_out(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    // expected-remark @below {{5 sharding constraints are ignored: the mesh that is planned for has other axes than data, expert}}
    %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@other, [{"data"}, {}]>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = "sdy.sharding_constraint"(%0) <{sharding = #sdy.sharding<mesh<["data"=4]>, [{"data":(1)2}, {}]>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = "sdy.sharding_constraint"(%1) <{sharding = #sdy.sharding<mesh<["data"=4]>, [{}, {}], unreduced={"data"}>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %4 = "sdy.sharding_constraint"(%3) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }
}

// -----

// JAX itself constrains the data of PRNG keys, on a mesh without axes: no remark.
// CHECK-LABEL: func.func @of_jax
// CHECK-SAME:  (%[[X:.*]]: tensor<2xui32>)
// CHECK-NEXT:  return %[[X]]
module {
  "sdy.mesh"() <{mesh = #sdy.mesh<[]>, sym_name = "empty_mesh"}> : () -> ()
  func.func @of_jax(%x: tensor<2xui32>) -> tensor<2xui32> {
    %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@empty_mesh, [{}]>}> : (tensor<2xui32>) -> tensor<2xui32>
    %1 = "sdy.sharding_constraint"(%0) <{sharding = #sdy.sharding<mesh<[]>, [{}]>}> : (tensor<2xui32>) -> tensor<2xui32>
    return %1 : tensor<2xui32>
  }
}

// -----

// Boundary shardings of another mesh, and what a propagation has left on operators.
// CHECK-LABEL: func.func @boundary
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:  %[[Y:.*]] = stablehlo.tanh %[[X]] : tensor<8xf32>
// CHECK-NEXT:  return %[[Y]]
module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["expert"=4]>, sym_name = "other"}> : () -> ()
  // expected-remark @below {{3 sharding constraints are ignored: the mesh that is planned for has other axes than expert}}
  func.func @boundary(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{"expert"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{}]>}) {
    %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@other, [{"expert"}]>]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// An axis that is named twice.
// CHECK-LABEL: func.func @twice
module {
  func.func @twice(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    // expected-remark @below {{1 sharding constraint is ignored: the mesh that is planned for has other axes than data}}
    %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<mesh<["data"=2]>, [{"data"}, {}], replicated={"data"}>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// A mesh that the module does not name is another one.
// CHECK-LABEL: func.func @nowhere
module {
  func.func @nowhere(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-remark @below {{1 sharding constraint is ignored: no axes are named}}
    %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@nowhere, [{}]>}> : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
