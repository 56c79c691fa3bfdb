// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// Every operator uses the one before it twice: each is looked at once, not once per way to it.

// CHECK-LABEL: module @forward
// CHECK-COUNT-48: stablehlo.add
// CHECK: stablehlo.multiply
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<R>}) -> (tensor<4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<R>}) {
    %0 = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<R>]} dense<1.0> : tensor<4xf32>
    %1 = stablehlo.add %0, %0 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %2 = stablehlo.add %1, %1 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %3 = stablehlo.add %2, %2 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %4 = stablehlo.add %3, %3 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %5 = stablehlo.add %4, %4 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %6 = stablehlo.add %5, %5 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %7 = stablehlo.add %6, %6 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %8 = stablehlo.add %7, %7 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %9 = stablehlo.add %8, %8 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %10 = stablehlo.add %9, %9 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %11 = stablehlo.add %10, %10 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %12 = stablehlo.add %11, %11 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %13 = stablehlo.add %12, %12 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %14 = stablehlo.add %13, %13 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %15 = stablehlo.add %14, %14 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %16 = stablehlo.add %15, %15 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %17 = stablehlo.add %16, %16 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %18 = stablehlo.add %17, %17 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %19 = stablehlo.add %18, %18 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %20 = stablehlo.add %19, %19 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %21 = stablehlo.add %20, %20 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %22 = stablehlo.add %21, %21 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %23 = stablehlo.add %22, %22 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %24 = stablehlo.add %23, %23 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %25 = stablehlo.add %24, %24 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %26 = stablehlo.add %25, %25 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %27 = stablehlo.add %26, %26 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %28 = stablehlo.add %27, %27 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %29 = stablehlo.add %28, %28 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %30 = stablehlo.add %29, %29 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %31 = stablehlo.add %30, %30 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %32 = stablehlo.add %31, %31 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %33 = stablehlo.add %32, %32 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %34 = stablehlo.add %33, %33 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %35 = stablehlo.add %34, %34 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %36 = stablehlo.add %35, %35 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %37 = stablehlo.add %36, %36 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %38 = stablehlo.add %37, %37 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %39 = stablehlo.add %38, %38 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %40 = stablehlo.add %39, %39 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %41 = stablehlo.add %40, %40 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %42 = stablehlo.add %41, %41 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %43 = stablehlo.add %42, %42 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %44 = stablehlo.add %43, %43 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %45 = stablehlo.add %44, %44 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %46 = stablehlo.add %45, %45 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %47 = stablehlo.add %46, %46 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %48 = stablehlo.add %47, %47 {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    %last = stablehlo.multiply %x, %48 {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<4xf32>
    "func.return"(%last) {alpa.operands = [#alpa.sharding<R>], alpa.results = []} : (tensor<4xf32>) -> ()
  }
}
