//===- Materialization.cpp - What a program keeps in memory ---------------===//

#include "cpp/analysis/Materialization.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/HostMoves.h"
#include "cpp/analysis/HostValues.h"
#include "cpp/analysis/LoopOrder.h"
#include "cpp/analysis/MemoryOrder.h"
#include "cpp/analysis/MergedProducts.h"
#include "cpp/analysis/ProductEpilogues.h"
#include "cpp/analysis/Readers.h"
#include "cpp/analysis/ReturnedOrders.h"
#include "cpp/analysis/Schedule.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// A fusion with more operands than this is cut. XLA's bound for GPU is 96
/// (`MaxOperandsAndOutputsPerFusion`); this one keeps the analysis linear.
static constexpr unsigned kMaxSources = 32;

Materialization::Materialization(func::FuncOp function,
                                 function_ref<bool(BlockArgument)> isDonated,
                                 MaterializationOptions options)
    : options(options), onHost(findHostValues(function)),
      roles(options.backend), rounding(roles) {
  Block &block = function.getBody().front();
  auto microBatches =
      function->getAttrOfType<IntegerAttr>(kMicroBatchesAttrName);
  hasSums = microBatches && microBatches.getInt() > 1;
  number(block);
  for (BlockArgument argument : block.getArguments()) {
    store(argument, 0);
    if (isDonated(argument) && !onHost.contains(argument)) {
      replaceable.insert(argument);
    }
  }
  visit(block);
  joinKernels();
  readSources();
  placeCopies();
  placeMadeAgain();
  placeReorderedArguments(block);
  placeSlices();
  placeLookedUp();
  placePadded();
  placeKernels();
  holdSent();
  holdScattered();
  placeResults();
  recordRanges(function, isDonated);
}

void Materialization::number(Block &block) {
  std::vector<Operation *> order =
      getSchedule(block, roles, options.overlaps, options.numDevices,
                  /*isOrdered=*/!options.isLocal);
  placeMoves(order, roles);
  for (Operation *op : order) {
    if (isa<DataFlowOpInterface, ManualOp>(op)) {
      firstInside[op] = numPoints;
      auto loop = dyn_cast<DataFlowOpInterface>(op);
      if (loop && options.isLocal && options.backend == Backend::Gpu) {
        reordered[op] = findReorderedStacks(loop);
      }
      for (Region &region : op->getRegions()) {
        for (Block &inner : region) {
          number(inner);
        }
      }
    }
    points[op] = numPoints++;
  }
  if (!options.isLocal || options.backend != Backend::Gpu) {
    return;
  }
  if (isa<func::FuncOp>(block.getParentOp())) {
    madeAgain = findMadeAgain(block, roles);
  }
  for (auto &[first, products] : findMergedProducts(block, roles)) {
    double bytes = 0;
    for (Operation *op : products) {
      bytes += getTensorBytes(op->getResult(0).getType());
    }
    double ratio = bytes / getTensorBytes(first->getResult(0).getType());
    for (Operation *op : products) {
      merged[op] = {first, ratio};
    }
  }
}

//===----------------------------------------------------------------------===//
// What is stored
//===----------------------------------------------------------------------===//

void Materialization::visit(Block &block) {
  for (Operation &op : block) {
    visit(&op);
  }
}

void Materialization::visit(Operation *op) {
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    return visitView(op);
  }
  if (hasSums && isa<AccumulateOp>(op)) {
    return visitSum(op);
  }
  switch (roles.get(op)) {
  case FusionRole::Generated:
  case FusionRole::Fused:
    return visitFused(op);
  case FusionRole::View:
    return visitView(op);
  case FusionRole::Kernel:
  case FusionRole::Root:
    visitRegions(op);
    return visitRoot(op);
  }
}

void Materialization::visitRegions(Operation *op) {
  if (!firstInside.contains(op)) {
    return;
  }
  int point = firstInside.lookup(op);
  for (Value initial : op->getOperands()) {
    Value operand = initial;
    while (operand.getDefiningOp() &&
           roles.get(operand.getDefiningOp()) == FusionRole::View) {
      operand = operand.getDefiningOp()->getOperand(0);
    }
    if (auto it = sources.find(operand);
        it == sources.end() || it->second.empty()) {
      filled.insert(operand);
      int &first = firstFilled.try_emplace({initial, op->getBlock()}, point)
                       .first->second;
      first = std::min(first, point);
    }
  }
  for (Region &region : op->getRegions()) {
    for (Block &inner : region) {
      for (BlockArgument argument : inner.getArguments()) {
        // Its memory is that of the operator's operand or result.
        store(argument, 0);
        carried.insert(argument);
        replaceable.insert(argument);
      }
      visit(inner);
    }
  }
}

