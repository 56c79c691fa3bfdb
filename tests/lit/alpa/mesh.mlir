// RUN: stablehlo-alpa-opt %s | stablehlo-alpa-opt | FileCheck %s

// CHECK: alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  // CHECK: one = #alpa.mesh<["devices"=1]>, three = #alpa.mesh<["a"=2, "b"=2, "c"=2]>
  func.func private @meshes() attributes {one = #alpa.mesh<["devices"=1]>, three = #alpa.mesh<["a"=2, "b"=2, "c"=2]>}
}
