//===- ProductRings.cpp - Products that run beside collectives ------------===//

#include "cpp/analysis/ProductRings.h"

#include "dialects/alpa/Sharding.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"

namespace mlir::alpa {

StringRef toString(RingSide side) {
  return ArrayRef<StringRef>{"lhs", "rhs", "result"}[static_cast<size_t>(side)];
}

std::optional<RingSide> getRingSide(Operation *op) {
  auto written = op->getAttrOfType<StringAttr>(kProductRingAttrName);
  for (RingSide side : {RingSide::Lhs, RingSide::Rhs, RingSide::Result}) {
    if (written && written.getValue() == toString(side)) {
      return side;
    }
  }
  return std::nullopt;
}

static RingSide getOperandSide(OpOperand &operand) {
  return operand.getOperandNumber() == 0 ? RingSide::Lhs : RingSide::Rhs;
}

Operation *getFirstUser(ReshardOp reshard) {
  Operation *first = nullptr;
  for (Operation *user : reshard->getUsers()) {
    Operation *near = reshard->getBlock()->findAncestorOpInBlock(*user);
    first = !first || near->isBeforeInBlock(first) ? near : first;
  }
  return first;
}

bool isGatheredInRing(ReshardOp reshard) {
  return llvm::any_of(reshard->getUses(), [](OpOperand &use) {
    return getRingSide(use.getOwner()) == getOperandSide(use);
  });
}

bool isScatteredInRing(ReshardOp reshard) {
  Operation *product = reshard.getOperand().getDefiningOp();
  return product && getRingSide(product) == RingSide::Result;
}

Type getSumType(Type elementType) {
  bool isNarrow =
      isa<FloatType>(elementType) && elementType.getIntOrFloatBitWidth() < 32;
  return isNarrow ? Float32Type::get(elementType.getContext()) : elementType;
}

//===----------------------------------------------------------------------===//
// Loops of products
//===----------------------------------------------------------------------===//

/// The loop of a product along dimension `dim` of one of its tensors.
static LoopDims findLoop(stablehlo::DotGeneralOp op, RingSide side,
                         int64_t dim) {
  stablehlo::DotDimensionNumbersAttr numbers = op.getDotDimensionNumbers();
  SmallVector<LoopDims> loops;
  int64_t result = 0;
  for (auto [lhs, rhs] : llvm::zip_equal(numbers.getLhsBatchingDimensions(),
                                         numbers.getRhsBatchingDimensions())) {
    loops.push_back({lhs, rhs, result++});
  }
  for (auto [lhs, rhs] :
       llvm::zip_equal(numbers.getLhsContractingDimensions(),
                       numbers.getRhsContractingDimensions())) {
    loops.push_back({lhs, rhs, -1});
  }
  for (size_t operand : {0, 1}) {
    int64_t rank =
        cast<RankedTensorType>(op->getOperand(operand).getType()).getRank();
    for (int64_t free = 0; free < rank; ++free) {
      if (llvm::none_of(loops, [&](const LoopDims &loop) {
            return loop[operand] == free;
          })) {
        LoopDims loop = {-1, -1, result++};
        loop[operand] = free;
        loops.push_back(loop);
      }
    }
  }
  const auto *found = llvm::find_if(loops, [&](const LoopDims &loop) {
    return loop[static_cast<size_t>(side)] == dim;
  });
  assert(found != loops.end() && "every dimension belongs to a loop");
  return *found;
}

/// Whether a product can be made block by block. One whose author says how it
/// is added up is left as it is.
static bool canBeTakenApart(stablehlo::DotGeneralOp op) {
  return !op.getAlgorithm() && op.getLhs() != op.getRhs() &&
         llvm::none_of(
             llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                      SmallVector<Type>(op->getResultTypes())),
             [](Type type) {
               return isa<quant::QuantizedType>(getElementTypeOrSelf(type));
             });
}

//===----------------------------------------------------------------------===//
// ProductRings
//===----------------------------------------------------------------------===//

const ReshardPlan &ProductRings::getPlan(ReshardOp reshard) {
  return planner.getPlan(reshard.getType().getShape(),
                         getRow(reshard.getSource(), mesh.getNumAxes()),
                         getRow(reshard.getTarget(), mesh.getNumAxes()));
}

