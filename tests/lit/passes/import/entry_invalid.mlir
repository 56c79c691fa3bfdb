// RUN: stablehlo-alpa-opt %s -alpa-import -split-input-file -verify-diagnostics

// expected-error @below {{a module to plan has one public function}}
module {}

// -----

// expected-error @below {{a module to plan has one public function, this one has @a and @b}}
module {
  func.func @a() {
    return
  }
  func.func @b() {
    return
  }
}
