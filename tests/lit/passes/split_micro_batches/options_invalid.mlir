// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=5 2>&1 | FileCheck %s --check-prefix=FIVE
// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches="micro-batches=4 batch=0" 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches="micro-batches=2 batch=2" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches="micro-batches=2 independent=max" 2>&1 | FileCheck %s --check-prefix=MAX
// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches="micro-batches=2 batch=1 independent=2" 2>&1 | FileCheck %s --check-prefix=WEIGHT
// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches="micro-batches=2 batch=1 independent=mean" 2>&1 | FileCheck %s --check-prefix=UNMARKED

// FIVE: no argument can be cut into 5 micro-batches; sizes along dimension 0 are argument 0 6, argument 1 8
// GIVEN: batch argument 0 of type 'tensor<6xf32>' does not divide into 4 micro-batches along dimension 0: pass another number, or leave it out of batch_argnums
// NONE: batch argument 2 is none of the 2
// ZERO: micro-batches must be >= 1, got 0
// MAX: independent must be mean, sum or the number of a result, got max
// WEIGHT: has 2 results, the weight of a micro-batch is none of them: 2
// UNMARKED: independent micro-batches end where gradients are, and there are 0 of stablehlo_alpa.grad or value_and_grad in the function, not 1
func.func @main(%w: tensor<6xf32>, %x: tensor<8xf32>) -> (tensor<6xf32>, tensor<8xf32>) {
  %0 = stablehlo.tanh %w : tensor<6xf32>
  %1 = stablehlo.tanh %x : tensor<8xf32>
  return %0, %1 : tensor<6xf32>, tensor<8xf32>
}
