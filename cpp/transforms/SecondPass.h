//===- SecondPass.h - A second way through the batch ------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SECONDPASS_H
#define CPP_TRANSFORMS_SECONDPASS_H

#include "cpp/transforms/MicroBatchStates.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// Whether the gradients of a step are those of one program, and no stage's:
/// then examples may meet in its loss.
bool mayMeet(func::FuncOp function);

/// What of the first pass per example is kept, whole; the rest is made again.
enum class KeptExamples {
  kNone,
  kAll,
  /// Where there is no gradient in the first pass: what examples meet each
  /// other in. The second takes gradients of it, part by part.
  kMeeting,
  /// What is used behind that in front of the first product, too: examples
  /// meet there once more.
  kLoss
};

/// What a step does behind its first gradients, where these are what others
/// are taken at (sharpness-aware minimisation, a generator against the updated
/// discriminator), becomes a function of the batch and of the sums of the first
/// gradients, is cut into micro-batches as the step is, and comes back as a
/// loop over them.
class SecondPass {
public:
  /// \param states of the step; see `MicroBatchChoice::findSecondPass`.
  SecondPass(func::FuncOp step, const MicroBatchStates &states,
             KeptExamples kept);

  size_t getNumOperators() const { return behind.size(); }
  /// Whether it uses nothing of the batch; then there is nothing to cut.
  bool isOfNoBatch() const { return batch.empty(); }
  /// Lets all of it run once per step, as it is.
  void runWhole();

  /// A module inside of that of the step, with its function.
  ModuleOp outline();
  /// Arguments of that function that hold a batch: of the step's first, then
  /// what its first pass makes per example.
  ArrayRef<int64_t> getBatch() const { return batch; }
  size_t getNumInputBatches() const { return numInputBatches; }

  /// Puts the function, which is that of one micro-batch by now, into a loop
  /// in the place of what was outlined. Fails if it needs sums over the
  /// micro-batches before the last is through.
  LogicalResult embed(ModuleOp module);

private:
  void findFirst();
  void find();
  void use(Operation *op);
  bool keepsOperands(Operation *op) const;
  void findBatch();
  bool isGiven(Value value) const;
  /// What the function takes, in the order of its arguments.
  SmallVector<Value> getTaken() const;

  func::FuncOp step;
  Block &block;
  const MicroBatchStates &states;
  KeptExamples kept;
  /// Marked gradients that no others are in front of, and what they are made
  /// of.
  llvm::DenseSet<Operation *> firstBarriers, early;
  /// Operators behind the first gradients, in their order.
  llvm::SetVector<Operation *> behind;
  /// What they use of the first pass and is made again.
  llvm::DenseSet<Operation *> again;
  /// Values that the function takes, those of the first pass before the
  /// arguments of the step; and those that it returns.
  llvm::SetVector<Value> given, inputs, returned;
  SmallVector<int64_t> batch;
  size_t numInputBatches = 0;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SECONDPASS_H
