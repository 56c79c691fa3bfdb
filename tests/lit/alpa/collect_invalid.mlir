// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @dimension(%x: tensor<2x4xf32>, %n: tensor<ui32>) {
  // expected-error @below {{dimension 2 is none of the 2 of 'tensor<2x4xf32>'}}
  %0 = alpa.collect %x at %n along 2 : tensor<2x4xf32>, tensor<ui32> to tensor<8x4xf32>
  return
}

// -----

func.func @element(%x: tensor<2x4xf32>, %n: tensor<ui32>) {
  // expected-error @below {{parts 'tensor<2x4xf32>' along dimension 0 do not make up 'tensor<8x4xbf16>'}}
  %0 = alpa.collect %x at %n along 0 : tensor<2x4xf32>, tensor<ui32> to tensor<8x4xbf16>
  return
}

// -----

func.func @multiple(%x: tensor<2x4xf32>, %n: tensor<ui32>) {
  // expected-error @below {{parts 'tensor<2x4xf32>' along dimension 0 do not make up 'tensor<7x4xf32>'}}
  %0 = alpa.collect %x at %n along 0 : tensor<2x4xf32>, tensor<ui32> to tensor<7x4xf32>
  return
}

// -----

func.func @other_dimension(%x: tensor<2x4xf32>, %n: tensor<ui32>) {
  // expected-error @below {{parts 'tensor<2x4xf32>' along dimension 0 do not make up 'tensor<8x8xf32>'}}
  %0 = alpa.collect %x at %n along 0 : tensor<2x4xf32>, tensor<ui32> to tensor<8x8xf32>
  return
}
