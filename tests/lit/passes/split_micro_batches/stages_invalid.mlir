// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 -split-input-file -verify-diagnostics

// What would run once per micro-batch, in the process of a stage.
func.func @main(%x: tensor<8x5xf32>) -> tensor<8x5xf32> {
  // expected-error @below {{callback 'log' cannot run in a pipeline or between micro-batches}}
  %0 = alpa.callback "log" index 0(%x) : (tensor<8x5xf32>) -> tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}

// -----

// Stages have meshes of their own.
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{a shard_map cannot run in a pipeline, whose stages have meshes of their own; take ManualSharding}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"], []]] outs [[["x"], []]] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    alpa.yield %a : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}
