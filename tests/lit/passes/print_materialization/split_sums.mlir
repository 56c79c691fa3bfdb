// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=cpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHOLE

// Products with few tiles of results and long sums are computed in parts. XLA for H100 (jax 0.10.2) makes f32[8,128,128],
// f32[8,512,512], f32[4,2048,256] and f32[8,4096,64] of four of these and leaves the others whole; of bf16 the parts are f32. What
// the parts take beside the result is scratch. The compilers for TPU and CPU leave all whole.

// CHECK: remark: scratch of result 0 lives from 0 to 0, 700 % of its bytes
// CHECK-NEXT: %eight_parts
// CHECK-NOT: remark: scratch
// CHECK: remark: scratch of result 0 lives from 2 to 2, 1500 % of its bytes
// CHECK-NEXT: %of_bf16
// CHECK-NOT: remark: scratch
// CHECK: remark: scratch of result 0 lives from 4 to 4, 700 % of its bytes
// CHECK-NEXT: %four_parts
// CHECK-NOT: remark: scratch
// CHECK: remark: scratch of result 0 lives from 6 to 6, 700 % of its bytes
// CHECK-NEXT: %long
// WHOLE-NOT: remark: scratch

func.func @main(%a0: tensor<128x128xf32>, %b0: tensor<128x128xf32>, %b1: tensor<128x8xf32>, %a2: tensor<512x8192xbf16>, %b2: tensor<8192x512xbf16>, %a3: tensor<1024x512xbf16>, %b3: tensor<512x4096xbf16>, %a4: tensor<2048x32768xbf16>, %b4: tensor<32768x256xbf16>, %a5: tensor<256x100xf32>, %b5: tensor<100x256xf32>, %a6: tensor<4096x16384xf32>, %b6: tensor<16384x64xf32>) -> (tensor<128x128xf32>, tensor<128x8xf32>, tensor<512x512xbf16>, tensor<1024x4096xbf16>, tensor<2048x256xbf16>, tensor<256x256xf32>, tensor<4096x64xf32>) {
  %eight_parts = stablehlo.dot_general %a0, %b0, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %narrow = stablehlo.dot_general %a0, %b1, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x8xf32>) -> tensor<128x8xf32>
  %of_bf16 = stablehlo.dot_general %a2, %b2, contracting_dims = [1] x [0] : (tensor<512x8192xbf16>, tensor<8192x512xbf16>) -> tensor<512x512xbf16>
  %wide = stablehlo.dot_general %a3, %b3, contracting_dims = [1] x [0] : (tensor<1024x512xbf16>, tensor<512x4096xbf16>) -> tensor<1024x4096xbf16>
  %four_parts = stablehlo.dot_general %a4, %b4, contracting_dims = [1] x [0] : (tensor<2048x32768xbf16>, tensor<32768x256xbf16>) -> tensor<2048x256xbf16>
  %short = stablehlo.dot_general %a5, %b5, contracting_dims = [1] x [0] : (tensor<256x100xf32>, tensor<100x256xf32>) -> tensor<256x256xf32>
  %long = stablehlo.dot_general %a6, %b6, contracting_dims = [1] x [0] : (tensor<4096x16384xf32>, tensor<16384x64xf32>) -> tensor<4096x64xf32>
  return %eight_parts, %narrow, %of_bf16, %wide, %four_parts, %short, %long : tensor<128x128xf32>, tensor<128x8xf32>, tensor<512x512xbf16>, tensor<1024x4096xbf16>, tensor<2048x256xbf16>, tensor<256x256xf32>, tensor<4096x64xf32>
}
