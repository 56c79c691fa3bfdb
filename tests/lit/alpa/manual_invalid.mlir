// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

func.func @c1(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{ins 0 needs one entry per dimension of 'tensor<8x4xf32>'}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"]]] outs [[["x"], []]] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %y = "some.op"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    alpa.yield %y : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @c1_values(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{has 0 outs entries for 1 values}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"], []]] outs [] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %y = "some.op"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    alpa.yield %y : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @c1_names(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{ins 0 expects names of axes per dimension, not "x"}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [["x", []]] outs [[["x"], []]] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %y = "some.op"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    alpa.yield %y : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @c2(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{outs 0 names axis "z", the mesh is}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"], []]] outs [[["z"], []]] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %y = "some.op"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    alpa.yield %y : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @c2_twice(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{ins 0 names axis "x" twice}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"], ["x"]]] outs [[["x"], []]] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x2xf32>):
    %y = "some.op"(%a) : (tensor<4x2xf32>) -> tensor<4x4xf32>
    alpa.yield %y : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @c3(%x: tensor<7x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{ins 0 splits a dimension of 'tensor<7x4xf32>' into 2 parts}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"], []]] outs [[["x"], []]] : (tensor<7x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %y = "some.op"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    alpa.yield %y : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @c4_operand(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{operand 0 of its body is 'tensor<8x4xf32>', a block is 'tensor<4x4xf32>'}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"], []]] outs [[["x"], []]] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %y = "some.op"(%a) : (tensor<8x4xf32>) -> tensor<4x4xf32>
    alpa.yield %y : tensor<4x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

func.func @c4_result(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{result 0 of its body is 'tensor<8x4xf32>', a block is 'tensor<4x4xf32>'}}
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"], []]] outs [[["x"], []]] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %y = "some.op"(%a) : (tensor<4x4xf32>) -> tensor<8x4xf32>
    alpa.yield %y : tensor<8x4xf32>
  }
  return %0 : tensor<8x4xf32>
}
