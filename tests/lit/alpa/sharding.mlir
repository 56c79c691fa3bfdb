// RUN: stablehlo-alpa-opt %s | stablehlo-alpa-opt | FileCheck %s

// CHECK: a = #alpa.sharding<S0R>, b = #alpa.sharding<RS01>, c = #alpa.sharding<RRP1>, d = #alpa.sharding<>, e = #alpa.sharding<S1P02>
func.func private @shardings() attributes {a = #alpa.sharding<S0R>, b = #alpa.sharding<RS01>, c = #alpa.sharding<RRP1>, d = #alpa.sharding<>, e = #alpa.sharding<S1P02>}
