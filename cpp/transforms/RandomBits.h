//===- RandomBits.h - Random bits by their positions ------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_RANDOMBITS_H
#define CPP_TRANSFORMS_RANDOMBITS_H

#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace mlir::alpa {

/// Loops of which every turn computes each element from those at its position,
/// as JAX writes threefry, turn by turn: so whoever needs some elements makes
/// only these.
class RandomBits {
public:
  RandomBits() = default;
  RandomBits(const RandomBits &) = delete;
  RandomBits &operator=(const RandomBits &) = delete;
  /// Erases what nobody has come to use.
  ~RandomBits();

  /// The same as a result of such a loop, made without it; null of another
  /// value.
  Value expand(Value value);

private:
  bool unroll(stablehlo::WhileOp loop);

  llvm::DenseMap<Value, Value> made;
  SmallVector<Operation *> written;
};

/// The number that a value of one element is, if it is made of constants.
std::optional<llvm::APInt> getKnownInteger(Value value);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_RANDOMBITS_H
