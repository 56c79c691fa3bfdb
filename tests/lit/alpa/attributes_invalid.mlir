// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

// Attributes of a plan have a type and a place each.

// expected-error @below {{'alpa.mesh' must be a mesh, not 1 : i64}}
module attributes {alpa.mesh = 1 : i64} {}

// -----

// expected-error @below {{'alpa.mesh' belongs on a module}}
func.func @mesh() attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  return
}

// -----

// expected-error @below {{'alpa.captain' is no attribute of an operator}}
module attributes {alpa.captain} {}

// -----

// expected-error @below {{'alpa.sharding' is no attribute of an operator}}
module attributes {alpa.sharding = #alpa.sharding<R>} {}

// -----

func.func @rule(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.rule' must be a sharding rule, not "a -> a"}}
  %0 = stablehlo.tanh %a {alpa.rule = "a -> a"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @strategy(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.strategy' must be a strategy, not 3 : i64}}
  %0 = stablehlo.tanh %a {alpa.strategy = 3 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @role(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.role' must be "leader", "follower", "rematerialized" or "replicated", not "captain"}}
  %0 = stablehlo.tanh %a {alpa.role = "captain"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @follows(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.follows' names operand 3 of the 1}}
  %0 = stablehlo.tanh %a {alpa.follows = 3 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @phase(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.phase' must be an integer of type i64, not 1 : i32}}
  %0 = stablehlo.tanh %a {alpa.phase = 1 : i32} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @layer(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.layer' must be at least 0, it is -1}}
  %0 = stablehlo.tanh %a {alpa.layer = -1 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @once(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.once' must be unit, not true}}
  %0 = stablehlo.tanh %a {alpa.once = true} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @trip_count(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.trip_count' belongs on a loop}}
  %0 = stablehlo.tanh %a {alpa.trip_count = 4 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @partial_edges(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.partial_edges' must be an array of i64 on an operator through whose regions data flows}}
  %0 = stablehlo.tanh %a {alpa.partial_edges = array<i64: 0>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @partial_edge_that_is_none(%p: tensor<i1>, %a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.partial_edges' names edge 1, there are 1}}
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : tensor<8xf32>
  }, {
    stablehlo.return %a : tensor<8xf32>
  }) {alpa.partial_edges = array<i64: 1>} : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @barrier(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.barrier' belongs on a part of a barrier}}
  %0 = stablehlo.add %a, %a {alpa.barrier = 0 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @explicit_padding(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.explicit_padding' belongs on a select_and_scatter}}
  %0 = stablehlo.add %a, %a {alpa.explicit_padding} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @micro_batches(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.micro_batches' belongs on a function}}
  %0 = stablehlo.tanh %a {alpa.micro_batches = 2 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error @below {{'alpa.sharding' is no sharding}}
func.func @argument(%a: tensor<8xf32> {alpa.sharding = "S0"}) {
  return
}

// -----

// expected-error @below {{'alpa.alias' of argument 0 names result 1 of the 1}}
func.func @alias(%a: tensor<8xf32> {alpa.alias = 1 : i64}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}

// -----

// expected-error @below {{'alpa.input' must be an integer of type i64, not "x"}}
func.func @input(%a: tensor<8xf32> {alpa.input = "x"}) {
  return
}

// -----

// expected-error @below {{'alpa.output' is no attribute of an argument}}
func.func @output(%a: tensor<8xf32> {alpa.output = 0 : i64}) {
  return
}

// -----

// expected-error @below {{'alpa.batch' is no attribute of a result}}
func.func @batch(%a: tensor<8xf32>) -> (tensor<8xf32> {alpa.batch = 0 : i64}) {
  return %a : tensor<8xf32>
}

// -----

func.func @side(%a: tensor<2x2xf32>) {
  // expected-error @below {{'alpa.product_ring' must be "lhs", "rhs" or "result", not "both"}}
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] {alpa.product_ring = "both"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @no_product(%a: tensor<2x2xf32>) {
  // expected-error @below {{'alpa.product_ring' belongs on a dot_general}}
  %0 = stablehlo.add %a, %a {alpa.product_ring = "lhs"} : tensor<2x2xf32>
  return
}
