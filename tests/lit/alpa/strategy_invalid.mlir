// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

// expected-error @below {{mesh axis 0 is used twice}}
"test.op"() {strategy = #alpa.strategy<a=[0], b=[0]>} : () -> ()

// -----

// expected-error @below {{mesh axes ascend and are below 8, axis 0 does not}}
"test.op"() {strategy = #alpa.strategy<a=[1, 0]>} : () -> ()

// -----

// expected-error @below {{mesh axes ascend and are below 8, axis 8 does not}}
"test.op"() {strategy = #alpa.strategy<a=[8]>} : () -> ()

// -----

// expected-error @below {{'batch' is no factor: they are a to z, f26, f27, ...}}
"test.op"() {strategy = #alpa.strategy<batch=[0]>} : () -> ()

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @axis(%a: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{'alpa.strategy' uses mesh axis 1, the mesh has 1 axes}}
    %0 = stablehlo.tanh %a {alpa.strategy = #alpa.strategy<a=[1]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
