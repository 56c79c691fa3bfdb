// RUN: alpa-capi-test describe %s | FileCheck %s

// What can be asked about a planned module, in arrays.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func public @main(%x: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S0R>}, %w: tensor<16x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = alpa.reshard %0 from <S0R> to <RR> : tensor<8x4xf32>
    "func.return"(%1) {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} : (tensor<8x4xf32>) -> ()
  }
}

// An all-gather (kind 1) over axis 0 (mask 1) of 8 x 4 floats.
// CHECK-LABEL: communication:
// CHECK: kind: 1
// CHECK: axes: 1
// CHECK: bytes: 128
// CHECK: count: 1
// CHECK-LABEL: memory:
// CHECK: peak_bytes: {{[1-9]}}
// CHECK-LABEL: work:
// CHECK: flops: 1024
// CHECK: dtype: 'f32'
// CHECK-LABEL: signature:
// CHECK: mesh_shape: 2
// CHECK: mesh_axes: 'x'
// CHECK: inputs: 'S0R' 'RR'
// CHECK: outputs: 'RR'
// CHECK: input_types: '8x16xf32' '16x4xf32'
// The dimensions that are contracted go together; the reshard has no rule, and
// ends what goes with the rows.
// CHECK-LABEL: boundary:
// CHECK: input_class: -1 0 0 -1
// CHECK: output_class: -1 -1
// CHECK: class_size: 16
// CHECK-LABEL: submodules:
