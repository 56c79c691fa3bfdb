//===- Elements.h - Elements of tensors -------------------------*- C++ -*-===//

#ifndef DIALECTS_ALPA_ELEMENTS_H
#define DIALECTS_ALPA_ELEMENTS_H

#include "dialects/alpa/ShardingRule.h"

namespace mlir::alpa {

/// Whether devices can hold blocks of a tensor with elements as those of `type`
/// and exchange them: numbers, also as quantized with one scale for all. Scales
/// per axis belong to places along a dimension, and nothing that slices or
/// exchanges takes them, numbers of type `index` or what is no number at all.
bool hasSplittableElements(Type type);

/// The first tensor of `op` that the rule splits although its elements cannot
/// be, as an error says it; empty if there is none.
std::string findSplitElements(const ShardingRule &rule, Operation *op);

} // namespace mlir::alpa

#endif // DIALECTS_ALPA_ELEMENTS_H
