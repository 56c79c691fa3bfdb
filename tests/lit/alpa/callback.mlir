// RUN: stablehlo-alpa-opt %s -cse -canonicalize | FileCheck %s

// What has an effect stays, as often as it stands there; pure ones are merged,
// and left out where they are not used.
// CHECK-LABEL: func.func @effects
func.func @effects(%x: tensor<8xf32>, %t: tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: alpa.callback "log" index 0(%{{.*}}) : (tensor<8xf32>) -> ()
  // CHECK: alpa.callback "log" index 0(%{{.*}}) : (tensor<8xf32>) -> ()
  alpa.callback "log" index 0 (%x) : (tensor<8xf32>) -> ()
  alpa.callback "log" index 0 (%x) : (tensor<8xf32>) -> ()
  // CHECK: alpa.callback "ask" index 1 ordered(%{{.*}}) : (tensor<i32>) -> (tensor<i32>, tensor<8xf32>)
  %0:2 = alpa.callback "ask" index 1 ordered (%t) : (tensor<i32>) -> (tensor<i32>, tensor<8xf32>)
  // CHECK-COUNT-1: alpa.callback "sin" index 2 pure(%{{.*}}) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NOT: alpa.callback
  %1 = alpa.callback "sin" index 2 pure (%x) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = alpa.callback "sin" index 2 pure (%x) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = alpa.callback "cos" index 3 pure (%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}
