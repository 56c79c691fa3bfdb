// RUN: stablehlo-alpa-opt %s -alpa-import-manual -allow-unregistered-dialect | FileCheck %s

// The body stays as it is; what partitioners would be told in it goes.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<8x4xf32>)
// CHECK:       %[[Y:.*]] = alpa.manual(%[[X]]) on <["x"=2, "y"=4]> ins
// CHECK-SAME:  {{\[\[\["x"\], \["y"\]\]\]}} outs {{\[\[\["x", "y"\], \[\]\]\]}} : (tensor<8x4xf32>) -> tensor<32x4xf32> {
// CHECK:       ^bb0(%[[A:.*]]: tensor<4x1xf32>):
// CHECK:       %[[G:.*]] = "stablehlo.all_gather"(%[[A]])
// CHECK-NOT:   sdy.sharding_constraint
// CHECK:       alpa.yield %[[G]] : tensor<4x4xf32>
// CHECK:       return %[[Y]]
module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "mesh"}> : () -> ()
  func.func @main(%x: tensor<8x4xf32>) -> tensor<32x4xf32> {
    %0 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {"y"}], replicated={}>]>, manual_axes = #sdy<manual_axes{"x", "y"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>}> ({
    ^bb0(%a: tensor<4x1xf32>):
      %1 = "stablehlo.all_gather"(%a) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<4x1xf32>) -> tensor<4x4xf32>
      %2 = "sdy.sharding_constraint"(%1) <{sharding = #sdy.sharding<@mesh, [{?}, {?}]>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
      "sdy.return"(%2) : (tensor<4x4xf32>) -> ()
    }) : (tensor<8x4xf32>) -> tensor<32x4xf32>
    return %0 : tensor<32x4xf32>
  }
}
