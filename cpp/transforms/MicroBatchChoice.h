//===- MicroBatchChoice.h - The arguments that are cut ----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_MICROBATCHCHOICE_H
#define CPP_TRANSFORMS_MICROBATCHCHOICE_H

#include "cpp/transforms/MicroBatchSplitting.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "llvm/ADT/MapVector.h"
#include <memory>

namespace mlir::alpa {

/// Chooses the arguments of a step that are cut into micro-batches.
class MicroBatchChoice {
public:
  MicroBatchChoice(func::FuncOp function, const MicroBatchOptions &options)
      : function(function), options(options) {}

  /// Emits an error and fails if none can be.
  FailureOr<std::unique_ptr<MicroBatchStates>> run();

  /// Whether some can be; says nothing.
  bool canCut();

  /// Of a step that cannot be cut because gradients are taken at what others
  /// have made: the states that divide the most work of what is in front of
  /// that; else null. Says nothing.
  std::unique_ptr<MicroBatchStates> findSecondPass();

private:
  using Arguments = llvm::DenseSet<unsigned>;
  using Groups = llvm::MapVector<int64_t, SmallVector<unsigned>>;

  std::unique_ptr<MicroBatchStates> find();
  std::unique_ptr<MicroBatchStates> analyze(const Arguments &split);
  bool divides(BlockArgument argument) const;
  LogicalResult checkGiven();
  std::unique_ptr<MicroBatchStates>
  take(std::unique_ptr<MicroBatchStates> &reason);
  bool isState(unsigned index);
  bool hasGradients();
  Groups getGroups(bool hasState);
  std::unique_ptr<MicroBatchStates>
  search(bool allowsState, std::unique_ptr<MicroBatchStates> &reason);
  void chooseFirst(Groups &groups);
  bool consider(const Arguments &split, bool needsParts = false);
  void considerEach(ArrayRef<unsigned> members);
  bool repeatsWork(const MicroBatchStates &states);
  void addOthers(Groups &groups);
  LogicalResult refuseSizes();

  func::FuncOp function;
  const MicroBatchOptions &options;
  std::unique_ptr<MicroBatchStates> best, refused, why;
  Arguments chosen;
  /// See `MicroBatchStates`.
  bool cutsMade = false;

  /// See `findSecondPass`.
  struct SecondPass {
    Arguments split;
    bool cutsMade;
    std::tuple<bool, double, double> work;
  };
  std::optional<SecondPass> second;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MICROBATCHCHOICE_H
