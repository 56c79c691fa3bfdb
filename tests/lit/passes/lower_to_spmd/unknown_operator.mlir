// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-lower-to-spmd | FileCheck %s

// An operator without a rule is computed whole on every device.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: "other.op"(%{{.*}}) : (tensor<8xf32>) -> tensor<8xf32>
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) {
    %0 = "other.op"(%x) {alpa.operands = [#alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%0) {alpa.operands = [#alpa.sharding<R>], alpa.results = []} : (tensor<8xf32>) -> ()
  }
}
