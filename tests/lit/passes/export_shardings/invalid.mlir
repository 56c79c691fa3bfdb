// RUN: not stablehlo-alpa-opt %s -split-input-file -alpa-export-shardings 2>&1 | FileCheck %s
// RUN: not stablehlo-alpa-opt %s -split-input-file -alpa-export-shardings=form=hlo 2>&1 | FileCheck %s --check-prefix=FORM

// CHECK: error: has no 'alpa.mesh': run alpa-choose-strategies first
module {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

// FORM: error: option 'form' is 'hlo', must be shardy or gspmd
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // CHECK: error: 'alpa.accumulate' op belongs to a stage of a pipeline
    %0 = alpa.accumulate %x {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
