// A program for each operator of StableHLO and CHLO, as jaxlib prints it.

func.func @abs(%arg0: tensor<4x2xf32>) {
  %0 = stablehlo.abs %arg0 : tensor<4x2xf32>
  return
}

// -----

func.func @abs(%arg0: tensor<4xcomplex<f32>>) {
  %0 = stablehlo.abs %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return
}

// -----

func.func @add(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<4x2xf32>
  return
}

// -----

func.func @and(%arg0: tensor<4xi1>, %arg1: tensor<4xi1>) {
  %0 = stablehlo.and %arg0, %arg1 : tensor<4xi1>
  return
}

// -----

func.func @atan2(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  %0 = stablehlo.atan2 %arg0, %arg1 : tensor<4xf32>
  return
}

// -----

func.func @bitcast_convert(%arg0: tensor<4x2xf32>) {
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<4x2xf32>) -> tensor<4xf64>
  return
}

// -----

func.func @bitcast_convert(%arg0: tensor<4xf32>) {
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<4xf32>) -> tensor<4x4xi8>
  return
}

// -----

func.func @broadcast_in_dim(%arg0: tensor<3x1xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [1, 0] : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @case(%arg0: tensor<i32>, %arg1: tensor<2xf32>) {
  %0 = "stablehlo.case"(%arg0) ({
    stablehlo.return %arg1 : tensor<2xf32>
  }, {
    stablehlo.return %arg1 : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @cbrt(%arg0: tensor<4xf32>) {
  %0 = stablehlo.cbrt %arg0 : tensor<4xf32>
  return
}

// -----

func.func @ceil(%arg0: tensor<4xf32>) {
  %0 = stablehlo.ceil %arg0 : tensor<4xf32>
  return
}

// -----

func.func @cholesky(%arg0: tensor<2x3x3xf32>) {
  %0 = stablehlo.cholesky %arg0, lower = true : tensor<2x3x3xf32>
  return
}

// -----

func.func @clamp(%arg0: tensor<f32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) {
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @collective_broadcast(%arg0: tensor<4xf32>) {
  %0 = "stablehlo.collective_broadcast"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @collective_permute(%arg0: tensor<4xf32>) {
  %0 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>, source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @compare(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @complex(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  %0 = stablehlo.complex %arg0, %arg1 : tensor<4xcomplex<f32>>
  return
}

// -----

func.func @concatenate(%arg0: tensor<3x2xf32>, %arg1: tensor<1x2xf32>) {
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @constant() {
  %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  return
}

// -----

func.func @convert(%arg0: tensor<4xi64>) {
  %0 = stablehlo.convert %arg0 : (tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @convolution(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x3x2x6xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 1], [1, 0]], lhs_dilate = [1, 2], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]} : (tensor<2x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<2x4x14x6xf32>
  return
}

// -----

func.func @cosine(%arg0: tensor<4xf32>) {
  %0 = stablehlo.cosine %arg0 : tensor<4xf32>
  return
}

// -----

func.func @count_leading_zeros(%arg0: tensor<4xi32>) {
  %0 = stablehlo.count_leading_zeros %arg0 : tensor<4xi32>
  return
}

// -----

func.func @custom_call(%arg0: tensor<4x2xf32>, %arg1: tensor<2xf32>) {
  %0 = stablehlo.custom_call @f(%arg0, %arg1) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @divide(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) {
  %0 = stablehlo.divide %arg0, %arg1 : tensor<4xi32>
  return
}

// -----

func.func @dot_general(%arg0: tensor<2x3x4xf32>, %arg1: tensor<4x2x5xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x3x4xf32>, tensor<4x2x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @dynamic_broadcast_in_dim(%arg0: tensor<4xf32>, %arg1: tensor<2xi64>) {
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [1] {known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  return
}

// -----

func.func @dynamic_conv(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x3x4x6xf32>, %arg2: tensor<2x2xi32>) {
  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %arg2) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 1, 1>}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<2x2xi32>) -> tensor<2x?x?x6xf32>
  return
}

// -----

func.func @dynamic_gather(%arg0: tensor<5x4xf32>, %arg1: tensor<3x1xi32>, %arg2: tensor<2xi32>) {
  %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %arg2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<5x4xf32>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @dynamic_iota(%arg0: tensor<2xi64>) {
  %0 = stablehlo.dynamic_iota %arg0, dim = 0 : (tensor<2xi64>) -> tensor<?x4xi32>
  return
}

// -----

func.func @dynamic_pad(%arg0: tensor<4xf32>, %arg1: tensor<f32>, %arg2: tensor<1xi64>, %arg3: tensor<1xi64>, %arg4: tensor<1xi64>) {
  %0 = stablehlo.dynamic_pad %arg0, %arg1, %arg2, %arg3, %arg4 : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @dynamic_reshape(%arg0: tensor<4x2xf32>, %arg1: tensor<1xi32>) {
  %0 = stablehlo.dynamic_reshape %arg0, %arg1 : (tensor<4x2xf32>, tensor<1xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @dynamic_slice(%arg0: tensor<4x2xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) {
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [2, 1] : (tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @dynamic_update_slice(%arg0: tensor<4x2xf32>, %arg1: tensor<2x1xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) {
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x2xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @exponential(%arg0: tensor<4xf32>) {
  %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-03, rtol = 1.000000e-02, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
  return
}

// -----

func.func @exponential_minus_one(%arg0: tensor<4xf32>) {
  %0 = stablehlo.exponential_minus_one %arg0 : tensor<4xf32>
  return
}

// -----

func.func @fft(%arg0: tensor<3x8xf32>) {
  %0 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<3x8xf32>) -> tensor<3x5xcomplex<f32>>
  return
}

// -----

func.func @fft(%arg0: tensor<3x5xcomplex<f32>>) {
  %0 = stablehlo.fft %arg0, type = IRFFT, length = [8] : (tensor<3x5xcomplex<f32>>) -> tensor<3x8xf32>
  return
}

// -----

func.func @fft(%arg0: tensor<3x8xcomplex<f32>>) {
  %0 = stablehlo.fft %arg0, type = FFT, length = [3, 8] : (tensor<3x8xcomplex<f32>>) -> tensor<3x8xcomplex<f32>>
  return
}

// -----

func.func @floor(%arg0: tensor<4xf32>) {
  %0 = stablehlo.floor %arg0 : tensor<4xf32>
  return
}

// -----

func.func @gather(%arg0: tensor<3x5x4x2xf32>, %arg1: tensor<3x5x2xi64>) {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], start_index_map = [2, 0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 2, 2>}> : (tensor<3x5x4x2xf32>, tensor<3x5x2xi64>) -> tensor<3x5x2x2xf32>
  return
}

// -----

func.func @get_dimension_size(%arg0: tensor<4x?xf32>) {
  %0 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<4x?xf32>) -> tensor<i32>
  return
}

// -----

func.func @if(%arg0: tensor<i1>, %arg1: tensor<2xf32>) {
  %0 = "stablehlo.if"(%arg0) ({
    stablehlo.return %arg1 : tensor<2xf32>
  }, {
    stablehlo.return %arg1 : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @imag(%arg0: tensor<4xcomplex<f32>>) {
  %0 = stablehlo.imag %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return
}

// -----

func.func @real(%arg0: tensor<4xf32>) {
  %0 = stablehlo.real %arg0 : tensor<4xf32>
  return
}

// -----

func.func @infeed(%arg0: !stablehlo.token) {
  %0:2 = "stablehlo.infeed"(%arg0) <{infeed_config = "x", layout = [[0, 1]]}> : (!stablehlo.token) -> (tensor<2x3xf32>, !stablehlo.token)
  return
}

// -----

func.func @iota() {
  %0 = stablehlo.iota dim = 1 : tensor<4x2xi32>
  return
}

// -----

func.func @is_finite(%arg0: tensor<4xf32>) {
  %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @log(%arg0: tensor<4xf32>) {
  %0 = stablehlo.log %arg0 : tensor<4xf32>
  return
}

// -----

func.func @logistic(%arg0: tensor<4xcomplex<f32>>) {
  %0 = stablehlo.logistic %arg0 : tensor<4xcomplex<f32>>
  return
}

// -----

func.func @map(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf32>) {
  %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @maximum(%arg0: tensor<4xi1>, %arg1: tensor<4xi1>) {
  %0 = stablehlo.maximum %arg0, %arg1 : tensor<4xi1>
  return
}

// -----

func.func @negate(%arg0: tensor<4xi32>) {
  %0 = stablehlo.negate %arg0 : tensor<4xi32>
  return
}

// -----

func.func @not(%arg0: tensor<4xi1>) {
  %0 = stablehlo.not %arg0 : tensor<4xi1>
  return
}

// -----

func.func @optimization_barrier(%arg0: tensor<4xf32>, %arg1: tensor<2xi32>) {
  %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<4xf32>, tensor<2xi32>
  return
}

// -----

func.func @outfeed(%arg0: tensor<4xf32>, %arg1: !stablehlo.token) {
  %0 = "stablehlo.outfeed"(%arg0, %arg1) <{outfeed_config = ""}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return
}

// -----

func.func @pad(%arg0: tensor<4x2xf32>, %arg1: tensor<f32>) {
  %0 = stablehlo.pad %arg0, %arg1, low = [0, 1], high = [-1, 1], interior = [0, 2] : (tensor<4x2xf32>, tensor<f32>) -> tensor<3x6xf32>
  return
}

// -----

func.func @partition_id() {
  %0 = stablehlo.partition_id : tensor<ui32>
  return
}

// -----

func.func @popcnt(%arg0: tensor<4xi32>) {
  %0 = stablehlo.popcnt %arg0 : tensor<4xi32>
  return
}

// -----

func.func @power(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  %0 = stablehlo.power %arg0, %arg1 : tensor<4xf32>
  return
}

// -----

func.func @real_dynamic_slice(%arg0: tensor<4x2xf32>, %arg1: tensor<2xi32>, %arg2: tensor<2xi32>, %arg3: tensor<2xi32>) {
  %0 = stablehlo.real_dynamic_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x2xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @recv(%arg0: !stablehlo.token) {
  %0:2 = "stablehlo.recv"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return
}

// -----

func.func @send(%arg0: tensor<4xf32>, %arg1: !stablehlo.token) {
  %0 = "stablehlo.send"(%arg0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return
}

// -----

func.func @reduce(%arg0: tensor<4x2xf32>, %arg1: tensor<f32>) {
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_precision(%arg0: tensor<4xf32>) {
  %0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<4xf32>
  return
}

// -----

func.func @reduce_scatter(%arg0: tensor<4x2xf32>) {
  %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<4x1xf32>
  return
}

// -----

func.func @all_reduce(%arg0: tensor<4x2xf32>) {
  %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @all_gather(%arg0: tensor<4x2xf32>) {
  %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x2xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @all_to_all(%arg0: tensor<4x2xf32>) {
  %0 = "stablehlo.all_to_all"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x2xf32>) -> tensor<8x1xf32>
  return
}

// -----

func.func @reduce_window(%arg0: tensor<4x2xf32>, %arg1: tensor<f32>) {
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{base_dilations = array<i64: 1, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @remainder(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) {
  %0 = stablehlo.remainder %arg0, %arg1 : tensor<4xi32>
  return
}

// -----

func.func @reshape(%arg0: tensor<4x2xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<4x2xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @reverse(%arg0: tensor<4x2xf32>) {
  %0 = stablehlo.reverse %arg0, dims = [1, 0] : tensor<4x2xf32>
  return
}

// -----

func.func @rng(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<2xi64>) {
  %0 = stablehlo.rng %arg0, %arg1, %arg2, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @rng_bit_generator(%arg0: tensor<2xui64>) {
  %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return
}

// -----

func.func @round_nearest_afz(%arg0: tensor<4xf32>) {
  %0 = stablehlo.round_nearest_afz %arg0 : tensor<4xf32>
  return
}

// -----

func.func @scatter(%arg0: tensor<3x5x4xf32>, %arg1: tensor<2x5x1xi64>, %arg2: tensor<2x5x4xf32>) {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<3x5x4xf32>, tensor<2x5x1xi64>, tensor<2x5x4xf32>) -> tensor<3x5x4xf32>
  return
}

// -----

func.func @select(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) {
  %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4xi1>, tensor<4xf32>
  return
}

// -----

func.func @select_and_scatter(%arg0: tensor<4x2xf32>, %arg1: tensor<2x2xf32>, %arg2: tensor<f32>) {
  %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %arg2) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.compare GE, %arg3, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x2xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @set_dimension_size(%arg0: tensor<4x2xf32>, %arg1: tensor<i32>) {
  %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 1 : (tensor<4x2xf32>, tensor<i32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @shift_left(%arg0: tensor<4xi32>, %arg1: tensor<4xi32>) {
  %0 = stablehlo.shift_left %arg0, %arg1 : tensor<4xi32>
  return
}

// -----

func.func @sign(%arg0: tensor<4xi32>) {
  %0 = stablehlo.sign %arg0 : tensor<4xi32>
  return
}

// -----

func.func @slice(%arg0: tensor<4x2xf32>) {
  %0 = stablehlo.slice %arg0 [1:4:2, 0:2] : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @sort(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xi32>) {
  %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<i32>, %arg5: tensor<i32>):
    %1 = stablehlo.compare GE, %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x2xf32>, tensor<4x2xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return
}

// -----

func.func @sqrt(%arg0: tensor<4xf32>) {
  %0 = stablehlo.sqrt %arg0 : tensor<4xf32>
  return
}

// -----

func.func @tan(%arg0: tensor<4xf32>) {
  %0 = stablehlo.tan %arg0 : tensor<4xf32>
  return
}

// -----

func.func @tanh(%arg0: tensor<4xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<4xf32>
  return
}

// -----

func.func @transpose(%arg0: tensor<4x2x3xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  return
}

// -----

func.func @triangular_solve(%arg0: tensor<2x3x3xf32>, %arg1: tensor<2x3x5xf32>) {
  %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @tuple(%arg0: tensor<4xf32>, %arg1: tensor<2xi32>) {
  %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<4xf32>, tensor<2xi32>>
  return
}

// -----

func.func @get_tuple_element(%arg0: tuple<tensor<4xf32>, tensor<2xi32>>) {
  %0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<4xf32>, tensor<2xi32>>) -> tensor<2xi32>
  return
}

// -----

func.func @while(%arg0: tensor<i32>, %arg1: tensor<2xf32>) {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<i32>, tensor<2xf32>
  cond {
    %1 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    stablehlo.return %iterArg, %iterArg_0 : tensor<i32>, tensor<2xf32>
  }
  return
}

// -----

func.func @batch_norm_training(%arg0: tensor<4x2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>) {
  %output, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @batch_norm_inference(%arg0: tensor<4x2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>, %arg3: tensor<2xf32>, %arg4: tensor<2xf32>) {
  %0 = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @batch_norm_grad(%arg0: tensor<4x2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>, %arg3: tensor<2xf32>, %arg4: tensor<4x2xf32>) {
  %grad_operand, %grad_scale, %grad_offset = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @torch_index_select(%arg0: tensor<4x5xf32>, %arg1: tensor<2xi32>) {
  %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 1 : i64}> : (tensor<4x5xf32>, tensor<2xi32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @einsum(%arg0: tensor<4x2xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.einsum %arg0, %arg1, config = "ab,bc->ac" : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @create_token() {
  %0 = stablehlo.create_token : !stablehlo.token
  return
}

// -----

func.func @after_all(%arg0: !stablehlo.token, %arg1: !stablehlo.token) {
  %0 = stablehlo.after_all %arg0, %arg1 : !stablehlo.token
  return
}

// -----

func.func @broadcast(%arg0: tensor<4xf32>) {
  %0 = stablehlo.broadcast %arg0, sizes = [3, 2] : (tensor<4xf32>) -> tensor<3x2x4xf32>
  return
}

// -----

func.func @dot(%arg0: tensor<4x2xf32>, %arg1: tensor<2x3xf32>) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func private @g(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
func.func @main(%arg0: tensor<4xf32>) {
  %0 = stablehlo.composite "foo.bar" %arg0 {composite_attributes = {k = 2 : i32}, decomposition = @g, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @top_k(%arg0: tensor<3x8xf32>) {
  %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return
}

// -----

func.func @erf(%arg0: tensor<4xf32>) {
  %0 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @next_after(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  %0 = chlo.next_after %arg0, %arg1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @ragged_dot(%arg0: tensor<8x4xf32>, %arg1: tensor<3x4x5xf32>, %arg2: tensor<3xi64>) {
  %0 = "chlo.ragged_dot"(%arg0, %arg1, %arg2) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<8x4xf32>, tensor<3x4x5xf32>, tensor<3xi64>) -> tensor<8x5xf32>
  return
}

// -----

func.func @broadcast_add(%arg0: tensor<4x2xf32>, %arg1: tensor<2xf32>) {
  %0 = chlo.broadcast_add %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @broadcast_compare(%arg0: tensor<4x2xf32>, %arg1: tensor<2xf32>) {
  %0 = chlo.broadcast_compare %arg0, %arg1 {comparison_direction = #chlo<comparison_direction EQ>} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xi1>
  return
}

// -----

func.func @constant_like(%arg0: tensor<4xf32>) {
  %0 = "chlo.constant_like"(%arg0) <{value = 3.000000e+00 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @is_inf(%arg0: tensor<4xf32>) {
  %0 = chlo.is_inf %arg0 : tensor<4xf32> -> tensor<4xi1>
  return
}

// -----

func.func @scan(%arg0: tensor<4xf32>, %arg1: tensor<f32>) {
  %0:2 = chlo.scan(%arg0) inits (%arg1) dimension=0  attributes {is_reverse = false} {
  ^bb0(%input: tensor<f32>, %carry: tensor<f32>):
    %1 = stablehlo.add %input, %carry : tensor<f32>
    stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
  } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
  return
}
