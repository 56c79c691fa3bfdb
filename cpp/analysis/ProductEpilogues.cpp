//===- ProductEpilogues.cpp - What is computed where products are ---------===//

#include "cpp/analysis/ProductEpilogues.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Dependence.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

/// Operators among which it is looked for whether a value depends on a product.
/// Keeps the analysis linear.
static constexpr unsigned kMostBetween = 256;

bool mayWaitFor(Operation *product, ArrayRef<Value> values) {
  return llvm::none_of(values, [&](Value value) {
    Operation *maker = value.getDefiningOp();
    return maker && maker != product &&
           maker->getBlock() == product->getBlock() &&
           dependsOn(maker, product, kMostBetween);
  });
}

/// True if nothing goes from one program to another between two operators.
static bool inOneProgram(Operation *one, Operation *other) {
  int64_t phase = getPhase(one), otherPhase = getPhase(other);
  return one->getBlock() == other->getBlock() &&
         (phase < 0 || otherPhase < 0 || phase == otherPhase);
}

namespace {

/// Goes over the operators once.
class EpilogueFinder {
public:
  explicit EpilogueFinder(EpilogueRules rules) : rules(rules) {}

  void add(const StoringOperator &root) {
    for (OpResult result : root.op->getResults()) {
      places[result] = numSeen;
    }
    if (rules.isProduct(root.op)) {
      makers[root.op->getResult(0)] = root.op;
      productPlaces[root.op] = numSeen;
    } else if (Operation *product = getProduct(root)) {
      found.products[root.op] = product;
      if (root.isElementwise) {
        makers[root.op->getResult(0)] = product;
      }
    }
    ++numSeen;
  }

  ProductEpilogues take() { return std::move(found); }

private:
  /// Elements that an operator goes over; 0 if it moves them.
  static int64_t getNumElements(const StoringOperator &root) {
    if (root.isElementwise) {
      return countElements(root.op->getResult(0).getType());
    }
    return isa<stablehlo::ReduceOp>(root.op)
               ? countElements(root.op->getOperand(0).getType())
               : 0;
  }

  /// The last product of what an operator reads, if all else that it reads is
  /// there before that product, or part of its kernel, or one that waits for
  /// the rest; null otherwise.
  Operation *getProduct(const StoringOperator &root) {
    int64_t numElements = getNumElements(root);
    Operation *last = nullptr;
    for (Value source : root.sources) {
      Operation *product = makers.lookup(source);
      if (product && inOneProgram(product, root.op) &&
          countElements(source.getType()) == numElements &&
          (!last || isBefore(last, product))) {
        last = product;
      }
    }
    bool isThere =
        last && llvm::all_of(root.sources, [&](Value source) {
          return makers.lookup(source) == last || !mayDependOn(source, last);
        });
    return isThere ? last : root.isElementwise ? getWaiting(root) : nullptr;
  }

  /// The product that an operator alone reads, and that can wait for what else
  /// it reads; null if there is none.
  Operation *getWaiting(const StoringOperator &root) {
    for (Value source : root.sources) {
      Operation *product = source.getDefiningOp();
      if (product && makers.lookup(source) == product &&
          inOneProgram(product, root.op) &&
          countElements(source.getType()) == getNumElements(root) &&
          rules.isReadBy(source, root.op) &&
          mayWaitFor(product, root.sources)) {
        productPlaces[product] = numSeen;
        found.awaited[product] = root.op;
        return product;
      }
    }
    return nullptr;
  }

  bool isBefore(Operation *one, Operation *other) const {
    return productPlaces.lookup(one) < productPlaces.lookup(other);
  }

  bool mayDependOn(Value value, Operation *product) const {
    auto place = places.find(value);
    return place != places.end() &&
           place->second > productPlaces.lookup(product) &&
           rules.getDepth(value) >= rules.getDepth(product->getResult(0));
  }

  EpilogueRules rules;
  int numSeen = 0;
  /// Of values, where they come in the program.
  DenseMap<Value, int> places;
  DenseMap<Operation *, int> productPlaces;
  /// Of products and what joined them elementwise, the product.
  DenseMap<Value, Operation *> makers;
  ProductEpilogues found;
};

} // namespace

ProductEpilogues findProductEpilogues(ArrayRef<StoringOperator> storing,
                                      EpilogueRules rules) {
  EpilogueFinder finder(rules);
  for (const StoringOperator &root : storing) {
    finder.add(root);
  }
  return finder.take();
}

} // namespace mlir::alpa