void Materialization::visitView(Operation *op) {
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    for (OpOperand &operand : op->getOpOperands()) {
      read(operand, {0, 0});
    }
  }
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands().take_front(op->getNumResults()),
                       op->getResults())) {
    sources[result] = sources.lookup(operand);
    narrow(op, result);
    // What nothing holds yet is computed in the shape in which it is read.
    bool isPrologue =
        !noPrologues.contains(operand) && isOfOne(sources[result]);
    if (noPrologues.contains(operand)) {
      noPrologues.insert(result);
    }
    if (isMoved(op)) {
      moved.insert(result);
    }
    if (!isView(result) && isReadByKernel(result, isPrologue)) {
      return visitRoot(op);
    }
    noteLookUps(result);
  }
}

void Materialization::visitFused(Operation *op) {
  Sources from = collectSources(op);
  bool isEnded =
      !from.empty() && (endsPrologue(op, options.backend) || joinsLarge(op));
  for (Value operand : op->getOperands()) {
    isEnded |= noPrologues.contains(operand);
  }
  bool isStoredHere = llvm::any_of(op->getResults(), [&](Value result) {
    bool isPrologue = !isEnded && isFunctionOfOne(from, result);
    return from.empty()
               ? isReturned(result)
               : isReadByKernel(result, isPrologue) ||
                     replacesLookedUp(result, from) || joinsLookedUp(result) ||
                     (!(isPrologue && isReadByProductsOnly(result)) &&
                      isWorthStoring(result, from));
  });
  if (isStoredHere || from.size() > kMaxSources) {
    return visitRoot(op);
  }
  for (Value result : op->getResults()) {
    sources[result] = from;
    narrow(op, result);
    if (isEnded) {
      noPrologues.insert(result);
    }
    if (isMoved(op)) {
      moved.insert(result);
    }
    noteLookUps(result);
  }
}

bool Materialization::isMoved(Operation *op) const {
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    if (!permutation.empty() &&
        permutation.back() != static_cast<int64_t>(permutation.size()) - 1) {
      return true;
    }
  }
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return moved.contains(operand); });
}

bool Materialization::normalizes(Operation *op) const {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  return reduce && !isMoved(op) &&
         llvm::any_of(reduce.getInputs(), [&](Value input) {
           return llvm::is_contained(
               reduce.getDimensions(),
               cast<RankedTensorType>(input.getType()).getRank() - 1);
         });
}

void Materialization::visitRoot(Operation *op) {
  FusionRole role = roles.get(op);
  bool isKernel = role == FusionRole::Kernel;
  Sources from = collectSources(op);
  int depth = 0;
  for (Value source : from) {
    depth = std::max(depth, stored.lookup(source));
  }
  int64_t numElements =
      op->getNumResults() > 0 ? countElements(op->getResult(0).getType()) : 0;
  if (role == FusionRole::Root && op->getNumOperands() > 0) {
    // Reductions join with what has the shape of their operand.
    numElements = countElements(op->getOperand(0).getType());
  }
  // No two kernels are one fusion.
  FusionKey fusion{isKernel ? -1 - points.lookup(op) : depth, numElements};
  for (Value source : from) {
    noteRead(op, source);
  }
  bool isElementwise = role == FusionRole::Fused || role == FusionRole::View;
  for (OpResult result : op->getResults()) {
    if (Value same = getUnchangedOperand(op, result.getResultNumber())) {
      sources[result] = sources.lookup(same);
      continue;
    }
    if (Operation *first = merged.lookup(op).first) {
      noPrologues.insert(result);
      if (first == op) {
        store(result, depth + 1);
      } else {
        sources[result] = {first->getResult(0)};
      }
      continue;
    }
    store(result, depth + (isElementwise ? 0 : 1));
    replaceable.insert(result);
    if (normalizes(op)) {
      normalizers.insert(result);
    }
  }
  roots.push_back({op, std::move(from), fusion, isElementwise});
}

bool Materialization::readsCopyOf(Operation *op, Value source) {
  Operation *maker = source.getDefiningOp();
  if (auto it = reordered.find(op);
      it != reordered.end() && it->second.contains(source)) {
    return true;
  }
  if (isReceivedApart(source) && isa<func::ReturnOp>(op)) {
    return true;
  }
  if (!maker || !isAsynchronous(maker) || !movesDimension(maker) ||
      isGatheredBySum(maker)) {
    return false;
  }
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    auto it = sources.find(operand.get());
    bool isRead = it != sources.end() && llvm::is_contained(it->second, source);
    return !isRead || (isView(operand.get()) && readsCopy(operand, source));
  });
}

bool Materialization::readsSlices(Operation *op, Value source) {
  if (!merged.contains(source.getDefiningOp()) ||
      !takesPrologue(op, options.backend)) {
    return false;
  }
  int point = points.lookup(op);
  bool readsAll = true;
  for (OpOperand &operand : op->getOpOperands()) {
    auto it = sources.find(operand.get());
    if (it == sources.end() || !llvm::is_contained(it->second, source)) {
      continue;
    }
    SmallVector<int64_t> order;
    Operation *product = getSlicedProduct(operand, order);
    if (!product) {
      readsAll = false;
      continue;
    }
    SliceCopy &copy =
        slices
            .insert({{points.lookup(product), order}, {product, point, point}})
            .first->second;
    copy.start = std::min(copy.start, point);
    copy.end = std::max(copy.end, point);
  }
  return readsAll;
}

