//===- Work.h - FLOPs and memory traffic of a program -----------*- C++ -*-===//

#ifndef CPP_ANALYSIS_WORK_H
#define CPP_ANALYSIS_WORK_H

#include "cpp/analysis/Backend.h"
#include "cpp/analysis/ProductShape.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::alpa {

/// What the type of a tensor's elements, or a type, is called: `f32`.
std::string getElementName(Type type);

/// Whether the strategy of an operator splits some loop of it.
bool isSplit(Operation *op);

/// What one operator of a program does, all its runs together.
struct OperatorWork {
  std::string op;
  double runs;
  double flops;
  /// Read and written; of a product, with what is computed in its kernel.
  double bytes;
  /// Kernels that it launches; none where it is part of another's.
  double kernels;
  /// Of a product.
  std::optional<ProductShape> shape;
  ProductForm form;
  /// See `getChannelPadding`.
  double padding;
  /// Element type that the FLOPs are done in.
  std::string dtype;
  /// Of a planned program: its strategy splits some loop. One that does not is
  /// computed whole on every device.
  bool isSplit;
  /// Of the bytes of what is no product, those of elements of at most 16 bits.
  double narrowBytes;
};

/// What the operators of a program do together.
struct TotalWork {
  double flops = 0;
  double bytes = 0;
};

TotalWork getTotalWork(func::FuncOp function);

/// The operators of a module, as it is planned or for one device, that do
/// something. Bytes are those that cross fusions; see Materialization.h.
/// \param backend whose rules decide what these are.
FailureOr<std::vector<OperatorWork>> getWork(ModuleOp module,
                                             Backend backend = Backend::Gpu);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_WORK_H
