// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -verify-diagnostics -o %t
// RUN: stablehlo-alpa-opt %t --alpa-plan-pipeline="mesh=x:2 solution=1,1,1,0,1" --alpa-spmd-pipeline | FileCheck %s

// Elements with scales are not split: what makes, changes and reads them is named, with its bytes, and every device does all of it.
// What is around is split; it is gathered in front and sliced behind.

// CHECK-LABEL: func.func @main(%arg0: tensor<32768xf32>, %arg1: tensor<32768x1xi32>, %arg2: tensor<32768xf32>) -> tensor<32768xf32>
// CHECK-DAG: %[[N:.+]] = stablehlo.negate %arg0 : tensor<32768xf32>
// CHECK-DAG: %[[X:.+]] = "stablehlo.all_gather"(%[[N]]) {{.*}} -> tensor<65536xf32>
// CHECK-DAG: %[[I:.+]] = "stablehlo.all_gather"(%arg1) {{.*}} -> tensor<65536x1xi32>
// CHECK-DAG: %[[V:.+]] = "stablehlo.all_gather"(%arg2) {{.*}} -> tensor<65536xf32>
// CHECK-DAG: %[[Q:.+]] = stablehlo.uniform_quantize %[[X]]
// CHECK-DAG: %[[U:.+]] = stablehlo.uniform_quantize %[[V]]
// CHECK: %[[S:.+]] = "stablehlo.scatter"(%[[Q]], %[[I]], %[[U]])
// CHECK: %[[D:.+]] = stablehlo.uniform_dequantize %[[S]]
// CHECK: stablehlo.dynamic_slice %[[D]], {{.*}}sizes = [32768]
func.func @main(%x: tensor<65536xf32>, %i: tensor<65536x1xi32>, %v: tensor<65536xf32>) -> tensor<65536xf32> {
  %0 = stablehlo.negate %x : tensor<65536xf32>
  // expected-remark @below {{'stablehlo.uniform_quantize' has no sharding rule and is replicated: every device reads and writes 327680 bytes}}
  %1 = stablehlo.uniform_quantize %0 : (tensor<65536xf32>) -> tensor<65536x!quant.uniform<i8:f32, 0.5>>
  // expected-remark @below {{'stablehlo.uniform_quantize' has no sharding rule and is replicated: every device reads and writes 327680 bytes}}
  %u = stablehlo.uniform_quantize %v : (tensor<65536xf32>) -> tensor<65536x!quant.uniform<i8:f32, 0.5>>
  // expected-remark @below {{'stablehlo.scatter' has no dimension that can be split and is replicated: every device does 0 FLOPs, reads and writes 327680 bytes}}
  %2 = "stablehlo.scatter"(%1, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5>>, %b: tensor<!quant.uniform<i8:f32, 0.5>>):
    stablehlo.return %b : tensor<!quant.uniform<i8:f32, 0.5>>
  }) : (tensor<65536x!quant.uniform<i8:f32, 0.5>>, tensor<65536x1xi32>, tensor<65536x!quant.uniform<i8:f32, 0.5>>) -> tensor<65536x!quant.uniform<i8:f32, 0.5>>
  // expected-remark @below {{'stablehlo.uniform_dequantize' has no sharding rule and is replicated: every device reads and writes 327680 bytes}}
  %3 = stablehlo.uniform_dequantize %2 : (tensor<65536x!quant.uniform<i8:f32, 0.5>>) -> tensor<65536xf32>
  return %3 : tensor<65536xf32>
}
