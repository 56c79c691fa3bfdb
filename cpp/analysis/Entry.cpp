//===- Entry.cpp - The function that is planned ---------------------------===//

#include "cpp/analysis/Entry.h"

#include "dialects/alpa/Sharding.h"

namespace mlir::alpa {

FailureOr<func::FuncOp> getEntryFunction(ModuleOp module) {
  func::FuncOp entry;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal()) {
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
  return entry;
}

FailureOr<MeshAttr> getPlannedMesh(ModuleOp module) {
  if (MeshAttr mesh = getMesh(module)) {
    return mesh;
  }
  return module.emitError()
         << "has no '" << kMeshAttrName << "': run alpa-choose-strategies first";
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
