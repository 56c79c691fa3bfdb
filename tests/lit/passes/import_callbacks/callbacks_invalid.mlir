// RUN: stablehlo-alpa-opt %s -alpa-import-callbacks -split-input-file -verify-diagnostics

func.func @main(%x: tensor<8xf32>) {
  // expected-error @below {{@alpa_callback needs a backend_config with index, name and ordered}}
  stablehlo.custom_call @alpa_callback(%x) {has_side_effect = true, backend_config = "0"} : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @main(%x: tensor<8xf32>) {
  // expected-error @below {{@alpa_callback needs a backend_config with index, name and ordered}}
  stablehlo.custom_call @alpa_callback(%x) {api_version = 4 : i32, has_side_effect = true, backend_config = {index = -1 : i64, name = "f", ordered = false}} : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @main(%i: tensor<i32>) -> tensor<i32> {
  // expected-error @below {{has an ordered callback in its condition, it can only be in the body of a loop: call it there, or with ordered=False}}
  %0 = "stablehlo.while"(%i) ({
  ^bb0(%c: tensor<i32>):
    stablehlo.custom_call @alpa_callback() {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : i64, name = "f", ordered = true}} : () -> ()
    %1 = stablehlo.compare LT, %c, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%1) : (tensor<i1>) -> ()
  }, {
  ^bb0(%c: tensor<i32>):
    "stablehlo.return"(%c) : (tensor<i32>) -> ()
  }) : (tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @other(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{a callback in a shard_map, or in a function that is not inlined, cannot be planned}}
  stablehlo.custom_call @alpa_callback(%x) {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : i64, name = "f", ordered = false}} : (tensor<8xf32>) -> ()
  return %x : tensor<8xf32>
}
