// RUN: alpa-capi-test modules %s | FileCheck %s
// RUN: echo 'module {' > %t
// RUN: not alpa-capi-test modules %t | FileCheck %s --check-prefix=NONE

// A module that stays parsed. Those within are copied by number; what is done to a copy is not done to it.

// CHECK: inner: module @first
// CHECK: stablehlo.tanh
// CHECK: inner: module @second
// CHECK: stablehlo.sine
// CHECK: behind the last: none
// CHECK: copy: module
// CHECK-NOT: stablehlo.constant
// CHECK: no pipeline: failed: the pipeline does not parse: {{.*}}nothing
// CHECK: refused: failed: {{.*}}a module to plan has one public function with a body, this one has none
// CHECK: whole: module
// CHECK: stablehlo.constant
// NONE: parse: failed: {{.*}}expected operation name
module {
  module @first {
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %unused = stablehlo.constant dense<0.0> : tensor<8xf32>
      %0 = stablehlo.tanh %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
  }
  module @second {
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.sine %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
  }
}
