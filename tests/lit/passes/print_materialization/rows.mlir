// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s

// XLA for GPU computes a softmax in one kernel, which reads its rows once. What they are reduced to is counted as read and
// written all the same.

// CHECK: remark: reads 512 bytes, writes 32, at point
// CHECK-NEXT: %max = stablehlo.reduce
// CHECK: remark: reads 32 bytes, writes 32, at point
// CHECK-NEXT: %sum = stablehlo.reduce
// CHECK: remark: reads 32 bytes, writes 512, at point
// CHECK-NEXT: %out = stablehlo.divide

func.func @softmax(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %wide = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %moved = stablehlo.subtract %x, %wide : tensor<8x16xf32>
  %exp = stablehlo.exponential %moved : tensor<8x16xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %out = stablehlo.divide %exp, %all : tensor<8x16xf32>
  return %out : tensor<8x16xf32>
}

// -----

// Rows that are too long are read for each of their reductions, and again.

// CHECK: remark: reads 131080 bytes, writes 8, at point
// CHECK-NEXT: %max = stablehlo.reduce
// CHECK: remark: reads 131088 bytes, writes 8, at point
// CHECK-NEXT: %sum = stablehlo.reduce
// CHECK: remark: reads 131096 bytes, writes 131080, at point
// CHECK-NEXT: %out = stablehlo.divide

func.func @long(%x: tensor<2x16385xf32>) -> tensor<2x16385xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<2x16385xf32>, tensor<f32>) -> tensor<2xf32>
  %wide = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<2xf32>) -> tensor<2x16385xf32>
  %moved = stablehlo.subtract %x, %wide : tensor<2x16385xf32>
  %exp = stablehlo.exponential %moved : tensor<2x16385xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x16385xf32>, tensor<f32>) -> tensor<2xf32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<2xf32>) -> tensor<2x16385xf32>
  %out = stablehlo.divide %exp, %all : tensor<2x16385xf32>
  return %out : tensor<2x16385xf32>
}

// -----

// The softmax of more than one reader: a kernel of its own reads the rows once for both reductions, and the rows are read again.

// CHECK: remark: reads 512 bytes, writes 32, at point
// CHECK-NEXT: %max = stablehlo.reduce
// CHECK: remark: reads 32 bytes, writes 32, at point
// CHECK-NEXT: %sum = stablehlo.reduce
// CHECK: remark: reads 576 bytes, writes 256, at point
// CHECK-NEXT: %narrow = stablehlo.convert
// CHECK: remark: reads 0 bytes, writes 64, at point
// CHECK-NEXT: %product = stablehlo.reduce

func.func @read_twice(%x: tensor<8x16xf32>, %w: tensor<16x16xbf16>) -> (tensor<8x16xbf16>, tensor<16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %wide = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %moved = stablehlo.subtract %x, %wide : tensor<8x16xf32>
  %exp = stablehlo.exponential %moved : tensor<8x16xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %out = stablehlo.divide %exp, %all : tensor<8x16xf32>
  %narrow = stablehlo.convert %out : (tensor<8x16xf32>) -> tensor<8x16xbf16>
  %product = stablehlo.reduce(%out init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x16xf32>, tensor<f32>) -> tensor<16xf32>
  return %narrow, %product : tensor<8x16xbf16>, tensor<16xf32>
}

// -----

// A maximum that must be finite is chosen, as `logsumexp` does, and is there when the sum begins.

// CHECK: remark: reads 512 bytes, writes 32, at point
// CHECK-NEXT: %max = stablehlo.reduce
// CHECK: remark: reads 544 bytes, writes 32, at point
// CHECK-NEXT: %sum = stablehlo.reduce

func.func @chosen(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %is_finite = stablehlo.is_finite %max : (tensor<8xf32>) -> tensor<8xi1>
  %shift = stablehlo.select %is_finite, %max, %zeros : tensor<8xi1>, tensor<8xf32>
  %wide = stablehlo.broadcast_in_dim %shift, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %moved = stablehlo.subtract %x, %wide : tensor<8x16xf32>
  %exp = stablehlo.exponential %moved : tensor<8x16xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// -----

// Two sums side by side are one kernel, what needs both is another. A dimension of one element is no row.

// CHECK: remark: reads 512 bytes, writes 32, at point
// CHECK-NEXT: %sum = stablehlo.reduce
// CHECK: remark: reads 0 bytes, writes 32, at point
// CHECK-NEXT: %squares = stablehlo.reduce
// CHECK: remark: reads 576 bytes, writes 512, at point
// CHECK-NEXT: %out = stablehlo.divide
// CHECK-NOT: remark: reads

func.func @side_by_side(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %square = stablehlo.multiply %x, %x : tensor<8x16xf32>
  %squares = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %column = stablehlo.reshape %squares : (tensor<8xf32>) -> tensor<8x1xf32>
  %flat = stablehlo.reduce(%column init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
  %mean = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %all = stablehlo.broadcast_in_dim %flat, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %moved = stablehlo.subtract %x, %mean : tensor<8x16xf32>
  %out = stablehlo.divide %moved, %all : tensor<8x16xf32>
  return %out : tensor<8x16xf32>
}
