// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s --check-prefix=MERGED
// RUN: stablehlo-alpa-opt %s -alpa-merge-operators -alpa-enumerate-strategies=mesh=x:2,y:4 -o /dev/null 2>&1 | FileCheck %s
// RUN: not stablehlo-alpa-opt %s -alpa-merge-operators -alpa-enumerate-strategies=mesh=x:4,y:2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER

// What its author has split has the author's strategy and no other, on the author's mesh and no other.

// MERGED: alpa.manual{{.*}}alpa.role = "leader"
// MERGED: stablehlo.tanh {{.*}}alpa.follows = 0
// CHECK: remark: node {{[0-9]+}} alpa.manual: S0S1,S1R->S0R{{$}}
// OTHER: error: a shard_map on the mesh #alpa.mesh<["x"=2, "y"=4]> cannot run on the mesh #alpa.mesh<["x"=4, "y"=2]>
// OTHER-SAME: as ManualSharding(mesh_shape=(2, 4), names=("x", "y")) gives them
module {
  func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
    %0 = alpa.manual (%x, %w) on <["x"=2, "y"=4]> ins [[["x"], ["y"]], [["y"], []]] outs [[["x"], []]] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      alpa.yield %1 : tensor<4x4xf32>
    }
    %2 = stablehlo.tanh %0 : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
