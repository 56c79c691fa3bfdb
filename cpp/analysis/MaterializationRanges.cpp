//===- MaterializationRanges.cpp - From where to where values lie ---------===//

#include "cpp/analysis/ConvolutionPadding.h"
#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/MemoryOrder.h"
#include "cpp/analysis/Tiles.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// How much larger the padded form of a tensor may be. Heuristic.
static constexpr double kPadding = 1.1;

/// A copy is made where it is first read, what is returned as soon as it is
/// there.
void Materialization::placeCopies() {
  for (auto &[source, range] : copies) {
    int &start = range.first;
    if (points.lookup(source.getParentBlock()->getTerminator()) == start) {
      start = std::min(start, points.lookup(source.getDefiningOp()) + 1);
    }
    lastRead[source] = std::max(lastRead.lookup(source), start);
    firstRead[source] = std::min(firstRead.lookup(source), start);
    storedValues.push_back({source, start, range.second, 1, StoredForm::Copy});
  }
}

/// An input that is padded for several convolutions, such as the gradient of a
/// kernel, lies there from the first to the last.
void Materialization::placePadded() {
  if (options.backend != Backend::Gpu) {
    return;
  }
  llvm::MapVector<std::pair<Value, int64_t>, std::pair<int, int>> padded;
  for (auto &[op, from] : roots) {
    if (int64_t numElements = countPaddedElements(op)) {
      int point = points.lookup(op);
      auto &[start, end] =
          padded.insert({{op->getOperand(0), numElements}, {point, point}})
              .first->second;
      start = std::min(start, point);
      end = std::max(end, point);
    }
  }
  for (auto &[input, range] : padded) {
    auto [value, numElements] = input;
    double ratio = static_cast<double>(numElements) /
                   static_cast<double>(countElements(value.getType()));
    storedValues.push_back(
        {value, range.first, range.second, ratio, StoredForm::Copy});
  }
}

/// Collectives end when their results are needed.
void Materialization::holdSent() {
  for (auto &[op, from] : roots) {
    if (!isAsynchronous(op)) {
      continue;
    }
    int needed = points.lookup(op);
    for (Value result : op->getResults()) {
      if (auto it = firstRead.find(result); it != firstRead.end()) {
        needed = std::max(needed, it->second - 1);
      }
    }
    for (Value source : from) {
      if (from.size() == 1 && isView(op->getOperand(0)) &&
          sendsCopy(op, source)) {
        storedValues.push_back(
            {source, points.lookup(op), needed, 1, StoredForm::Copy});
        continue;
      }
      lastRead[source] = std::max(lastRead.lookup(source), needed);
    }
  }
}

/// True if the fusion that makes a result reduces it as well: XLA for GPU
/// writes none of several results over an operand of both
/// (`FusionCanShareBufferHint`).
static bool isReduced(Value result) {
  return llvm::any_of(result.getUsers(), [](Operation *user) {
    return isa<stablehlo::ReduceOp>(user);
  });
}

bool Materialization::fits(Value value, Value result) {
  double room = getStoredRatio(value) * getTensorBytes(value.getType());
  double bytes = getStoredRatio(result) * getTensorBytes(result.getType());
  return bytes <= room && room <= kPadding * bytes;
}

Value Materialization::findReplaced(OpResult result, const Sources &from) {
  Operation *op = result.getOwner();
  int point = points.lookup(op);
  auto canReplace = [&](Value source) {
    return lastRead.lookup(source) == point && replaceable.contains(source) &&
           fits(source, result);
  };
  Value updated = getScatteredInto(op, options.backend);
  if (!updated) {
    updated = getUpdatedOperand(op, result.getResultNumber());
  }
  if (updated) {
    Sources own = sources.lookup(updated);
    return own.size() == 1 && canReplace(own.front()) ? own.front() : Value();
  }
  FusionRole role = roles.get(op);
  if ((role != FusionRole::Fused && role != FusionRole::View) ||
      isReduced(result)) {
    return {};
  }
  auto it = llvm::find_if(from, [&](Value source) {
    return canReplace(source) && keepsShape(source);
  });
  return it == from.end() ? Value() : *it;
}

double Materialization::getStoredRatio(Value value) {
  if (options.backend != Backend::Tpu) {
    return 1;
  }
  if (getElementTypeOrSelf(value.getType()).isF32()) {
    return rounding.isRounded(value) ? 0.5 : 1;
  }
  return rounding.isWidened(value) ? 2 : 1;
}

double Materialization::getPadding(Value value) const {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  bool isTiled = options.backend == Backend::Tpu && tensor;
  return isTiled ? getTilePadding(tensor) : 1;
}

void Materialization::placeResults() {
  for (auto &[op, from] : roots) {
    int point = points.lookup(op);
    for (OpResult result : op->getResults()) {
      if (Value replaced = findReplaced(result, from)) {
        replaceable.erase(replaced);
        if (carried.contains(replaced)) {
          carried.insert(result);
        }
        starts[result] = point + 1;
        continue;
      }
      // What a loop carries or collects has its place while the loop runs.
      starts[result] = isMadeInside(op, result.getResultNumber())
                           ? firstInside.lookup(op)
                           : point;
    }
  }
}

void Materialization::recordRanges(
    func::FuncOp function, function_ref<bool(BlockArgument)> isDonated) {
  for (BlockArgument argument : function.getArguments()) {
    int end = isDonated(argument) ? lastRead.lookup(argument) : numPoints - 1;
    storedValues.push_back({argument, 0, end, getPadding(argument)});
  }
  for (auto &[op, from] : roots) {
    if (double scratch = getScratchRatio(op); scratch > 0) {
      int point = points.lookup(op);
      storedValues.push_back(
          {op->getResult(0), point, point, scratch, StoredForm::Scratch});
    }
    for (Value result : op->getResults()) {
      if (!isStored(result) || carried.contains(result)) {
        continue;
      }
      int start = starts.lookup(result);
      int end = std::max(lastRead.lookup(result), points.lookup(op));
      start = std::min(start, end);
      storedValues.push_back(
          {result, start, end, getStoredRatio(result) * getPadding(result)});
    }
  }
}

} // namespace mlir::alpa
