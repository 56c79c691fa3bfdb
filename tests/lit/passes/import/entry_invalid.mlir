// RUN: stablehlo-alpa-opt %s -alpa-import -split-input-file -verify-diagnostics

// expected-error @below {{a module to plan has one public function}}
module {}

// -----

// expected-error @below {{a module to plan has one public function, this one has @a and @b}}
module {
  func.func @a() {
    return
  }
  func.func @b() {
    return
  }
}

// -----

func.func @returns_more(%a: tensor<2xi32>) -> () {
  %0 = stablehlo.abs %a : tensor<2xi32>
  // expected-error @below {{returns 1 values from @returns_more, which has 0 results}}
  "stablehlo.return"(%0) : (tensor<2xi32>) -> ()
}

// -----

func.func @returns_less(%a: tensor<2xi32>) -> (tensor<2xi32>, tensor<i32>) {
  // expected-error @below {{returns 1 values from @returns_less, which has 2 results}}
  "stablehlo.return"(%a) : (tensor<2xi32>) -> ()
}

// -----

func.func @returns_others(%a: tensor<2xi32>) -> tensor<2xf32> {
  // expected-error @below {{returns 'tensor<2xi32>' from @returns_others, whose result 0 is 'tensor<2xf32>'}}
  "stablehlo.return"(%a) : (tensor<2xi32>) -> ()
}
