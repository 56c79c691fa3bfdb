// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @layouts_of_one_side(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{needs layouts of both operands and results, or none}}
  %0 = stablehlo.custom_call @f(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @layout(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{operand layout dense<[0, 2]> : tensor<2xindex> does not order the 2 dimensions of 'tensor<2x3xf32>'}}
  %0 = stablehlo.custom_call @f(%x) {operand_layouts = [dense<[0, 2]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @alias_operand(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{aliased operand 1 is not in [0, 1)}}
  %0 = stablehlo.custom_call @f(%x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @alias_type(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{gives a result of 'tensor<6xf32>' the memory of 'tensor<2x3xf32>'}}
  %0 = stablehlo.custom_call @f(%x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @configuration(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{backend_config of API_VERSION_TYPED_FFI must be a dictionary, but got "fast"}}
  %0 = stablehlo.custom_call @f(%x) {api_version = 4 : i32, backend_config = "fast"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @composite_name(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{name must be like my_namespace.my_op, but got 'relu'}}
  %0 = stablehlo.composite "relu" %x {decomposition = @composite_name} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @composite_function(%x: tensor<4xf32>) {
  // expected-error @+1 {{@absent is no function}}
  %0 = stablehlo.composite "my.relu" %x {decomposition = @absent} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @composite_types(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is of '(tensor<4xf32>) -> tensor<5xf32>', its decomposition of '(tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = stablehlo.composite "my.relu" %x {decomposition = @composite_types} : (tensor<4xf32>) -> tensor<5xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @tuple_element(%t: tuple<tensor<4xf32>>) {
  // expected-error @+1 {{index 1 is not in [0, 1)}}
  %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<4xf32>>) -> tensor<4xf32>
  return
}

// -----

func.func @infeed_token(%token: !stablehlo.token) {
  // expected-error @+1 {{must give tensors and then a token}}
  %0 = "stablehlo.infeed"(%token) {infeed_config = ""} : (!stablehlo.token) -> tensor<4xf32>
  return
}

// -----

func.func @channel_type(%x: tensor<4xf32>, %token: !stablehlo.token) {
  // expected-error @+1 {{a transfer of devices needs a channel of type 1, but got 2}}
  %0 = "stablehlo.send"(%x, %token) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return
}

// -----

func.func @features(%x: tensor<2x8x4xf32>, %v: tensor<4xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{a vector of features must have size 4 in dimension 0, but got 8}}
  %0:3 = "stablehlo.batch_norm_training"(%x, %v, %w) {epsilon = 0.001 : f32, feature_index = 2 : i64} : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @gradient_of_another_shape(%x: tensor<4x2xf32>, %v: tensor<2xf32>) {
  // expected-error @+1 {{the other tensor must have rank 2, but got 1}}
  %0:3 = "stablehlo.batch_norm_grad"(%x, %v, %v, %v, %v) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @tolerance(%x: tensor<4xf32>) {
  // expected-error @+1 {{tolerances other than 0 need the mode TOLERANCE, but got HIGHEST}}
  %0 = stablehlo.tanh %x {result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4xf32>
  return
}

// -----

func.func @layout_count(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{operand layouts}}
  %0 = stablehlo.custom_call @f(%x) {operand_layouts = [], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @layout_of_a_tuple(%x: tuple<tensor<2x3xf32>>) {
  // expected-error @+1 {{cannot have a layout}}
  %0 = stablehlo.custom_call @f(%x) {operand_layouts = [dense<> : tensor<0xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tuple<tensor<2x3xf32>>) -> tensor<2x3xf32>
  return
}

// -----

func.func @alias_part(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{has no part}}
  %0 = stablehlo.custom_call @f(%x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @buffer_of_nobody(%x: tensor<4xf32>) {
  // expected-error @+1 {{must give the buffer result at [] one operand's memory, but has 0 aliases of it}}
  %0 = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> memref<4xf32>
  return
}

// -----

func.func @buffer_given_away_twice(%x: memref<4xf32>) {
  // expected-error @+1 {{gives away the buffer operand 0 twice}}
  %0:2 = stablehlo.custom_call @f(%x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>]} : (memref<4xf32>) -> (memref<4xf32>, memref<4xf32>)
  return
}

// -----

func.func @buffer_made() {
  // expected-error @+1 {{must give a buffer, but got 'tensor<4xf32>'}}
  %0 = stablehlo.custom_call @CreateBuffer() : () -> tensor<4xf32>
  return
}

// -----

func.func @buffer_made_of(%x: tensor<4xf32>) {
  // expected-error @+1 {{operands must number 0, but got 1}}
  %0 = stablehlo.custom_call @CreateBuffer(%x) : (tensor<4xf32>) -> memref<4xf32>
  return
}

// -----

func.func @pinned(%x: tensor<4xf32>) {
  // expected-error @+1 {{cannot take 'tensor<4xf32>' as 'memref<4xi32>'}}
  %0 = stablehlo.custom_call @Pin(%x) : (tensor<4xf32>) -> memref<4xi32>
  return
}

// -----

func.func @unpinned(%x: memref<4xf32>) {
  // expected-error @+1 {{must give a tensor, but got 'memref<4xf32>'}}
  %0 = stablehlo.custom_call @Unpin(%x) : (memref<4xf32>) -> memref<4xf32>
  return
}
