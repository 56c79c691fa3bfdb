// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-verify-plan
// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-lower-to-spmd
// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-export-shardings
// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-split-phases

// What does not follow from rule and strategy is refused, and goes no further: here the all-reduce
// would be missing.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @product(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    // expected-error @below {{result 0 is #alpa.sharding<RR>, under #alpa.strategy<c=[0]> it is #alpa.sharding<RRP0>}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %0 : tensor<4x4xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @returned(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{operand 0 is needed as #alpa.sharding<RRP0>, the function's results are #alpa.sharding<RR>}}
    return {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = []} %0 : tensor<4x4xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @returned_unsaid(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{operand 0 arrives as #alpa.sharding<RRP0> and is needed as #alpa.sharding<RR>: run alpa-insert-reshards first}}
    return %0 : tensor<4x4xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // expected-error @below {{result 0 is the partial sum #alpa.sharding<RRP0>, which only what stays within a stage can be}}
  func.func @partial_result(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RRP0>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    return {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = []} %0 : tensor<4x4xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // expected-error @below {{argument 0 is the partial sum #alpa.sharding<P0>, which only what stays within a stage can be}}
  func.func @partial_argument(%x: tensor<f32> {alpa.sharding = #alpa.sharding<P0>}) -> (tensor<f32> {alpa.sharding = #alpa.sharding<>}) {
    %0 = alpa.reshard %x from <P0> to <> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @not_linear(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{operand 0 is #alpa.sharding<RRP0>, under #alpa.strategy<> it is #alpa.sharding<RR>}}
    %1 = stablehlo.tanh %0 {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    %2 = alpa.reshard %1 from <RRP0> to <RR> : tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @no_strategy(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{has no 'alpa.strategy': its shardings are those of #alpa.strategy<a=[0]>}}
    %0 = stablehlo.tanh %x {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>]} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @reshard(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{operand 0 arrives as #alpa.sharding<S0> and is needed as #alpa.sharding<R>}}
    %0 = alpa.reshard %x from <R> to <S0> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @loop(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %n: tensor<i1> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) {
    // expected-error @below {{carries operand 0 in as #alpa.sharding<S0> and out as #alpa.sharding<R>}}
    %0 = stablehlo.while(%c = %x) : tensor<8xf32> attributes {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<R>]}
     cond {
      stablehlo.return %n : tensor<i1>
    } do {
      stablehlo.return %c : tensor<8xf32>
    }
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @turn(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %n: tensor<i1> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.while(%c = %x) : tensor<8xf32> attributes {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>]}
     cond {
      stablehlo.return %n : tensor<i1>
    } do {
      %1 = alpa.reshard %c from <S0> to <R> : tensor<8xf32>
      // expected-error @below {{operand 0 is needed as #alpa.sharding<R>, the loop carries #alpa.sharding<S0>}}
      stablehlo.return %1 {alpa.operands = [#alpa.sharding<R>]} : tensor<8xf32>
    }
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @condition(%x: tensor<2xi1> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<2xi1> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.while(%c = %x) : tensor<2xi1> attributes {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>]}
     cond {
      %i = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<false> : tensor<i1>
      // expected-error @below {{result 0 is #alpa.sharding<P0>, under #alpa.strategy<a=[0]> it is #alpa.sharding<>}}
      %1 = stablehlo.reduce(%c init: %i) applies stablehlo.or across dimensions = [0] {alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<P0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      stablehlo.return %c : tensor<2xi1>
    }
    return %0 : tensor<2xi1>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @branch(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %i: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) {
    %0 = "stablehlo.case"(%i) ({
      // expected-error @below {{operand 0 arrives as #alpa.sharding<S0> and is needed as #alpa.sharding<R>}}
      stablehlo.return %x : tensor<8xf32>
    }) {alpa.operands = [#alpa.sharding<>], alpa.results = [#alpa.sharding<R>]} : (tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// Devices that take different branches would wait for each other.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @choice(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}, %i: tensor<i32> {alpa.sharding = #alpa.sharding<P0>, alpa.local = 0 : i64}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) {
    // expected-error @below {{chooses by #alpa.sharding<P0>, every device has to choose alike}}
    %0 = "stablehlo.case"(%i) ({
      stablehlo.return %x : tensor<8xf32>
    }) {alpa.operands = [#alpa.sharding<P0>], alpa.results = [#alpa.sharding<R>]} : (tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @capture(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}, %s: tensor<f32> {alpa.sharding = #alpa.sharding<P0>, alpa.local = 0 : i64}) -> (tensor<f32> {alpa.sharding = #alpa.sharding<>}) {
    %i = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0.0> : tensor<f32>
    // expected-error @below {{uses a value in its region that is #alpa.sharding<P0>, it can only use what every device has}}
    %0 = stablehlo.reduce(%x init: %i) across dimensions = [0] {alpa.operands = [#alpa.sharding<R>, #alpa.sharding<>], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
     reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %1 = stablehlo.multiply %b, %s : tensor<f32>
      %2 = stablehlo.add %a, %1 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    return %0 : tensor<f32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @manual(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{operand 0 is #alpa.sharding<R>, it is #alpa.sharding<S0>}}
    %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"]]] outs [[["x"]]] {alpa.operands = [#alpa.sharding<R>], alpa.results = [#alpa.sharding<S0>]} : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<4xf32>):
      alpa.yield %a : tensor<4xf32>
    }
    return %0 : tensor<8xf32>
  }
}

// -----

// Values come as they are needed or, before there are reshards, in any sharding; but in one.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // expected-error @below {{argument 0 has no sharding: run alpa-apply-strategies first}}
  func.func @argument(%x: tensor<8xf32>) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    return %x : tensor<8xf32>
  }
}
