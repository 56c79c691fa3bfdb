// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -o %t
// RUN: alpa-capi-test strategies %t | FileCheck %s

// What an author's collectives send is known by what their groups run along. Those of one device send nothing; a loop of which it
// is known how often it runs sends as often.

// CHECK: alpa.manual: {{[^ ]+}} [0 axes 1 bytes 16384] [1 axes 1 bytes 65536] [2 axes 1 bytes 65536] [3 axes 1 bytes 16384] 3 times [4 axes 1 bytes 16384] [4 axes 1 bytes 16384]{{$}}
module {
  func.func @main(%x: tensor<256x64xf32>) -> tensor<256x64xf32> {
    %0 = alpa.manual (%x) on <["x"=4]> ins [[["x"], []]] outs [[["x"], []]] : (tensor<256x64xf32>) -> tensor<256x64xf32> {
    ^bb0(%a: tensor<64x64xf32>):
      %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%c: tensor<f32>, %d: tensor<f32>):
        %9 = stablehlo.add %c, %d : tensor<f32>
        stablehlo.return %9 : tensor<f32>
      }) : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<64x64xf32>) -> tensor<256x64xf32>
      %3 = "stablehlo.reduce_scatter"(%2) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%c: tensor<f32>, %d: tensor<f32>):
        %9 = stablehlo.add %c, %d : tensor<f32>
        stablehlo.return %9 : tensor<f32>
      }) : (tensor<256x64xf32>) -> tensor<64x64xf32>
      %4 = "stablehlo.all_to_all"(%3) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %begin = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %end = stablehlo.constant dense<3> : tensor<i32>
      %i, %5 = stablehlo.while(%j = %begin, %b = %4) : tensor<i32>, tensor<64x64xf32> cond {
        %more = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %next = stablehlo.add %j, %one : tensor<i32>
        %moved = "stablehlo.collective_permute"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
        stablehlo.return %next, %moved : tensor<i32>, tensor<64x64xf32>
      }
      %6 = "stablehlo.collective_broadcast"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %7 = "stablehlo.all_reduce"(%6) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0], [1], [2], [3]]> : tensor<4x1xi64>, use_global_device_ids}> ({
      ^bb0(%c: tensor<f32>, %d: tensor<f32>):
        %9 = stablehlo.add %c, %d : tensor<f32>
        stablehlo.return %9 : tensor<f32>
      }) : (tensor<64x64xf32>) -> tensor<64x64xf32>
      alpa.yield %7 : tensor<64x64xf32>
    }
    return %0 : tensor<256x64xf32>
  }
}
