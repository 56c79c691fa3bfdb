// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @case_without_branches(%i: tensor<i32>) -> tensor<f32> {
  // expected-error @+1 {{needs at least one branch}}
  %0 = "stablehlo.case"(%i) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @case_arguments(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{arguments of branch 0 must number 0, but got 1}}
  %0 = "stablehlo.case"(%i) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @case_types(%i: tensor<i32>, %x: tensor<f32>, %y: tensor<2xf32>) -> tensor<f32> {
  // expected-error @+1 {{branches 0 and 1 return 'tensor<f32>' and 'tensor<2xf32>' as value 0}}
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<f32>
  }, {
    stablehlo.return %y : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @if_count(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{branch 1 must return 1 values, but got 0}}
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<f32>
  }, {
    stablehlo.return
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @while_types(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{operands, results, arguments of both regions and the values that the body returns must have compatible types}}
  %0 = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    %p = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<2xf32>):
    stablehlo.return %a : tensor<2xf32>
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @while_condition(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{the condition must return tensor<i1>, but got 'tensor<f32>'}}
  %0 = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }, {
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @while_without_return(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{the body must be one block that ends in stablehlo.return}}
  %0 = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    %p = stablehlo.compare LT, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>):
    func.return %a : tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
