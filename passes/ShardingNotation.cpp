//===- ShardingNotation.cpp - Shardings as XLA writes them ----------------===//

#include "passes/ShardingNotation.h"

#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::alpa {

namespace {

/// Per dimension the mesh axes that split it, major first.
SmallVector<SmallVector<unsigned, 2>> getAxesOfDims(ShardingAttr sharding,
                                                    MeshAttr mesh) {
  SmallVector<SmallVector<unsigned, 2>> axesOfDims(sharding.getRank());
  for (unsigned axis = 0; axis < mesh.getNumAxes(); ++axis) {
    if (int8_t dim = sharding.getDim(axis); dim >= 0) {
      axesOfDims[dim].push_back(axis);
    }
  }
  return axesOfDims;
}

/// `sdy.sharding_constraint %0 <mesh<["x"=2]>, [{"x"}, {}]>`.
class ShardyNotation : public ShardingNotation {
public:
  explicit ShardyNotation(MeshAttr mesh) : mesh(mesh) {}

  StringRef getAttributeName() const override { return "sdy.sharding"; }

  Attribute getAttribute(ShardingAttr sharding) const override {
    std::string text = "sharding<mesh<[";
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(llvm::zip(mesh.getNames(), mesh.getSizes()), os,
                          [&](auto axis) {
                            os << std::get<0>(axis) << '=' << std::get<1>(axis);
                          });
    os << "]>, [";
    llvm::interleaveComma(getAxesOfDims(sharding, mesh), os,
                          [&](ArrayRef<unsigned> axes) {
                            os << '{';
                            llvm::interleaveComma(axes, os, [&](unsigned axis) {
                              os << mesh.getNames()[axis];
                            });
                            os << '}';
                          });
    os << "]>";
    return getShardyAttr(mesh.getContext(), text);
  }

  Value createConstraint(OpBuilder &builder, Location loc, Value value,
                         ShardingAttr sharding) const override {
    return createShardyConstraint(builder, loc, value, getAttribute(sharding));
  }

private:
  MeshAttr mesh;
};

/// `custom_call @Sharding(%0) {mhlo.sharding = "{devices=[2,1]<=[2]}"}`.
class GspmdNotation : public ShardingNotation {
public:
  explicit GspmdNotation(MeshAttr mesh) : mesh(mesh) {}

  StringRef getAttributeName() const override { return "mhlo.sharding"; }

  Attribute getAttribute(ShardingAttr sharding) const override {
    return StringAttr::get(mesh.getContext(), getText(sharding));
  }

  Value createConstraint(OpBuilder &builder, Location loc, Value value,
                         ShardingAttr sharding) const override {
    OperationState state(loc, stablehlo::CustomCallOp::getOperationName());
    state.addOperands(value);
    state.addTypes(value.getType());
    state.addAttribute("call_target_name", builder.getStringAttr("Sharding"));
    state.addAttribute(getAttributeName(), getAttribute(sharding));
    return builder.create(state)->getResult(0);
  }

private:
  /// Tiles per dimension, and the devices in the order of the tiles: the mesh,
  /// transposed so that the axes of the dimensions come first.
  std::string getText(ShardingAttr sharding) const {
    ArrayRef<int64_t> sizes = mesh.getSizes();
    SmallVector<unsigned> order;
    SmallVector<int64_t> tiles;
    int64_t numTiles = 1;
    for (ArrayRef<unsigned> axes : getAxesOfDims(sharding, mesh)) {
      tiles.push_back(1);
      for (unsigned axis : axes) {
        order.push_back(axis);
        tiles.back() *= sizes[axis];
      }
      numTiles *= tiles.back();
    }
    if (numTiles == 1) {
      return "{replicated}";
    }
    int64_t numCopies = mesh.getNumDevices() / numTiles;
    if (numCopies > 1) {
      tiles.push_back(numCopies);
    }
    for (unsigned axis = 0; axis < sizes.size(); ++axis) {
      if (!llvm::is_contained(order, axis)) {
        order.push_back(axis);
      }
    }
    std::string text = "{devices=[";
    llvm::raw_string_ostream os(text);
    llvm::interleave(tiles, os, ",");
    os << "]<=[";
    if (llvm::is_sorted(order)) {
      os << mesh.getNumDevices() << ']';
    } else {
      llvm::interleave(sizes, os, ",");
      os << "]T(";
      llvm::interleave(order, os, ",");
      os << ')';
    }
    if (numCopies > 1) {
      os << " last_tile_dim_replicate";
    }
    os << '}';
    return text;
  }

  MeshAttr mesh;
};

} // namespace

Attribute getShardyAttr(MLIRContext *context, StringRef text) {
  return OpaqueAttr::get(StringAttr::get(context, "sdy"), text,
                         NoneType::get(context));
}

Value createShardyConstraint(OpBuilder &builder, Location loc, Value value,
                             Attribute sharding) {
  OperationState state(loc, "sdy.sharding_constraint");
  state.addOperands(value);
  state.addTypes(value.getType());
  state.addAttribute("sharding", sharding);
  return builder.create(state)->getResult(0);
}

std::unique_ptr<ShardingNotation> ShardingNotation::get(StringRef name,
                                                        MeshAttr mesh) {
  if (name == "shardy") {
    return std::make_unique<ShardyNotation>(mesh);
  }
  if (name == "gspmd") {
    return std::make_unique<GspmdNotation>(mesh);
  }
  return nullptr;
}

} // namespace mlir::alpa
