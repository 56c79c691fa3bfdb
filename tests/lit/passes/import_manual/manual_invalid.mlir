// RUN: stablehlo-alpa-opt %s -alpa-import-manual -split-input-file -allow-unregistered-dialect -verify-diagnostics

module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "mesh"}> : () -> ()
  func.func @nested(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}> ({
    ^bb0(%a: tensor<4xf32>):
      // expected-error @below {{a shard_map inside of a shard_map cannot be planned: take one over all their axes}}
      %1 = "sdy.manual_computation"(%a) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}> ({
      ^bb0(%b: tensor<1xf32>):
        "sdy.return"(%b) : (tensor<1xf32>) -> ()
      }) : (tensor<4xf32>) -> tensor<4xf32>
      "sdy.return"(%1) : (tensor<4xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "mesh"}> : () -> ()
  func.func @partial(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{out_shardings of this shard_map cannot be planned}}
    %0 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"x"}>]>}> ({
    ^bb0(%a: tensor<4xf32>):
      "sdy.return"(%a) : (tensor<4xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "mesh"}> : () -> ()
  func.func @order(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{ins 0 names axes ["y", "x"] of one dimension, they must come in the order of the mesh}}
    %0 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}]>]>}> ({
    ^bb0(%a: tensor<1xf32>):
      "sdy.return"(%a) : (tensor<1xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4]>, sym_name = "mesh"}> : () -> ()
  func.func @blocks(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{operand 0 of its body is 'tensor<2xf32>', a block is 'tensor<4xf32>'}}
    %0 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}> ({
    ^bb0(%a: tensor<2xf32>):
      "sdy.return"(%a) : (tensor<2xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
