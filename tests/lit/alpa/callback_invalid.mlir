// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @c1(%x: tensor<8xf32>) {
  // expected-error @below {{attribute 'index' failed to satisfy constraint}}
  alpa.callback "f" index -1 (%x) : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @c2(%x: tensor<8xf32>) {
  // expected-error @below {{is ordered, its first operand and its first result must be tokens of type tensor<i32>}}
  alpa.callback "f" index 0 ordered (%x) : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @c3(%t: tensor<i32>) {
  // expected-error @below {{is ordered and pure, it can only be one of both}}
  %0 = alpa.callback "f" index 0 ordered pure (%t) : (tensor<i32>) -> tensor<i32>
  return
}
