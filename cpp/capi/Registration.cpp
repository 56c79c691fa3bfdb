//===- Registration.cpp - Dialects and passes in MLIR's C interface -------===//

#include "cpp/capi/Registration.h"

#include "dialects/alpa/Sharding.h"
#include "dialects/alpa/ShardingRule.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"
#include "passes/Passes.h"
#include <mutex>

using namespace mlir;
using namespace mlir::alpa;

void alpaRegisterDialects(MlirDialectRegistry registry) {
  registerAlpaDialects(*unwrap(registry));
}

void alpaRegisterPasses(void) {
  static std::once_flag once;
  std::call_once(once, [] {
    registerAlpaPasses();
    registerAlpaPipelines();
  });
}

bool alpaOperationHasShardingRule(MlirOperation operation) {
  return hasShardingRule(unwrap(operation));
}

MlirAttribute alpaMeshAttrGet(MlirContext context, intptr_t numAxes,
                              const MlirStringRef *names,
                              const int64_t *sizes) {
  MLIRContext *own = unwrap(context);
  own->loadDialect<AlpaDialect>();
  SmallVector<StringAttr> axes;
  for (intptr_t axis = 0; axis < numAxes; ++axis) {
    axes.push_back(StringAttr::get(own, unwrap(names[axis])));
  }
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(own)); };
  ArrayRef<int64_t> shape(sizes, numAxes);
  if (failed(MeshAttr::verify(emitError, axes, shape))) {
    return MlirAttribute{nullptr};
  }
  return wrap(MeshAttr::get(own, axes, shape));
}

MlirAttribute alpaShardingAttrGet(MlirContext context, intptr_t rank,
                                  intptr_t numAxes, const int8_t *dims) {
  MLIRContext *own = unwrap(context);
  own->loadDialect<AlpaDialect>();
  for (int8_t dim : ArrayRef(dims, numAxes)) {
    if (dim < kPartial || dim >= rank) {
      mlir::emitError(UnknownLoc::get(own))
          << "a mesh axis splits dimension " << int(dim) << " of a tensor of "
          << "rank " << rank;
      return MlirAttribute{nullptr};
    }
  }
  return wrap(getShardingAttr(own, ArrayRef(dims, numAxes), rank));
}

bool alpaAttributeIsASharding(MlirAttribute attribute) {
  return isa<ShardingAttr>(unwrap(attribute));
}

int8_t alpaShardingAttrGetDim(MlirAttribute sharding, intptr_t axis) {
  return cast<ShardingAttr>(unwrap(sharding)).getDim(axis);
}
