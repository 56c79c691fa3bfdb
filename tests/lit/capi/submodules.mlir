// RUN: not alpa-capi-test describe %s | FileCheck %s

// The programs of a module of several, each as a text of its own, with locations. As a whole such a
// module cannot be planned.
// CHECK-LABEL: boundary:
// CHECK-NEXT: failed: {{.*}}a module to plan has one public function with a body, this one has none
// CHECK-LABEL: submodules:
// CHECK: names: 'stage_0' 'stage_1'
// CHECK: sym_name = "stage_0"
// CHECK: "stablehlo.tanh"{{.*}} loc(
// CHECK-NOT: stablehlo.sine
// CHECK: {{^}}' '
// CHECK: sym_name = "stage_1"
// CHECK: "stablehlo.sine"
module {
  module @stage_0 {
    func.func @main(%x: tensor<8xf32> {alpa.input = 3 : i64}) -> tensor<8xf32> {
      %0 = stablehlo.tanh %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
  }
  module @stage_1 {
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.sine %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
  }
}
