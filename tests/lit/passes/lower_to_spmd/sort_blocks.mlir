// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Columnsort: blocks are sorted, dealt, sorted, collected, sorted, and halves of neighbours are merged.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<4x8xi32>)
// CHECK: %[[ONCE:.+]] = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = false}>
// CHECK: %[[COLUMNS:.+]] = stablehlo.reshape %[[ONCE]] : (tensor<4x8xi32>) -> tensor<4x4x2xi32>
// CHECK: %[[DEALT:.+]] = stablehlo.transpose %[[COLUMNS]], dims = [2, 0, 1]
// CHECK: %[[GOT:.+]] = "stablehlo.all_to_all"(%[[DEALT]]) {{.*}} : (tensor<2x4x4xi32>) -> tensor<2x4x4xi32>
// CHECK: %[[BELOW:.+]] = stablehlo.transpose %[[GOT]], dims = [1, 0, 2]
// CHECK: %[[COLUMN:.+]] = stablehlo.reshape %[[BELOW]] : (tensor<4x2x4xi32>) -> tensor<4x8xi32>
// CHECK: %[[TWICE:.+]] = "stablehlo.sort"(%[[COLUMN]])
// CHECK: stablehlo.reshape %[[TWICE]] : (tensor<4x8xi32>) -> tensor<4x2x4xi32>
// CHECK: stablehlo.transpose %{{.+}}, dims = [1, 0, 2]
// CHECK: "stablehlo.all_to_all"
// CHECK: stablehlo.transpose %{{.+}}, dims = [1, 2, 0]
// CHECK: "stablehlo.sort"
// CHECK: stablehlo.slice %{{.+}} [0:4, 4:8]
// CHECK: "stablehlo.collective_permute"{{.*}}source_target_pairs = dense<{{\[\[}}0, 1]]>
// CHECK: "stablehlo.sort"
// CHECK: "stablehlo.collective_permute"{{.*}}source_target_pairs = dense<{{\[\[}}1, 0]]>
// CHECK: return %{{.+}} : tensor<4x8xi32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x16xi32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4x16xi32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %p = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) {alpa.operands = [#alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x16xi32>) -> tensor<4x16xi32>
    return {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} %0 : tensor<4x16xi32>
  }
}

// -----

// Floats that are in no order may differ (zeros have signs): those in front stay in front.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<8xf32>)
// CHECK: %[[I:.+]] = stablehlo.iota dim = 0 : tensor<8xi32>
// CHECK: %[[P:.+]] = stablehlo.add %[[I]], %{{.+}} : tensor<8xi32>
// CHECK: "stablehlo.sort"(%arg0, %[[P]]) <{dimension = 0 : i64, is_stable = false}> ({
// CHECK: ^bb0(%[[A:.+]]: tensor<f32>, %[[B:.+]]: tensor<f32>, %[[Q:.+]]: tensor<i32>, %[[R:.+]]: tensor<i32>):
// CHECK-DAG: %[[LESS:.+]] = stablehlo.compare LT, %[[A]], %[[B]]
// CHECK-DAG: %[[FIRST:.+]] = stablehlo.compare LT, %[[Q]], %[[R]], SIGNED
// CHECK-DAG: %[[GREATER:.+]] = stablehlo.compare LT, %[[B]], %[[A]]
// CHECK-DAG: %[[EITHER:.+]] = stablehlo.or %[[LESS]], %[[FIRST]]
// CHECK: %[[ORDER:.+]] = stablehlo.select %[[GREATER]], %[[LESS]], %[[EITHER]]
// CHECK: stablehlo.return %[[ORDER]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<16xf32>) -> tensor<16xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xf32>
  }
}

// -----

// The indices of an argsort are the positions already.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<8xf32>)
// CHECK: "stablehlo.sort"(%arg0, %{{.+}}) {{.*}} ({
// CHECK-NEXT: ^bb0(%{{.+}}: tensor<f32>, %{{.+}}: tensor<f32>, %{{.+}}: tensor<i32>, %{{.+}}: tensor<i32>):
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<16xi32> {alpa.sharding = #alpa.sharding<S0>}) {
    %i = stablehlo.iota dim = 0 {alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = []} : tensor<16xi32>
    %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) {alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>, #alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<16xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xi32>)
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0#1 : tensor<16xi32>
  }
}
