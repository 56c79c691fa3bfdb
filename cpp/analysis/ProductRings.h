//===- ProductRings.h - Products that run beside collectives ----*- C++ -*-===//
//
// An all-gather before a product, or a reduce-scatter behind one, over one axis
// of n devices can be taken apart: blocks go from neighbour to neighbour, n - 1
// times, while the product is made of one block after the other (Wang et al.,
// "Overlap Communication with Dependent Computation via Decomposition in Large
// Deep Learning Models", ASPLOS 2023).
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_PRODUCTRINGS_H
#define CPP_ANALYSIS_PRODUCTRINGS_H

#include "cpp/analysis/Leeway.h"
#include "cpp/analysis/ProductShape.h"
#include "cpp/analysis/ReshardPlanner.h"
#include "dialects/alpa/Alpa.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// What of a product goes around a ring.
enum class RingSide : int8_t { Lhs = 0, Rhs = 1, Result = 2 };

StringRef toString(RingSide side);

/// The dimension that a loop of a product runs along in each of its tensors, by
/// `RingSide`; -1 where it does not.
using LoopDims = std::array<int64_t, 3>;

struct RingProduct {
  stablehlo::DotGeneralOp op;
  RingSide side;
  /// Of the loop that is taken apart.
  LoopDims dims;
};

/// A collective that may be taken apart, and the products that it is done
/// beside.
struct ProductRing {
  ReshardOp reshard;
  /// The all-gather that is the last step of the reshard, or the reduce-scatter
  /// that is the first.
  ReshardStep step;
  SmallVector<RingProduct, 2> products;
  /// Of an all-gather: others than these products use its result.
  bool isKept = false;

  bool isGather() const { return step.kind == CollectiveKind::AllGather; }
  unsigned getAxis() const { return step.axes.front(); }
};

/// Finds rings in a function with shardings and reshards.
class ProductRings {
public:
  explicit ProductRings(MeshAttr mesh) : mesh(mesh), planner(mesh.getSizes()) {}

  /// All that there can be, in order of the program. A product may be in
  /// several, of which it can be in one at a time. Of a gather by which some
  /// products add up blocks and others do not, there is one ring with all of
  /// them and one with the others alone.
  std::vector<ProductRing> findAll(func::FuncOp function);

  /// The ring of the all-gather that a reshard ends with, if there can be one:
  /// it is over one axis of more than one device, and products of its block use
  /// its result as one of two operands. The other one is there before anything
  /// uses the result, which is when blocks go around, and comes of no gather
  /// itself unless the product is the first use.
  std::optional<ProductRing> findGather(ReshardOp reshard);

  /// That of the reduce-scatter that a reshard begins with: it is over one axis
  /// of more than one device, and a product makes what nothing else uses.
  std::optional<ProductRing> findScatter(ReshardOp reshard);

  /// The rings of a reshard by what is written on products; none where one of
  /// these cannot be in it.
  std::optional<ProductRing> findWrittenGather(ReshardOp reshard);
  std::optional<ProductRing> findWrittenScatter(ReshardOp reshard);

private:
  const ReshardPlan &getPlan(ReshardOp reshard);
  bool isRing(const ReshardStep &step, CollectiveKind kind) const;

  MeshAttr mesh;
  ReshardPlanner planner;
};

/// What is written on a product, as `alpa.product_ring`: what of it goes
/// around.
std::optional<RingSide> getRingSide(Operation *op);

/// The first operator of the reshard's block that uses its result, itself or in
/// its regions; null if none does.
Operation *getFirstUser(ReshardOp reshard);

/// Whether what a reshard gathers, or scatters, goes around a ring, by what is
/// written on products.
bool isGatheredInRing(ReshardOp reshard);
bool isScatteredInRing(ReshardOp reshard);

/// In which type partial products are added up: that of the result, or of more
/// bits.
Type getSumType(Type elementType);

/// What a ring sends and computes, beside what it would do as a collective.
struct RingVolume {
  /// Payload of the collective, per device.
  double bytes;
  /// What slices, sums and updates of blocks read and write, per device and
  /// run, and how many there are.
  double addedBytes;
  double addedKernels;
  struct Product {
    ProductShape shape, blockShape;
    /// Read and written by it, and by that of a block.
    double bytes, blockBytes;
  };
  SmallVector<Product, 2> products;
};

RingVolume getVolume(const ProductRing &ring, MeshAttr mesh);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_PRODUCTRINGS_H
