// RUN: stablehlo-alpa-opt %s -alpa-outline-attention=keys=8 -verify-diagnostics | FileCheck %s

// Which weights are kept is made of the positions of scores and of a key. The loop that JAX mixes these in becomes its turns:
// a block of scores needs the bits of its own positions.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.iota
// CHECK-NOT: stablehlo.while
// CHECK: "alpa.attention"(%{{.+}}, %{{.+}}, %{{.+}}, %arg3) <{batch = 0 : i64, {{.*}}dims = [array<i64>]
// CHECK: ^bb0(%[[S:.+]]: tensor<8x8xf32>, %[[KEY:.+]]: tensor<ui32>):
// CHECK-DAG: %[[SCALE:.+]] = stablehlo.constant dense<2.0{{.+}}> : tensor<8x8xf32>
// CHECK-DAG: stablehlo.constant dense<13> : tensor<8x8xui32>
// CHECK-DAG: stablehlo.constant dense<7> : tensor<8x8xui32>
// CHECK-DAG: stablehlo.iota dim = 0 : tensor<8x8xui32>
// CHECK-DAG: stablehlo.iota dim = 1 : tensor<8x8xui32>
// CHECK-NOT: stablehlo.while
// CHECK: %[[KEPT:.+]] = stablehlo.compare LT, %{{.+}}, %{{.+}}, UNSIGNED : (tensor<8x8xui32>, tensor<8x8xui32>) -> tensor<8x8xi1>
// CHECK: alpa.yield %[[S]], %[[SCALE]], %[[KEPT]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xi1>
// CHECK-NOT: stablehlo.iota
// CHECK-NOT: stablehlo.while
// CHECK-NOT: stablehlo.exponential
func.func @main(%q: tensor<8x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x4xf32>, %key: tensor<ui32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // expected-remark @below {{attention over 8 keys is computed in blocks of keys}}
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %d = stablehlo.subtract %s, %mb : tensor<8x8xf32>
  %e = stablehlo.exponential %d : tensor<8x8xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %p = stablehlo.divide %e, %lb : tensor<8x8xf32>

  %first = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %turns = stablehlo.constant dense<2> : tensor<i32>
  %shifts = stablehlo.constant dense<[13, 7]> : tensor<2xui32>
  %others = stablehlo.constant dense<[7, 13]> : tensor<2xui32>
  %row = stablehlo.iota dim = 0 : tensor<8x8xui32>
  %column = stablehlo.iota dim = 1 : tensor<8x8xui32>
  %place = stablehlo.add %row, %column : tensor<8x8xui32>
  %bits:4 = stablehlo.while(%i = %first, %x = %place, %a = %shifts, %b = %others) : tensor<i32>, tensor<8x8xui32>, tensor<2xui32>, tensor<2xui32>
  cond {
    %goes = stablehlo.compare LT, %i, %turns, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %goes : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %slice = stablehlo.slice %a [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %shift = stablehlo.reshape %slice : (tensor<1xui32>) -> tensor<ui32>
    %shiftb = stablehlo.broadcast_in_dim %shift, dims = [] : (tensor<ui32>) -> tensor<8x8xui32>
    %moved = stablehlo.shift_left %x, %shiftb : tensor<8x8xui32>
    %keyb = stablehlo.broadcast_in_dim %key, dims = [] : (tensor<ui32>) -> tensor<8x8xui32>
    %mixed = stablehlo.xor %moved, %keyb : tensor<8x8xui32>
    stablehlo.return %next, %mixed, %b, %a : tensor<i32>, tensor<8x8xui32>, tensor<2xui32>, tensor<2xui32>
  }
  %half = stablehlo.constant dense<2147483648> : tensor<8x8xui32>
  %kept = stablehlo.compare LT, %bits#1, %half, UNSIGNED : (tensor<8x8xui32>, tensor<8x8xui32>) -> tensor<8x8xi1>
  %rate = stablehlo.constant dense<0.5> : tensor<8x8xf32>
  %nothing = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %scaled = stablehlo.divide %p, %rate : tensor<8x8xf32>
  %dropped = stablehlo.select %kept, %scaled, %nothing : tensor<8x8xi1>, tensor<8x8xf32>
  %o = stablehlo.dot_general %dropped, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %o : tensor<8x4xf32>
}
