// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{a mesh has 1 to 8 axes, not 0}}
module attributes {alpa.mesh = #alpa.mesh<[]>} {}

// -----

// expected-error @below {{mesh axis name "x" is empty or used twice}}
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "x"=4]>} {}

// -----

// expected-error @below {{mesh axis "x" must have a positive size, not 0}}
module attributes {alpa.mesh = #alpa.mesh<["x"=0]>} {}

// -----

// expected-error @below {{a mesh has at most 1048576 devices}}
module attributes {alpa.mesh = #alpa.mesh<["x"=1048576, "y"=2]>} {}

// -----

// expected-error @below {{'alpa.mesh' must be a mesh}}
module attributes {alpa.mesh = 3} {}
