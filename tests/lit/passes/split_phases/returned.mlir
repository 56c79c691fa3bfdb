// RUN: not stablehlo-alpa-opt %s --alpa-split-phases 2>&1 | FileCheck %s

// What a phase returns has to say how it is sharded.

// CHECK: error: 'func.return' op has no shardings: run alpa-apply-strategies first
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<R>}) -> (tensor<4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<R>}) attributes {alpa.micro_batches = 1 : i64} {
    %0 = stablehlo.negate %w {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<R>], alpa.results = [#alpa.sharding<R>], alpa.strategy = #alpa.strategy<>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