bool ProductRings::isRing(const ReshardStep &step, CollectiveKind kind) const {
  return step.kind == kind && step.axes.size() == 1 &&
         mesh.getSizes()[step.axes.front()] > 1;
}

std::optional<ProductRing> ProductRings::findGather(ReshardOp reshard) {
  const ReshardPlan &plan = getPlan(reshard);
  if (plan.empty() || !isRing(plan.back(), CollectiveKind::AllGather)) {
    return std::nullopt;
  }
  Block *block = reshard->getBlock();
  Operation *first = getFirstUser(reshard);
  ProductRing ring{reshard, plan.back(), {}};
  for (OpOperand &use : reshard->getUses()) {
    auto product = dyn_cast<stablehlo::DotGeneralOp>(use.getOwner());
    if (!product || product->getBlock() != block || !canBeTakenApart(product)) {
      ring.isKept = true;
      continue;
    }
    Operation *other =
        product->getOperand(1 - use.getOperandNumber()).getDefiningOp();
    bool isThere = !other || other->getBlock() != block || product == first ||
                   (other->isBeforeInBlock(first) && !isa<ReshardOp>(other));
    if (!isThere) {
      ring.isKept = true;
      continue;
    }
    RingSide side = getOperandSide(use);
    ring.products.push_back(
        {product, side, findLoop(product, side, ring.step.fromDim)});
  }
  // Uses are listed in no order that one may rely on.
  llvm::sort(ring.products, [](RingProduct &left, RingProduct &right) {
    return left.op != right.op && left.op->isBeforeInBlock(right.op);
  });
  return ring.products.empty() ? std::nullopt : std::optional(ring);
}

std::optional<ProductRing> ProductRings::findScatter(ReshardOp reshard) {
  const ReshardPlan &plan = getPlan(reshard);
  auto product = reshard.getOperand().getDefiningOp<stablehlo::DotGeneralOp>();
  if (plan.empty() || !isRing(plan.front(), CollectiveKind::ReduceScatter) ||
      !product || !product->hasOneUse() ||
      product->getBlock() != reshard->getBlock() || !canBeTakenApart(product)) {
    return std::nullopt;
  }
  const ReshardStep &step = plan.front();
  return ProductRing{reshard,
                     step,
                     {{product, RingSide::Result,
                       findLoop(product, RingSide::Result, step.toDim)}}};
}

/// The same with the products of which `isIn` is true; none if there are none.
static std::optional<ProductRing>
keep(std::optional<ProductRing> ring,
     function_ref<bool(const RingProduct &)> isIn) {
  if (!ring) {
    return std::nullopt;
  }
  size_t all = ring->products.size();
  llvm::erase_if(ring->products, std::not_fn(isIn));
  ring->isKept |= ring->isGather() && ring->products.size() < all;
  return ring->products.empty() ? std::nullopt : ring;
}

std::vector<ProductRing> ProductRings::findAll(func::FuncOp function) {
  std::vector<ProductRing> rings;
  function.walk<WalkOrder::PreOrder>([&](ReshardOp reshard) {
    std::optional<ProductRing> gather = findGather(reshard);
    std::optional<ProductRing> apart =
        keep(gather, [](const RingProduct &product) {
          return product.dims[static_cast<size_t>(RingSide::Result)] >= 0;
        });
    bool differs = apart && apart->products.size() < gather->products.size();
    for (std::optional<ProductRing> ring :
         {findScatter(reshard), gather, differs ? apart : std::nullopt}) {
      if (ring) {
        rings.push_back(*std::move(ring));
      }
    }
  });
  return rings;
}

static bool isWritten(const RingProduct &product) {
  return getRingSide(product.op) == product.side;
}

std::optional<ProductRing> ProductRings::findWrittenGather(ReshardOp reshard) {
  std::optional<ProductRing> ring = keep(findGather(reshard), isWritten);
  auto numWritten = llvm::count_if(reshard->getUses(), [](OpOperand &use) {
    return getRingSide(use.getOwner()) == getOperandSide(use);
  });
  return ring && static_cast<ptrdiff_t>(ring->products.size()) == numWritten
             ? ring
             : std::nullopt;
}

