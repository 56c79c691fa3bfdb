//===- Entry.cpp - The function that is planned ---------------------------===//

#include "cpp/analysis/Entry.h"

#include "dialects/alpa/Sharding.h"

namespace mlir::alpa {

/// What a function returns is what it says. `func.return` sees to that itself;
/// terminators of other dialects do not.
static LogicalResult verifyReturned(func::FuncOp entry) {
  Operation *exit = entry.getBody().front().getTerminator();
  if (exit->getNumOperands() != entry.getNumResults()) {
    return exit->emitOpError()
           << "returns " << exit->getNumOperands() << " values from @"
           << entry.getSymName() << ", which has " << entry.getNumResults()
           << " results";
  }
  for (auto [index, type, result] :
       llvm::enumerate(exit->getOperandTypes(), entry.getResultTypes())) {
    if (type != result) {
      return exit->emitOpError()
             << "returns " << type << " from @" << entry.getSymName()
             << ", whose result " << index << " is " << result;
    }
  }
  return success();
}

FailureOr<func::FuncOp> getEntryFunction(ModuleOp module) {
  SmallVector<func::FuncOp> candidates;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isPublic() && !function.isExternal()) {
      candidates.push_back(function);
    }
  }
  // What operators name, the comparator of a custom call, is none of its own.
  bool hasOthers = candidates.size() > 1;
  func::FuncOp entry;
  for (func::FuncOp function : candidates) {
    if (hasOthers && !SymbolTable::symbolKnownUseEmpty(function, module)) {
      continue;
    }
    if (entry) {
      return module.emitError()
             << "a module to plan has one public function, this one has @"
             << entry.getSymName() << " and @" << function.getSymName();
    }
    entry = function;
  }
  if (!entry) {
    return module.emitError() << "a module to plan has one public function "
                                 "with a body, this one has none";
  }
  if (!entry.getBody().hasOneBlock()) {
    return entry.emitOpError() << "must have one block to be planned";
  }
  if (failed(verifyReturned(entry))) {
    return failure();
  }
  return entry;
}

FailureOr<MeshAttr> getPlannedMesh(ModuleOp module) {
  if (MeshAttr mesh = getMesh(module)) {
    return mesh;
  }
  return module.emitError() << "has no '" << kMeshAttrName
                            << "': run alpa-choose-strategies first";
}

FailureOr<MeshAttr> parseMesh(MLIRContext *context, ArrayRef<std::string> axes,
                              function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (StringRef axis : axes) {
    auto [name, size] = axis.split(':');
    int64_t value = 0;
    if (size.getAsInteger(10, value)) {
      return emitError() << "mesh axis '" << axis
                         << "' is not of the form name:size";
    }
    names.push_back(StringAttr::get(context, name));
    sizes.push_back(value);
  }
  if (failed(MeshAttr::verify(emitError, names, sizes))) {
    return failure();
  }
  return MeshAttr::get(context, names, sizes);
}

} // namespace mlir::alpa
