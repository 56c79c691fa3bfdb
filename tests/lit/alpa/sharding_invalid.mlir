// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{with each axis once and ascending, not 'S0S0'}}
func.func private @axis_used_twice() attributes {a = #alpa.sharding<S0S0>}

// -----

// expected-error @below {{with each axis once and ascending, not 'S10'}}
func.func private @axes_descend() attributes {a = #alpa.sharding<S10>}

// -----

// expected-error @below {{with each axis once and ascending, not 'RS'}}
func.func private @split_over_nothing() attributes {a = #alpa.sharding<RS>}

// -----

// expected-error @below {{with each axis once and ascending, not 'P0R'}}
func.func private @partial_stands_last() attributes {a = #alpa.sharding<P0R>}

// -----

// expected-error @below {{with each axis once and ascending, not 'Q'}}
func.func private @no_such_letter() attributes {a = #alpa.sharding<Q>}
