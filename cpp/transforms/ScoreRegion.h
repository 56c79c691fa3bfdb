//===- ScoreRegion.h - A function of every single score ---------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SCOREREGION_H
#define CPP_TRANSFORMS_SCOREREGION_H

#include "cpp/transforms/RandomBits.h"
#include "cpp/transforms/ScoreLabels.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>

namespace mlir::alpa {

/// What a function of scores needs beside them: a value with fewer dimensions,
/// or one that is made in another way.
struct ScoreExtra {
  Value value;
  Labels labels;
};

/// Writes what computes a value from scores once more, as a region of attention
/// has it: on tensors of the shape of the scores, with their dimensions in
/// order.
class ScoreRegion {
public:
  /// \param extras those that other regions of the operator have; those that
  ///        this one needs beside them are added.
  /// \param bits what makes random bits of some positions.
  ScoreRegion(MLIRContext *context, const ScoreDims &dims,
              std::vector<ScoreExtra> &extras, RandomBits &bits);

  /// A new argument of scores; before everything is written.
  BlockArgument addNumbers(Type elementType);

  /// A value of the region in another element type.
  Value convert(Value value, Type elementType);

  /// Says what values of scores are by the arguments, null if they are none.
  using Find = function_ref<Value(Value, const Labels &)>;

  /// Writes a value; null if it cannot be told from scores and extras.
  Value write(Value value, const Labels &labels, Find find);

  /// The same number for every score.
  Value splat(Type elementType, double number);

  /// The opposite of a mask of the region.
  Value negate(Value mask);

  /// Ends the region with values that were written.
  void yield(ValueRange values);

  /// Hands the region on; it gets arguments for extras that were added since.
  std::unique_ptr<Region> take();

  /// An extra as the operator takes it: without dimensions of one element, and
  /// with the others in the order of the scores.
  static Value emitExtra(OpBuilder &builder, const ScoreDims &dims,
                         const ScoreExtra &extra);
  /// Which dimensions of the scores it then has.
  static SmallVector<int64_t> getExtraDims(const ScoreDims &dims,
                                           const ScoreExtra &extra);

private:
  Value make(Value value, const Labels &labels, Find find);
  Value makeElementwise(Operation *op, const Labels &labels, Find find);
  Value getExtra(Value value, const Labels &labels);
  void addArguments();
  RankedTensorType getScoreType(Type like) const;

  const ScoreDims &dims;
  std::vector<ScoreExtra> &extras;
  RandomBits &bits;
  std::unique_ptr<Region> region;
  OpBuilder builder;
  unsigned numNumbers = 0;
  std::map<std::pair<void *, std::vector<int>>, Value> known;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SCOREREGION_H
