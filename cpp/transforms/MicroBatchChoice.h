//===- MicroBatchChoice.h - The arguments that are cut ----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_MICROBATCHCHOICE_H
#define CPP_TRANSFORMS_MICROBATCHCHOICE_H

#include "cpp/transforms/MicroBatchSplitting.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "llvm/ADT/MapVector.h"
#include <memory>

namespace mlir::alpa {

/// Whether a loop or branch of a step goes through the batch by itself.
bool goesThroughBatch(func::FuncOp function);

/// Which of the sets of arguments that cannot be cut together is the batch.
enum class RefusedBatch {
  /// What divides the most work.
  kMostWork,
  /// The most arguments of one size: of targets alone, what is made of summands
  /// of gradients may be more.
  kMostArguments
};

/// Chooses the arguments of a step that are cut into micro-batches.
class MicroBatchChoice {
public:
  MicroBatchChoice(func::FuncOp function, const MicroBatchOptions &options)
      : function(function), options(options) {}

  /// Emits an error and fails if none can be.
  FailureOr<std::unique_ptr<MicroBatchStates>> run();

  /// The best; null if there is none. Says nothing.
  std::unique_ptr<MicroBatchStates> find();

  /// Of a step that cannot be cut because gradients are taken at what others
  /// have made: the states of its batch; else null. Says nothing.
  std::unique_ptr<MicroBatchStates>
  findSecondPass(RefusedBatch batch = RefusedBatch::kMostWork);

  /// Of a step that cannot be cut: likewise, whatever the reason. Says nothing.
  std::unique_ptr<MicroBatchStates>
  findRefused(RefusedBatch batch = RefusedBatch::kMostWork);

private:
  using Arguments = llvm::DenseSet<unsigned>;
  using Groups = llvm::MapVector<int64_t, SmallVector<unsigned>>;

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
  bool hasUndividedBatch(const MicroBatchStates &states);
  void addOthers(Groups &groups);
  LogicalResult refuseSizes();

  func::FuncOp function;
  const MicroBatchOptions &options;
  std::unique_ptr<MicroBatchStates> best, refused, telling, why;
  Arguments chosen;
  /// See `MicroBatchStates`.
  bool cutsMade = false;

  /// What is cut where that is refused.
  struct Refusal {
    Arguments split;
    bool cutsMade;
    /// What looks like state is no batch, unless nothing else is one.
    bool hasState;
    /// Whether all of it has one size along dimension 0.
    bool isOneSize;
    std::tuple<bool, double, double> work;
  };
  /// By `RefusedBatch`.
  struct Refusals {
    std::optional<Refusal> mostWork, mostArguments;
    void add(const Refusal &refusal);
  };
  std::unique_ptr<MicroBatchStates> getStates(const Refusals &refusals,
                                              RefusedBatch batch);
  /// See `findSecondPass` and `findRefused`.
  Refusals second, all;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MICROBATCHCHOICE_H
