// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 | FileCheck %s

// A slice that is returned, one of which too little is left, and one whose rest the devices divide.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
// CHECK: stablehlo.slice %arg0 [1:16]
// CHECK: stablehlo.slice %arg0 [5:7]
// CHECK: stablehlo.exponential %{{.*}} : tensor<2xf32>
// CHECK: stablehlo.slice %arg0 [4:16]
// CHECK: stablehlo.exponential %{{.*}} : tensor<12xf32>
// CHECK: return
func.func @main(%x: tensor<16xf32>) -> (tensor<15xf32>, tensor<2xf32>, tensor<12xf32>) {
  %0 = stablehlo.slice %x [1:16] : (tensor<16xf32>) -> tensor<15xf32>
  %1 = stablehlo.slice %x [5:7] : (tensor<16xf32>) -> tensor<2xf32>
  %2 = stablehlo.exponential %1 : tensor<2xf32>
  %3 = stablehlo.slice %x [4:16] : (tensor<16xf32>) -> tensor<12xf32>
  %4 = stablehlo.exponential %3 : tensor<12xf32>
  return %0, %2, %4 : tensor<15xf32>, tensor<2xf32>, tensor<12xf32>
}