std::optional<ProductRing> ProductRings::findWrittenScatter(ReshardOp reshard) {
  return keep(findScatter(reshard), isWritten);
}

//===----------------------------------------------------------------------===//
// Volumes
//===----------------------------------------------------------------------===//

namespace {

/// Counts what one product of a ring does.
class VolumeCounter {
public:
  VolumeCounter(const ProductRing &ring, MeshAttr mesh)
      : ring(ring), mesh(mesh), size(mesh.getSizes()[ring.getAxis()]),
        numBlocks(static_cast<double>(size)) {}

  RingVolume count() {
    ReshardOp reshard = ring.reshard;
    volume.bytes = ring.step.elements *
                   getElementBytes(getElementTypeOrSelf(reshard.getType()));
    volume.addedBytes = volume.addedKernels = 0;
    for (const RingProduct &product : ring.products) {
      count(product);
    }
    if (ring.isKept) {
      addUpdates(volume.bytes);
    }
    return volume;
  }

private:
  /// Zeros, and one update per block.
  void addUpdates(double bytes) {
    volume.addedBytes += 3 * bytes;
    volume.addedKernels += 1 + numBlocks;
  }

  void addSums(double bytes) {
    volume.addedBytes += 3 * (numBlocks - 1) * bytes;
    volume.addedKernels += numBlocks - 1;
  }

  void count(const RingProduct &product) {
    stablehlo::DotGeneralOp op = product.op;
    auto shardings = op->getAttrOfType<ArrayAttr>(kResultsAttrName);
    std::array<double, 3> bytes = {
        getLocalBytes(op.getLhs(), getOperandSharding(op->getOpOperand(0))),
        getLocalBytes(op.getRhs(), getOperandSharding(op->getOpOperand(1))),
        getLocalBytes(op.getResult(), cast<ShardingAttr>(shardings[0]))};
    RingVolume::Product counted;
    counted.shape = getShape(op);
    counted.blockShape = counted.shape;
    counted.blockShape[getEntry(product.dims)] /= numBlocks;
    counted.bytes = counted.blockBytes = 0;
    for (auto [tensor, dim] : llvm::zip_equal(bytes, product.dims)) {
      counted.bytes += tensor;
      counted.blockBytes += dim >= 0 ? tensor / numBlocks : tensor;
    }
    volume.products.push_back(counted);
    addBlocks(product, bytes);
  }

  /// Slices of what does not go around, and what becomes of the results.
  void addBlocks(const RingProduct &product, ArrayRef<double> bytes) {
    for (size_t operand : {0, 1}) {
      if (product.dims[operand] >= 0 &&
          operand != static_cast<size_t>(product.side)) {
        volume.addedBytes += 2 * bytes[operand];
        volume.addedKernels += numBlocks;
      }
    }
    double result = bytes[2];
    if (product.side == RingSide::Result) {
      addSums(result / numBlocks);
    } else if (product.dims[2] >= 0) {
      addUpdates(result);
    } else {
      stablehlo::DotGeneralOp op = product.op;
      Type element = getElementTypeOrSelf(op.getType());
      addSums(result / getElementBytes(element) *
              getElementBytes(getSumType(element)));
    }
  }

  /// Which of batch, rows, columns and sums a loop is.
  static size_t getEntry(const LoopDims &dims) {
    bool isLeft = dims[0] >= 0, isRight = dims[1] >= 0;
    if (dims[2] < 0) {
      return 3;
    }
    return isLeft && isRight ? 0 : isLeft ? 1 : 2;
  }

  double getLocalBytes(Value value, ShardingAttr sharding) const {
    return getTensorBytes(getLocalType(value.getType(), sharding, mesh));
  }

  ProductShape getShape(Operation *op) const {
    auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttrName);
    return getProductShape(*getShardingRule(op),
                           strategy.getRow(mesh.getNumAxes()), mesh.getSizes());
  }

  const ProductRing &ring;
  MeshAttr mesh;
  int64_t size;
  double numBlocks;
  RingVolume volume;
};

} // namespace

RingVolume getVolume(const ProductRing &ring, MeshAttr mesh) {
  return VolumeCounter(ring, mesh).count();
}

} // namespace mlir::alpa
