//===- ImportManual.cpp - What is split by hand already -------------------===//

#include "passes/ImportManual.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/ShardyReader.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORTMANUAL
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kManualOp = "sdy.manual_computation";
constexpr StringRef kConstraintOp = "sdy.sharding_constraint";

/// Text may say anything: the operation has to have the form that it is known
/// to have.
bool isManual(Operation *op) {
  if (op->getName().getStringRef() != kManualOp || op->getNumRegions() != 1 ||
      op->getNumSuccessors() != 0 || !op->getParentOfType<func::FuncOp>() ||
      op == &op->getBlock()->back() || !op->getRegion(0).hasOneBlock()) {
    return false;
  }
  Block &body = op->getRegion(0).front();
  return body.getNumArguments() == op->getNumOperands() && !body.empty() &&
         body.back().getNumOperands() == op->getNumResults() &&
         body.back().getNumResults() == 0 && body.back().getNumRegions() == 0 &&
         body.back().getNumSuccessors() == 0 &&
         llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) &&
         llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

class Importer {
public:
  explicit Importer(ModuleOp module)
      : module(module), builder(module.getContext()), meshes(module) {}

  LogicalResult run() {
    SmallVector<Operation *> found;
    module.walk([&](Operation *op) {
      if (isManual(op)) {
        found.push_back(op);
      }
    });
    // Outer ones first, to say of an inner one where it stands.
    std::reverse(found.begin(), found.end());
    return success(llvm::all_of(
        found, [&](Operation *op) { return succeeded(import(op)); }));
  }

private:
  LogicalResult import(Operation *op) {
    if (failed(verifyBody(op))) {
      return failure();
    }
    // Shardings of all values have one mesh: what each names is only read.
    MeshAttr mesh;
    FailureOr<ArrayAttr> ins =
        readDims(op, "in_shardings", op->getOperandTypes(), mesh);
    if (failed(ins)) {
      return failure();
    }
    FailureOr<ArrayAttr> outs =
        readDims(op, "out_shardings", op->getResultTypes(), mesh);
    if (failed(outs)) {
      return failure();
    }
    if (!mesh) {
      return op->emitError() << "a shard_map without operands and results "
                                "cannot be planned";
    }
    removeConstraints(op->getRegion(0));
    builder.setInsertionPoint(op);
    auto manual = ManualOp::create(builder, op->getLoc(), op->getResultTypes(),
                                   op->getOperands(), mesh, *ins, *outs);
    manual.getBody().takeBody(op->getRegion(0));
    Operation *end = &manual.getBody().front().back();
    builder.setInsertionPoint(end);
    YieldOp::create(builder, end->getLoc(), end->getOperands());
    end->erase();
    op->replaceAllUsesWith(manual->getResults());
    op->erase();
    return success();
  }

  /// The body stands for itself: nothing of it belongs to what is around.
  LogicalResult verifyBody(Operation *op) {
    Region &region = op->getRegion(0);
    WalkResult result = region.walk([&](Operation *inner) {
      if (inner->getName().getStringRef() == kManualOp) {
        inner->emitError() << "a shard_map inside of a shard_map cannot be "
                              "planned: take one over all their axes";
        return WalkResult::interrupt();
      }
      for (Value operand : inner->getOperands()) {
        if (!region.isAncestor(operand.getParentRegion())) {
          inner->emitError() << "uses a value from outside of the shard_map "
                                "that it stands in";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Per value and dimension the names of the axes.
  FailureOr<ArrayAttr> readDims(Operation *op, StringRef name, TypeRange types,
                                MeshAttr &mesh) {
    std::string text = getShardyText(getShardyAttribute(op, name));
    StringRef rest = text;
    auto refuse = [&]() -> FailureOr<ArrayAttr> {
      return op->emitError()
             << name << " of this shard_map cannot be planned: " << text;
    };
    rest.consume_front("#sdy.");
    if (!rest.consume_front("sharding_per_value<[")) {
      return refuse();
    }
    SmallVector<Attribute> entries;
    for (unsigned index = 0; index < types.size(); ++index) {
      std::optional<ShardySharding> sharding = readShardySharding(rest);
      if (!sharding || failed(readMesh(op, sharding->mesh, mesh))) {
        return refuse();
      }
      SmallVector<Attribute> dims;
      for (const ShardyDim &dim : sharding->dims) {
        dims.push_back(builder.getStrArrayAttr(dim.names));
      }
      entries.push_back(builder.getArrayAttr(dims));
      rest.consume_front(", ");
    }
    return rest == "]>" ? FailureOr<ArrayAttr>(builder.getArrayAttr(entries))
                        : refuse();
  }

  /// All values are on the same mesh.
  LogicalResult readMesh(Operation *op, StringRef name, MeshAttr &mesh) {
    auto axes = meshes.get(name);
    if (!axes) {
      return failure();
    }
    SmallVector<StringAttr> names;
    SmallVector<int64_t> sizes;
    for (auto [axis, size] : *axes) {
      names.push_back(builder.getStringAttr(axis));
      sizes.push_back(size);
    }
    if (failed(
            MeshAttr::verify([&] { return op->emitError(); }, names, sizes))) {
      return failure();
    }
    MeshAttr found = MeshAttr::get(op->getContext(), names, sizes);
    if (mesh && mesh != found) {
      return failure();
    }
    mesh = found;
    return success();
  }

  /// Hints for a partitioner, which has nothing left to do in the body.
  static void removeConstraints(Region &region) {
    SmallVector<Operation *> constraints;
    region.walk([&](Operation *inner) {
      if (inner->getName().getStringRef() == kConstraintOp &&
          inner->getNumOperands() == 1 && inner->getNumResults() == 1 &&
          inner->getNumRegions() == 0 && inner->getNumSuccessors() == 0 &&
          inner != &inner->getBlock()->back() &&
          inner->getOperand(0).getDefiningOp() != inner &&
          inner->getOperand(0).getType() == inner->getResult(0).getType()) {
        constraints.push_back(inner);
      }
    });
    for (Operation *constraint : constraints) {
      constraint->getResult(0).replaceAllUsesWith(constraint->getOperand(0));
      constraint->erase();
    }
  }

  ModuleOp module;
  OpBuilder builder;
  ShardyMeshes meshes;
};

struct ImportManual : impl::ImportManualBase<ImportManual> {
  void runOnOperation() override {
    if (failed(importManual(getOperation()))) {
      signalPassFailure();
    }
  }
};

} // namespace

LogicalResult importManual(ModuleOp module) { return Importer(module).run(); }

} // namespace mlir::alpa
