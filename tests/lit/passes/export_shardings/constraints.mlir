// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-export-shardings | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-export-shardings=form=gspmd | FileCheck %s --check-prefix=GSPMD

// Every value is constrained to the sharding that it is planned to have. The
// partial sum cannot be asked for; what it becomes can.
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=4]>, {{\[}}{"x"}, {"y"}]>
  // CHECK-NOT: alpa.
  // CHECK: %[[X:.*]] = "sdy.sharding_constraint"(%{{.*}}) {{.*}}[{"x"}, {"y"}]>
  // CHECK: %[[W:.*]] = "sdy.sharding_constraint"(%{{.*}}) {{.*}}[{"y"}, {}]>
  // CHECK: %[[D:.*]] = stablehlo.dot_general %[[X]], %[[W]]
  // CHECK-NOT: sdy.sharding_constraint
  // CHECK: %[[R:.*]] = "sdy.sharding_constraint"(%[[D]]) {{.*}}[{"x"}, {}]>
  // CHECK: %[[T:.*]] = stablehlo.tanh %[[R]]
  // CHECK: %[[C:.*]] = "sdy.sharding_constraint"(%[[T]]) {{.*}}[{"x"}, {}]>
  // CHECK: return %[[C]]

  // Tiles of the second argument go along the minor axis of the mesh.
  // GSPMD-LABEL: func.func @main
  // GSPMD-SAME: mhlo.sharding = "{devices=[2,4]<=[8]}"
  // GSPMD-SAME: mhlo.sharding = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"
  // GSPMD: stablehlo.custom_call @Sharding
  // GSPMD: %[[D:.*]] = stablehlo.dot_general
  // GSPMD: stablehlo.custom_call @Sharding(%[[D]]) {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}
  func.func @main(%x: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S0S1>}, %w: tensor<16x4xf32> {alpa.sharding = #alpa.sharding<S1R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<S0S1>, #alpa.sharding<S1R>], alpa.results = [#alpa.sharding<S0RP1>], alpa.strategy = #alpa.strategy<a=[0], c=[1]>} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = alpa.reshard %0 from <S0RP1> to <S0R> : tensor<8x4xf32>
    %2 = stablehlo.tanh %1 {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    "func.return"(%2) {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} : (tensor<8x4xf32>) -> ()
  }
}
