// RUN: alpa-capi-test context %s | FileCheck %s

// In a context of the caller's: dialects and passes by MLIR's own C interface.
// CHECK: #alpa.mesh<["x"=2, "y"=4]>
// CHECK: #alpa.sharding<RS0P1> 1 1 -2
// CHECK: diagnostic at {{.*}}: {{.*}}size
// CHECK: diagnostic at {{.*}}: a mesh axis splits dimension 5 of a tensor of rank 2
// CHECK: wrong attributes are null
// CHECK: operations with a rule: 2, without: 1
// CHECK: stablehlo.dot_general {{.*}}alpa.role
module {
  func.func public @main(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
    %1 = stablehlo.tanh %0 : tensor<64x128xf32>
    return %1 : tensor<64x128xf32>
  }
}
