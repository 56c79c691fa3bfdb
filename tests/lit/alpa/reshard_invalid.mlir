// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @rank_of_source(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{sharding has rank 1, its value has rank 2}}
  %0 = alpa.reshard %a from <S0> to <RR> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @rank_of_target(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{sharding has rank 2, its value has rank 1}}
  %0 = alpa.reshard %a from <S0> to <RR> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=3]>} {
  func.func @target_does_not_divide(%a: tensor<32x64xf32>) -> tensor<32x64xf32> {
    // expected-error @below {{sharding #alpa.sharding<S0R> does not divide 'tensor<32x64xf32>' on #alpa.mesh<["x"=3]>}}
    %0 = alpa.reshard %a from <RRP0> to <S0R> : tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @source_uses_another_axis(%a: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{sharding uses mesh axis 1, the mesh has 1 axes}}
    %0 = alpa.reshard %a from <S1> to <R> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @dynamic_shape(%a: tensor<?xf32>) -> tensor<?xf32> {
    // expected-error @below {{needs a tensor of static shape, not 'tensor<?xf32>'}}
    %0 = alpa.reshard %a from <S0> to <R> : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  // expected-error @below {{'alpa.sharding' #alpa.sharding<S0> does not divide 'tensor<6xf32>' on #alpa.mesh<["x"=4]>}}
  func.func @argument_does_not_divide(%a: tensor<6xf32> {alpa.sharding = #alpa.sharding<S0>}) -> tensor<6xf32> {
    return %a : tensor<6xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  // expected-error @below {{'alpa.sharding' has rank 2, its value has rank 1}}
  func.func @result_of_another_rank(%a: tensor<8xf32>) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    return %a : tensor<8xf32>
  }
}
