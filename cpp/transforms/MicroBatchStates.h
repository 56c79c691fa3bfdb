//===- MicroBatchStates.h - What one micro-batch has of a value -*- C++ -*-===//
//
// A micro-batch is a shard in time: position m of a mesh axis along which
// nothing can be communicated. The sharding rules say what a split argument
// makes of every value behind it.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_MICROBATCHSTATES_H
#define CPP_TRANSFORMS_MICROBATCHSTATES_H

#include "cpp/analysis/FactorMapping.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include <tuple>

namespace mlir::alpa {

/// The entry of a sharding row for the axis of time: the dimension of which
/// each micro-batch has its part, `kReplicated` (the same for all), `kPartial`
/// (a summand), or `kAfter`.
using TimeEntry = int8_t;

/// The value is there only once all micro-batches are done.
inline constexpr TimeEntry kAfter = -3;

/// How an operator runs for one micro-batch.
struct TimeRows {
  SmallVector<TimeEntry, 3> operands;
  SmallVector<TimeEntry, 2> results;
};

/// True for the barrier that stands around the gradients of a step.
bool isGradientBarrier(Operation *op);

/// Whether differentiation made an operator.
bool isGradient(Operation *op);

/// Whether what is no gradient itself, an updated parameter for example, is
/// made of some.
bool isMadeOfGradients(Operation *op);

/// Whether a loop of the step itself takes gradients in its turns.
bool takesGradients(Operation *op);

/// States of all values of a step for one choice of split arguments.
class MicroBatchStates {
public:
  /// \param split arguments of which dimension 0 is split.
  /// \param cutsMade whether what has to be made of whole arguments, and is
  /// cheap, is cut along its own dimension 0 where it is used: examples that
  /// are shuffled or sorted, slices of the batch.
  MicroBatchStates(func::FuncOp function, int64_t numMicroBatches,
                   const llvm::DenseSet<unsigned> &split, bool cutsMade);

  int64_t getNumMicroBatches() const { return numMicroBatches; }

  TimeEntry getState(Value value) const;

  /// How an operator runs; null if it does the same for all micro-batches, or
  /// after them.
  const TimeRows *getRows(Operation *op) const;
  bool isAfter(Operation *op) const { return causes.contains(op); }

  /// Looks at an operator with regions whose results are the same for all
  /// micro-batches as if some were split; false, and nothing has changed, if
  /// they cannot be.
  /// \param wanted an entry per result, `kAfter` where any will do.
  bool splitRegions(DataFlowOpInterface op, ArrayRef<TimeEntry> wanted);

  /// How an operator makes a result that is the same for all micro-batches with
  /// `entry` instead; none if its rule has no such form.
  std::optional<TimeRows> getRowsFor(OpResult result, TimeEntry entry) const;

  /// Leaves for behind the micro-batches what can as well be done to a sum as
  /// to its summands, where no more has to be added up then: an optimizer that
  /// uses gradients twice, scaled and squared, needs one sum of each gradient.
  void deferSummands();

  /// An operator of the differentiated function with floating-point work that
  /// cannot be done by micro-batches, and why; null if there is none.
  Operation *getRefused() const { return refused; }
  /// The first operator on the way to `op` that needs the whole batch.
  Operation *getCause(Operation *op) const { return causes.lookup(op); }

  /// Floating-point work that gradients are made from.
  double getGradientFlops() const;
  /// Floating-point work that is divided among the micro-batches.
  double getSplitFlops() const { return splitFlops; }
  /// That, and the work of what is no product: of vectors, or elementwise.
  double getAllSplitFlops() const { return allSplitFlops; }
  /// Floating-point work on summands, which every micro-batch has in full size.
  double getSummandFlops() const { return summandFlops; }
  /// Work that is left for behind the micro-batches, other than that of
  /// applying gradients.
  double getLateFlops() const { return lateFlops; }
  /// Bytes written by what is divided; tells programs without products apart.
  double getSplitBytes() const { return splitBytes; }
  /// Whether any operator makes a part of a value, and not only summands.
  bool hasParts() const { return makesParts; }
  /// Bytes of what has to be there whole although it could be split, or is
  /// whole and used in parts.
  double getWholeBytes() const { return wholeBytes; }

private:
  struct Choice {
    TimeRows rows;
    bool isSummand = false;
    double cost = 0;
    /// The least is chosen: nothing made again, parts, few bytes made again.
    std::tuple<bool, bool, double> getRank() const {
      return {cost > 0, isSummand, cost};
    }
  };

