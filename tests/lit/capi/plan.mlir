// RUN: alpa-capi-test text %s | FileCheck %s
// RUN: alpa-capi-test threads %s | FileCheck %s --check-prefix=THREADS

// From C, through text and arrays alone: strategies, the exact solver, the
// module for one device. Eight threads get the same.
// CHECK: nodes: {{[1-9]}}
// CHECK: func.func public @main(%{{.*}}: tensor<{{.*}}xf32>
// CHECK: stablehlo.dot_general
// CHECK-NOT: alpa.
// THREADS: all threads agree
module {
  func.func public @main(%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %v: tensor<128x32xf32>) -> tensor<64x32xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
    %1 = stablehlo.tanh %0 : tensor<64x128xf32>
    %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
    return %2 : tensor<64x32xf32>
  }
}