/// True if an operator of another phase of the step reads a value: it goes from
/// one program to another.
static bool leavesPhase(Value value, Operation *reader) {
  Operation *maker = value.getDefiningOp();
  int64_t from = maker ? getPhase(maker) : -1, to = getPhase(reader);
  return from >= 0 && to >= 0 && from != to;
}

void Materialization::noteRead(Operation *op, Value source) {
  if (readsSlices(op, source)) {
    return;
  }
  if (leavesPhase(source, op)) {
    handedOn.insert(source);
  }
  if (isa<func::ReturnOp>(op) && madeAgain.contains(source)) {
    return;
  }
  int point = points.lookup(op);
  int &first = firstRead.try_emplace(source, point).first->second;
  first = std::min(first, point);
  if (!readsCopyOf(op, source)) {
    lastRead[source] = std::max(lastRead.lookup(source), point);
    return;
  }
  // A loop's is there while the loop runs.
  auto inside = firstInside.find(op);
  int made = inside != firstInside.end() ? inside->second : point;
  if (inside != firstInside.end() && options.backend == Backend::Gpu) {
    // Iterations that XLA for GPU takes out of the loop read what was gathered.
    lastRead[source] = std::max(lastRead.lookup(source), made);
  }
  auto &[start, end] = copies.insert({source, {made, point}}).first->second;
  start = std::min(start, made);
  end = std::max(end, point);
}

/// What a micro-batch adds to a sum ends here, and the sum, read and written,
/// is there all the time: who counts a step's sums counts its memory.
void Materialization::visitSum(Operation *op) {
  visitRoot(op);
  Value sum = op->getResult(0);
  readBytes[&op->getOpOperand(0)] += getTensorBytes(sum.getType());
  replaceable.erase(sum);
  carried.insert(sum);
}

bool Materialization::isView(Value value) {
  auto it = sources.find(value);
  return it != sources.end() && isView(value, it->second);
}

bool Materialization::isView(Value value, const Sources &from) {
  return from.size() == 1 && getStoredRatio(from.front()) *
                                     getTensorBytes(from.front().getType()) ==
                                 getTensorBytes(value.getType());
}

bool Materialization::readsStored(Operation *op) {
  return roles.get(op) == FusionRole::Kernel ||
         op->hasTrait<OpTrait::IsTerminator>() ||
         isa<stablehlo::OptimizationBarrierOp>(op);
}

bool Materialization::isReadByKernel(Value value, bool isPrologue) {
  bool isTransposed = value.getDefiningOp<stablehlo::TransposeOp>() != nullptr;
  auto computes = [&](Operation *user) {
    return isPrologue && takesPrologue(user, options.backend) &&
           !(options.backend == Backend::Tpu && !isTransposed &&
             sumsInTwoOrders(user));
  };
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if ((readsStored(user) && !computes(user)) ||
        getScatteredInto(user, options.backend) == value ||
        user->getParentRegion() != value.getParentRegion()) {
      return true;
    }
    return roles.get(user) == FusionRole::View &&
           isReadByKernel(user->getResult(0), isPrologue);
  });
}

bool Materialization::joinsLarge(Operation *op) const {
  return options.backend == Backend::Gpu && op->getNumResults() == 1 &&
         llvm::count_if(op->getOperands(), [&](Value operand) {
           auto it = sources.find(operand);
           return it != sources.end() &&
                  countLarge(it->second, op->getResult(0)) > 0;
         }) > 1;
}

Materialization::Sources Materialization::collectSources(Operation *op) const {
  Sources found;
  llvm::SmallDenseSet<Value, 8> seen;
  forEachUsedValue(op, [&](Value used) {
    auto it = sources.find(used);
    if (it == sources.end()) {
      return;
    }
    for (Value source : it->second) {
      if (seen.insert(source).second) {
        found.push_back(source);
      }
    }
  });
  return found;
}

double Materialization::getTouchedBytes(Value value, Value source) const {
  auto it = touched.find({value, source});
  return it != touched.end() ? it->second : getTensorBytes(source.getType());
}

void Materialization::narrow(Operation *op, Value result) {
  bool isSlice =
      isa<stablehlo::DynamicSliceOp, stablehlo::SliceOp, stablehlo::GatherOp>(
          op);
  // Without slices before it all of every source is read.
  if (!isSlice && touched.empty()) {
    return;
  }
  for (Value source : sources.lookup(result)) {
    double bytes = 0;
    forEachUsedValue(op, [&](Value used) {
      auto it = sources.find(used);
      if (it == sources.end() || !llvm::is_contained(it->second, source)) {
        return;
      }
      double read = getTouchedBytes(used, source);
      if (isSlice && used == op->getOperand(0)) {
        read = std::min(read, getTensorBytes(result.getType()));
      }
      bytes = std::max(bytes, read);
    });
    if (bytes < getTensorBytes(source.getType())) {
      touched[{result, source}] = bytes;
    }
  }
}

void Materialization::store(Value value, int depth) {
  stored[value] = depth;
  sources[value] = {value};
}

} // namespace mlir::alpa