  void measure();
  bool visit(Block &block);
  bool visit(Operation *op);
  bool runsInFront(Operation *op) const;
  bool visitRegions(DataFlowOpInterface op, ArrayRef<TimeEntry> least);
  /// What operands hand to each edge; none if two do not agree.
  std::optional<SmallVector<TimeEntry>>
  getFirstEntries(DataFlowOpInterface op, const DataFlowEdges &edges,
                  ArrayRef<TimeEntry> least) const;
  /// Adds what regions hand on to the entries of edges; none if that does not
  /// agree, else whether the regions have to be looked at again.
  std::optional<bool> mergeReturned(DataFlowOpInterface op,
                                    const DataFlowEdges &edges,
                                    SmallVector<TimeEntry> &entries) const;
  void setRegionRows(DataFlowOpInterface op, const DataFlowEdges &edges,
                     ArrayRef<TimeEntry> entries);
  bool visitBarrier(Operation *op);
  bool visitLockstep(Operation *op);
  bool visitByRule(Operation *op);
  std::optional<Choice> choose(Operation *op);
  bool canBeMadeWhole(Operation *op) const;
  bool canCutMade(Operation *op) const;
  std::optional<double> getCost(Value value, TimeEntry needed) const;
  std::optional<double> getPartialCost(Value value, Operation *user) const;
  bool visitRegion(Region &region, const DataFlowEdges &edges,
                   ArrayRef<TimeEntry> entries);
  /// Records that an operator runs after the micro-batches; always false.
  bool setAfter(Operation *op);
  void setState(Value value, TimeEntry entry);
  void clear(Region &region);
  void findReported();
  bool hasUse(Operation *op, function_ref<bool(TimeEntry)> predicate) const;
  bool isLight(Value value) const;
  /// True if a user of a value uses what it is behind the micro-batches.
  bool runsAfter(Operation *user) const;
  /// True if an operator only hands summands on to what is behind.
  bool isDeferrable(Operation *op) const;
  bool defer(Operation *op);

  func::FuncOp function;
  int64_t numMicroBatches;
  bool cutsMade;
  DenseMap<Value, TimeEntry> states;
  DenseMap<Operation *, TimeRows> chosen;
  /// Operators that run after the micro-batches, with what made them so.
  DenseMap<Operation *, Operation *> causes;
  /// Of those, the ones that see the parts of all micro-batches joined.
  llvm::DenseSet<Operation *> joining;
  /// What the barriers around gradients hand on is made from: gradients, the
  /// loss, and what is returned beside it.
  llvm::DenseSet<Operation *> ancestors;
  /// What differentiation made, by `jax.grad` too, and what that is made from.
  llvm::DenseSet<Operation *> differentiated;
  /// Gradients, and what is made of them.
  llvm::DenseSet<Value> ofGradients;
  /// What results other than the next state are made from. Products that are
  /// not among these may be late: an optimizer multiplies sums of gradients.
  llvm::DenseSet<Operation *> reported;
  llvm::DenseSet<Value> countedArguments;
  /// Of those, the ones behind the gradients of the step.
  llvm::DenseSet<Operation *> behind;
  Operation *refused = nullptr, *late = nullptr;
  double lateFlops = 0;
  double splitFlops = 0, allSplitFlops = 0, summandFlops = 0;
  double splitBytes = 0, wholeBytes = 0;
  bool makesParts = false;
};

/// Whether what is in the way of `getRefused()` is made of gradients of the
/// whole batch, or by a loop that goes through it by itself: then it has to be
/// gone through once more behind them.
bool needsSecondPass(const MicroBatchStates &states);

/// Says what is in the way of `getRefused()`, and what can be done; a failure.
LogicalResult refuseMicroBatches(const MicroBatchStates &states);

/// The entry of every edge, given how the operator runs.
SmallVector<TimeEntry> getEdgeEntries(Operation *op, const DataFlowEdges &edges,
                                      const TimeRows &rows);

/// The entry that values inside of regions have on an edge: slices that are
/// run through have a dimension less. None if that dimension is split.
std::optional<TimeEntry> getInnerEntry(const DataFlowEdge &edge,
                                       TimeEntry entry);

/// Floating-point operations of products, those in regions included: the work
/// that is worth cutting.
double getProductFlops(Operation *op);

/// Floating-point operations, those in regions included.
double getAllFlops(Operation *op);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MICROBATCHSTATES_H
