// RUN: stablehlo-alpa-opt %s -alpa-import -verify-diagnostics

// expected-error @below {{argument 0 has the dynamic type 'tensor<?xf32>'; planning needs static shapes}}
func.func @main(%a: tensor<?xf32>) {
  return
}
