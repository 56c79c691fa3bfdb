// RUN: alpa-capi-test solve %s | FileCheck %s

// The exact solver by itself, with arrays of costs.
// CHECK: 20 grids of 30 nodes are solved exactly
// CHECK: loop: cannot minimise: edge 0 joins 0 and 0, two different nodes below 30 are needed
// CHECK: nan: cannot minimise: a cost is NaN or -inf
// CHECK: short: cannot minimise: nodes have 120 choices, costs of 119 are given
module {
}
