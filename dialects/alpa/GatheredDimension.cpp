//===- GatheredDimension.cpp - Where gathered values lie ------------------===//

#include "dialects/alpa/GatheredDimension.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

int64_t getGatheredDim(ArrayRef<int64_t> shape) {
  auto isLong = [](int64_t size) { return size > 1; };
  if (llvm::count_if(shape, isLong) != 1) {
    return 0;
  }
  return std::distance(shape.begin(), llvm::find_if(shape, isLong)) + 1;
}

} // namespace mlir::alpa
