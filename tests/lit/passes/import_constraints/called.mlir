// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline=axes=x -allow-unregistered-dialect | FileCheck %s

// A function that asks for a sharding is inlined like any other.
// CHECK:     func.func @main
// CHECK:     alpa.constrain %{{.*}} {{\[\[}}"x"], []] {alpa.role = "leader"}
// CHECK-NOT: call
module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
  func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = func.call @layer(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  func.func private @layer(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
