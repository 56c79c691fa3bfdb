// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

// Cheap operators on what is made from nothing are made again wherever they are read, in any sharding;
// up to four behind each other.

// CHECK: stablehlo.iota {{.*}}alpa.role = "rematerialized"
// CHECK: stablehlo.iota {{.*}}alpa.role = "rematerialized"
// CHECK: stablehlo.compare {{.*}}alpa.role = "rematerialized"
// CHECK: stablehlo.convert {{.*}}alpa.role = "rematerialized"
// CHECK: stablehlo.multiply {{.*}}alpa.follows = 0 : i64, alpa.role = "follower"
// CHECK: stablehlo.negate {{.*}}alpa.role = "rematerialized"
// CHECK: stablehlo.sine {{.*}}alpa.role = "rematerialized"
// CHECK: stablehlo.cosine {{.*}}alpa.role = "leader"
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<64x64xi32>
  %j = stablehlo.iota dim = 1 : tensor<64x64xi32>
  %mask = stablehlo.compare GE, %i, %j : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
  %m = stablehlo.convert %mask : (tensor<64x64xi1>) -> tensor<64x64xf32>
  %0 = stablehlo.multiply %x, %m : tensor<64x64xf32>
  %1 = stablehlo.negate %m : tensor<64x64xf32>
  %2 = stablehlo.sine %1 : tensor<64x64xf32>
  %3 = stablehlo.cosine %2 : tensor<64x64xf32>
  return %0, %3 : tensor<64x64xf32>, tensor<64x64xf32>
}
