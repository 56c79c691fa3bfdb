// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect | stablehlo-alpa-opt -allow-unregistered-dialect | FileCheck %s

// CHECK: strategy = #alpa.strategy<>
"test.op"() {strategy = #alpa.strategy<>} : () -> ()
// CHECK: strategy = #alpa.strategy<a=[0, 2], linear(1)=[1]>
"test.op"() {strategy = #alpa.strategy<linear(1)=[1], a=[0, 2]>} : () -> ()
// CHECK: strategy = #alpa.strategy<z=[0], f26=[7]>
"test.op"() {strategy = #alpa.strategy<z=[0], f26=[7]>} : () -> ()
