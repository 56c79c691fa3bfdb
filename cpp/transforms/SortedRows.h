//===- SortedRows.h - What is done to rows in another order -----*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SORTEDROWS_H
#define CPP_TRANSFORMS_SORTEDROWS_H

#include "cpp/transforms/SortedCounts.h"
#include "cpp/transforms/SortedIndices.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::alpa {

/// The dimension of a value along which its rows are in the order of a sort.
struct RowOrder {
  stablehlo::SortOp sort;
  int64_t dim;
  bool operator==(const RowOrder &other) const {
    return sort == other.sort && dim == other.dim;
  }
};

/// Follows rows that are sorted by integers from the sort to where they are
/// back in their order, or summed up. Sorts with rows that go anywhere else, or
/// of which it does not matter that they are sorted, are none.
class SortedRows {
public:
  /// How an operator is done in each of the parts.
  struct Step {
    /// The dimension that is rows of each operand and result; -1 for none.
    SmallVector<int64_t, 3> operands, results;
    stablehlo::SortOp sort;
    /// Of a comparison of positions with running totals: the totals' operand.
    std::optional<unsigned> totals;
    std::optional<PrefixCounts> prefixes;
  };

  SortedRows(Block &block, int64_t numParts);

  /// In the order of the block.
  const llvm::MapVector<Operation *, Step> &getSteps() const { return steps; }

private:
  /// Positions of rows: what an index is made of.
  struct Content {
    Value base;
    stablehlo::SortOp sort;
    /// Positions in the order of the sort, by rows.
    bool isInverse;
  };

  bool follow(Block &block);
  bool visit(Operation *op);
  bool visitSort(stablehlo::SortOp op);
  bool visitIndex(Operation *op);
  bool visitGather(stablehlo::GatherOp op);
  bool visitScatter(stablehlo::ScatterOp op);
  bool visitPositions(stablehlo::CompareOp op);
  bool visitGroups(chlo::RaggedDotOp op);
  bool visitOrdered(Operation *op);
  bool visitReshape(stablehlo::ReshapeOp op);
  bool visitProduct(stablehlo::DotGeneralOp op);
  bool visitReduce(stablehlo::ReduceOp op);
  bool visitAligned(Operation *op);
  bool visitBarrier(Operation *op);

  /// The one content that an operator's operands have; null if none or several.
  const Content *getContent(Operation *op) const;
  const std::vector<int64_t> *getNumbers(const Content &content, Value value);
  bool isSameInParts(const Content &content, Value value);
  bool isEach(const Content &content, Value value);
  bool isIndexInParts(const Content &content, Value value, int64_t numRows);
  std::optional<RowOrder> getOrder(Value value) const;
  stablehlo::SortOp findSort(Value numbers) const;
  bool set(Value value, std::optional<RowOrder> order);
  /// Leaves the sorts of an operator's operands out; false.
  bool exclude(Operation *op);

  int64_t numParts;
  DenseMap<Value, RowOrder> orders;
  DenseMap<Value, Content> contents;
  DenseMap<Value, NumbersOf> numbers;
  SmallVector<stablehlo::SortOp> sorts;
  llvm::DenseSet<Operation *> excluded;
  /// Sorts of which it matters that rows of a group stand together.
  llvm::DenseSet<Operation *> wanted;
  llvm::MapVector<Operation *, Step> steps;
};

/// Whether the elements of a value are the same along a dimension.
bool isUniformAlong(Value value, int64_t dim);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SORTEDROWS_H
