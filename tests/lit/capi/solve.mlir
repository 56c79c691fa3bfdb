// RUN: alpa-capi-test solve %s | FileCheck %s

// The exact solver by itself, with arrays of costs.
// CHECK: 20 grids of 30 nodes are solved exactly
// CHECK: loop: cannot minimise: edge 0 joins 0 and 0, two different nodes below 30 are needed
// CHECK: nan: cannot minimise: a cost is NaN or -inf
// CHECK: short: cannot minimise: nodes have 120 choices, costs of 119 are given
// One stage of 2.5 s beats two of 3 s; one of 3.5 s does not.
// CHECK: stages take 2.5 s
// CHECK: order: choice 2 has layers, devices or a limit out of range or order
// CHECK: stages take 3 s
// On parts of one device each the second stage cannot be behind its own part.
// CHECK: on parts they take 3 s
// CHECK: part: choice 2 has a part, or devices of it, out of range
module {
}
