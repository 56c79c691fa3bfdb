// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @c1_entries(%x: tensor<8x4xf32>) {
  // expected-error @below {{has 1 entries for a tensor of rank 2}}
  %0 = alpa.constrain %x [["x"]] : tensor<8x4xf32>
  return
}

// -----

func.func @c1_names(%x: tensor<8x4xf32>) {
  // expected-error @below {{expects names of axes, and perhaps unit at the end, per dimension, not [1]}}
  %0 = alpa.constrain %x [[unit], [1]] : tensor<8x4xf32>
  return
}

// -----

func.func @c1_no_list(%x: tensor<8xf32>) {
  // expected-error @below {{expects names of axes, and perhaps unit at the end, per dimension, not "x"}}
  %0 = alpa.constrain %x ["x"] : tensor<8xf32>
  return
}

// -----

func.func @c2(%x: tensor<8x4xf32>) {
  // expected-error @below {{names axis "x" twice}}
  %0 = alpa.constrain %x [["x"], ["x"]] : tensor<8x4xf32>
  return
}

// -----

func.func @c1_unit_first(%x: tensor<8x4xf32>) {
  // expected-error @below {{expects names of axes, and perhaps unit at the end, per dimension, not [unit, "x"]}}
  %0 = alpa.constrain %x [[unit, "x"], []] : tensor<8x4xf32>
  return
}

// -----

func.func @c2_replicated(%x: tensor<8x4xf32>) {
  // expected-error @below {{names axis "x" twice}}
  %0 = alpa.constrain %x [["x"], []] replicated ["x"] : tensor<8x4xf32>
  return
}
