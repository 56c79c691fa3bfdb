// RUN: not stablehlo-alpa-opt %s -alpa-hint-trip-counts=count=0 2>&1 | FileCheck %s

// CHECK: error: a loop runs at least once, 'count' is 0
func.func @main() {
  return
}
