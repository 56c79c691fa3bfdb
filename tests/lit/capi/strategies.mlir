// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -o %t
// RUN: alpa-capi-test strategies %t | FileCheck %s

// What operators send by themselves where a loop is split over four devices: kind, mask of axes, bytes.

// The totals of four blocks of 8 rows.
// CHECK: input: RS0 [1 axes 1 bytes 128]{{$}}
// A row of each neighbour, 4 floats.
// CHECK: stablehlo.convolution: RRR,RRR->RRR{{$}}
// CHECK: stablehlo.convolution: RS0R,RRR->RS0R [4 axes 1 bytes 16] [4 axes 1 bytes 16]{{$}}
// Three rows of each neighbour are under windows that reach into the block, and a source of each.
// CHECK: stablehlo.select_and_scatter: R,R,->R{{$}}
// CHECK: stablehlo.select_and_scatter: S0,S0,->S0 [4 axes 1 bytes 12] [4 axes 1 bytes 12] [4 axes 1 bytes 4] [4 axes 1 bytes 4]{{$}}
// Values and positions of 3 candidates of every device for 8 rows.
// CHECK: chlo.top_k: S0R->S0R,S0R{{$}}
// CHECK: chlo.top_k: RS0->RR,RR [1 axes 1 bytes 768]{{$}}
// Twice the 8 floats that its author adds up, sent and received.
// CHECK: stablehlo.custom_call: S0R->S0R,R [1 axes 1 bytes 64]{{$}}
// CHECK: stablehlo.custom_call: RS0->RS0,S0{{$}}
// Keys and values go around: three times 2 x 256 x 16 floats of each; of gradients, four times more.
// CHECK: alpa.attention: RRR,RRR,RRR->RRR,RR,RR{{$}}
// CHECK: alpa.attention: RS0R,RS0R,RS0R->RS0R,RS0,RS0{{( \[4 axes 1 bytes 32768\]){6}$}}
// CHECK: alpa.attention_gradient: RS0R,RS0R,RS0R,RS0R,RS0,RS0,RS0R->RS0R,RS0R,RS0R{{( \[4 axes 1 bytes 32768\]){14}$}}
// Rows are sorted where they are, or in blocks: those go twice to all devices, with their positions, and half of each to a
// neighbour, from which half of the values comes back.
// CHECK: stablehlo.sort: RR->RR{{$}}
// CHECK-NEXT: stablehlo.sort: S0R->S0R{{$}}
// CHECK-NEXT: stablehlo.sort: RS0->RS0{{( \[3 axes 1 bytes 65536\]){2} \[4 axes 1 bytes 32768\] \[4 axes 1 bytes 16384\]$}}
func.func @main(%x: tensor<1x4096x4xf32>, %k: tensor<3x4x4xf32>, %p: tensor<4096xf32>, %s: tensor<2048xf32>,
    %t: tensor<8x4096xf32>, %n: tensor<4096x8xf32>, %q: tensor<2x1024x16xf32>)
    -> (tensor<1x4096x4xf32>, tensor<4096xf32>, tensor<8x4096xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<2x1024x16xf32>, tensor<2x1024x16xf32>, tensor<8x4096xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>

  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4096x4xf32>, tensor<3x4x4xf32>) -> tensor<1x4096x4xf32>

  %1 = "stablehlo.select_and_scatter"(%p, %s, %zero) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {alpa.explicit_padding} : (tensor<4096xf32>, tensor<2048xf32>, tensor<f32>) -> tensor<4096xf32>

  %2 = "stablehlo.reduce_window"(%t, %zero) <{padding = dense<[[0, 0], [4095, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 4096>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8x4096xf32>, tensor<f32>) -> tensor<8x4096xf32>

  %v, %i = chlo.top_k(%t, k = 3) : tensor<8x4096xf32> -> (tensor<8x3xf32>, tensor<8x3xi32>)

  %w:2 = stablehlo.custom_call @alpa_kernel(%n) {api_version = 4 : i32, backend_config = {index = 0 : i64, name = "sums", rule = #alpa.rule<([x, y]) -> ([x, y], [y]) {x=4096:ordered, y=8}>}} : (tensor<4096x8xf32>) -> (tensor<4096x8xf32>, tensor<8xf32>)

  %o, %m, %l = "alpa.attention"(%q, %q, %q) <{batch = 1 : i64, block_bytes = 1024 : i64, dims = [], products = [{}, {}], weights = f32}> ({
  ^bb0(%e: tensor<2x1024x1024xf32>):
    alpa.yield %e : tensor<2x1024x1024xf32>
  }) : (tensor<2x1024x16xf32>, tensor<2x1024x16xf32>, tensor<2x1024x16xf32>) -> (tensor<2x1024x16xf32>, tensor<2x1024xf32>, tensor<2x1024xf32>)
  %dq, %dk, %dv = "alpa.attention_gradient"(%q, %q, %q, %o, %m, %l, %o) <{batch = 1 : i64, block_bytes = 1024 : i64, dims = [], products = [{}, {}, {}, {}, {}], weights = f32}> ({
  ^bb0(%e: tensor<2x1024x1024xf32>):
    alpa.yield %e : tensor<2x1024x1024xf32>
  }, {
  ^bb0(%e: tensor<2x1024x1024xf32>, %f: tensor<2x1024x1024xf32>):
    alpa.yield %e : tensor<2x1024x1024xf32>
  }) : (tensor<2x1024x16xf32>, tensor<2x1024x16xf32>, tensor<2x1024x16xf32>, tensor<2x1024x16xf32>, tensor<2x1024xf32>, tensor<2x1024xf32>, tensor<2x1024x16xf32>) -> (tensor<2x1024x16xf32>, tensor<2x1024x16xf32>, tensor<2x1024x16xf32>)
  %z = "stablehlo.sort"(%t) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<8x4096xf32>) -> tensor<8x4096xf32>
  return %0, %1, %2, %v, %w#1, %o, %dk, %z : tensor<1x4096x4xf32>, tensor<4096xf32>, tensor<8x4096xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<2x1024x16xf32>, tensor<2x1024x16xf32>, tensor<8x4096xf32>
}
