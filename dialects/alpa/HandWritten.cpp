//===- HandWritten.cpp - What is not split by the planner -----------------===//
//
// Callbacks, which run whole on one device, and computations that their author
// has split.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Sharding.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlir::alpa;

//===----------------------------------------------------------------------===//
// CallbackOp
//===----------------------------------------------------------------------===//

static bool startsWithToken(TypeRange types) {
  return !types.empty() &&
         types.front() ==
             RankedTensorType::get(
                 {}, IntegerType::get(types.front().getContext(), 32));
}

LogicalResult CallbackOp::verify() {
  // C2
  if (getOrdered() && (!startsWithToken(getOperandTypes()) ||
                       !startsWithToken(getResultTypes()))) {
    return emitOpError() << "is ordered, its first operand and its first "
                            "result must be tokens of type tensor<i32>";
  }
  // C3
  if (getOrdered() && getPure()) {
    return emitOpError() << "is ordered and pure, it can only be one of both";
  }
  return success();
}

void CallbackOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getPure()) {
    effects.emplace_back(MemoryEffects::Read::get());
    effects.emplace_back(MemoryEffects::Write::get());
  }
}

//===----------------------------------------------------------------------===//
// ManualOp
//===----------------------------------------------------------------------===//

/// The entry of a value: names of axes per dimension.
static LogicalResult verifyDims(ManualOp op, StringRef what, Attribute entry,
                                RankedTensorType type) {
  auto dims = dyn_cast<ArrayAttr>(entry);
  // C1
  if (!dims || static_cast<int64_t>(dims.size()) != type.getRank()) {
    return op.emitOpError() << what << " needs one entry per dimension of "
                            << type << ", not " << entry;
  }
  MeshAttr mesh = op.getMesh();
  llvm::SmallDenseSet<Attribute> seen;
  for (auto [dim, size] : llvm::zip(dims, type.getShape())) {
    auto names = dyn_cast<ArrayAttr>(dim);
    if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>)) {
      return op.emitOpError()
             << what << " expects names of axes per dimension, not " << dim;
    }
    int64_t parts = 1;
    const auto *last = mesh.getNames().begin();
    for (auto name : names.getAsRange<StringAttr>()) {
      const auto *found = llvm::find(mesh.getNames(), name);
      // C2
      if (found == mesh.getNames().end()) {
        return op.emitOpError()
               << what << " names axis " << name << ", the mesh is " << mesh;
      }
      if (!seen.insert(name).second) {
        return op.emitOpError() << what << " names axis " << name << " twice";
      }
      if (found < last) {
        return op.emitOpError()
               << what << " names axes " << names
               << " of one dimension, they must come in the order of the mesh "
               << mesh;
      }
      last = found;
      parts *= mesh.getSizes()[found - mesh.getNames().begin()];
    }
    // C3
    if (ShapedType::isDynamic(size) || size % parts != 0) {
      return op.emitOpError() << what << " splits a dimension of " << type
                              << " into " << parts << " parts";
    }
  }
  return success();
}

static LogicalResult verifyEntries(ManualOp op, StringRef what,
                                   ArrayAttr entries, TypeRange types) {
  // C1
  if (entries.size() != types.size()) {
    return op.emitOpError() << "has " << entries.size() << " " << what
                            << " entries for " << types.size() << " values";
  }
  for (auto [index, entry, type] : llvm::enumerate(entries, types)) {
    std::string name = (what + " " + Twine(index)).str();
    if (failed(verifyDims(op, name, entry, cast<RankedTensorType>(type)))) {
      return failure();
    }
  }
  return success();
}

LogicalResult ManualOp::verify() {
  return success(
      succeeded(verifyEntries(*this, "ins", getIns(), getOperandTypes())) &&
      succeeded(verifyEntries(*this, "outs", getOuts(), getResultTypes())));
}

static ShardingRow getRowOf(ManualOp op, Attribute entry) {
  MeshAttr mesh = op.getMesh();
  ShardingRow row(mesh.getNumAxes(), kReplicated);
  for (auto [dim, names] :
       llvm::enumerate(cast<ArrayAttr>(entry).getAsRange<ArrayAttr>())) {
    for (auto name : names.getAsRange<StringAttr>()) {
      const auto *found = llvm::find(mesh.getNames(), name);
      row[found - mesh.getNames().begin()] = static_cast<int8_t>(dim);
    }
  }
  return row;
}

ShardingRow ManualOp::getOperandRow(unsigned index) {
  return getRowOf(*this, getIns()[index]);
}

ShardingRow ManualOp::getResultRow(unsigned index) {
  return getRowOf(*this, getOuts()[index]);
}

LogicalResult ManualOp::verifyRegions() {
  Block &block = getBody().front();
  auto verifyTypes = [&](StringRef what, TypeRange globals, TypeRange locals,
                         auto getValueRow) -> LogicalResult {
    if (globals.size() != locals.size()) {
      return emitOpError() << "has " << globals.size() << " " << what
                           << "s, its body has " << locals.size();
    }
    for (auto [index, global, local] : llvm::enumerate(globals, locals)) {
      auto type = cast<RankedTensorType>(global);
      Type expected = RankedTensorType::get(getLocalShape(getValueRow(index),
                                                          type.getShape(),
                                                          getMesh().getSizes()),
                                            type.getElementType());
      if (expected != local) {
        return emitOpError() << what << " " << index << " of its body is "
                             << local << ", a block is " << expected;
      }
    }
    return success();
  };
  // C4
  if (failed(verifyTypes("operand", getOperandTypes(), block.getArgumentTypes(),
                         [&](unsigned i) { return getOperandRow(i); }))) {
    return failure();
  }
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield) {
    return emitOpError() << "must end its body with '"
                         << YieldOp::getOperationName() << "'";
  }
  return verifyTypes("result", getResultTypes(), yield->getOperandTypes(),
                     [&](unsigned i) { return getResultRow(i); });
}
