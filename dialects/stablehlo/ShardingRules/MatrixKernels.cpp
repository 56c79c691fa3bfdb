//===- MatrixKernels.cpp - Kernels of linear algebra ----------------------===//
//
// LAPACK's kernels and their counterparts on accelerators. All leading
// dimensions are a batch; JAX says how many they are, but of those kernels that
// are part of XLA or of one of its backends.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Kernels.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::ShardingRule;

namespace {

/// What a kernel computes, as LAPACK names it without the letter of its type.
enum class Routine {
  Unknown,
  Potrf,
  Getrf,
  Geqrf,
  Orgqr,
  Ormqr,
  Trsm,
  Sytrd,
  Gehrd,
  Syevd,
  Geev,
  Gesvd,
  Syrk,
};

/// `lapack_spotrf_ffi` and `cusolver_potrf_ffi` are both `potrf`.
StringRef getRoutineName(StringRef target) {
  target.consume_back("_ffi");
  if (target.consume_front("lapack_")) {
    return target.drop_front(target.empty() ? 0 : 1);
  }
  for (StringRef library :
       {"cusolver_", "hipsolver_", "cuhybrid_", "hiphybrid_"}) {
    if (target.consume_front(library)) {
      return target;
    }
  }
  return target;
}

Routine getRoutine(StringRef target) {
  return llvm::StringSwitch<Routine>(getRoutineName(target))
      .Case("potrf", Routine::Potrf)
      .Cases({"getrf", "LuDecomposition"}, Routine::Getrf)
      .Cases({"geqrf", "geqp3", "Qr"}, Routine::Geqrf)
      .Cases({"orgqr", "ungqr", "ProductOfElementaryHouseholderReflectors"},
             Routine::Orgqr)
      .Cases({"ormqr", "unmqr"}, Routine::Ormqr)
      .Case("trsm", Routine::Trsm)
      .Cases({"sytrd", "hetrd"}, Routine::Sytrd)
      .Case("gehrd", Routine::Gehrd)
      .Cases({"syevd", "heevd", "Eigh"}, Routine::Syevd)
      .Cases({"gees", "geev", "eig_real", "eig_comp"}, Routine::Geev)
      .Cases({"gesdd", "gesvd", "gesvdj", "gesvdp"}, Routine::Gesvd)
      .Case("syrk", Routine::Syrk)
      .Default(Routine::Unknown);
}

/// Kernels on batches of matrices whose calls do not say so.
bool isBatchedByDefinition(StringRef target) {
  return llvm::StringSwitch<bool>(target)
      .Cases({"Eigh", "LuDecomposition",
              "ProductOfElementaryHouseholderReflectors", "Qr",
              "cusolver_syrk_ffi", "hipsolver_syrk_ffi"},
             true)
      .Default(false);
}

/// Number of leading batch dimensions, which JAX declares:
///   mhlo.frontend_attributes = {num_batch_dims = "2"}
/// None of a call that is not known to have a batch.
std::optional<int64_t> getNumBatchDims(CustomCallOp call) {
  auto attributes =
      call->getAttrOfType<DictionaryAttr>("mhlo.frontend_attributes");
  auto text =
      attributes ? attributes.getAs<StringAttr>("num_batch_dims") : nullptr;
  int64_t count = 0;
  if (text && !text.getValue().getAsInteger(10, count)) {
    return std::max<int64_t>(count, 0);
  }
  if (isBatchedByDefinition(call.getCallTargetName()) &&
      call->getNumOperands() > 0) {
    auto matrix = dyn_cast<RankedTensorType>(call->getOperand(0).getType());
    return matrix ? std::max<int64_t>(matrix.getRank() - 2, 0) : 0;
  }
  return std::nullopt;
}

/// Leading dimensions of all tensors are one batch; operands that are scalars
/// belong to none, and a result that is one is made of the whole batch.
void addBatch(RuleBuilder &builder, CustomCallOp call, int64_t numBatchDims) {
  for (int64_t dim = 0; dim < numBatchDims; ++dim) {
    DimFactors batch = builder.addParallel(builder.getResultSize(0, dim));
    for (unsigned i = 0; i < call->getNumOperands(); ++i) {
      if (builder.getOperandRank(i) > 0) {
        builder.appendOperand(i, dim, batch);
      }
    }
    for (unsigned i = 0; i < call->getNumResults(); ++i) {
      builder.appendResult(i, dim, batch);
    }
  }
}

/// Whether the matrix stands on the left of what it is applied to; none if the
/// call does not say.
std::optional<bool> isLeft(CustomCallOp call) {
  auto config = call->getAttrOfType<DictionaryAttr>("mhlo.backend_config");
  if (!config) {
    return std::nullopt;
  }
  if (auto left = config.getAs<BoolAttr>("left")) {
    return left.getValue();
  }
  auto side = config.getAs<IntegerAttr>("side");
  return side ? std::optional(side.getValue() == 'L') : std::nullopt;
}

/// `trsm` solves for every column on its own, or for every row, and `ormqr`
/// multiplies by a matrix: both are linear in what they are applied to, by
/// numbers that may be large.
void addSides(RuleBuilder &builder, CustomCallOp call, unsigned operand) {
  std::optional<bool> left = isLeft(call);
  if (!left || call->getNumResults() != 1 ||
      call->getNumOperands() != operand + 1 ||
      call->getOperand(operand).getType() != call->getResult(0).getType()) {
    return;
  }
  int64_t rank = builder.getResultRank(0);
  int64_t sides = *left ? rank - 1 : rank - 2;
  builder.share(operand, sides, 0, sides);
  if (isSummable(call->getResult(0).getType())) {
    builder.getRule().addAlgebraic(operand);
  }
}

/// Floating-point operations for one matrix of `rows` x `columns`: direct
/// methods by Blackford and Dongarra, "Installation Guide for LAPACK" (LAPACK
/// Working Note 41), appendix C; iterations with all vectors by Golub and Van
/// Loan, "Matrix Computations", 4th edition, chapters 7 and 8.
double getFlops(Routine routine, double rows, double columns) {
  double less = std::min(rows, columns), more = std::max(rows, columns);
  double cube = less * less * less;
  switch (routine) {
  case Routine::Potrf:
    return cube / 3;
  case Routine::Getrf:
    return more * less * less - cube / 3;
  case Routine::Syrk:
    return rows * rows * columns;
  case Routine::Geqrf:
  case Routine::Orgqr:
    return 2 * more * less * less - 2 * cube / 3;
  case Routine::Sytrd:
    return 4 * cube / 3;
  case Routine::Gehrd:
    return 10 * cube / 3;
  case Routine::Syevd:
    return 9 * cube;
  case Routine::Geev:
    return 25 * cube;
  case Routine::Gesvd:
    return 4 * more * more * less + 22 * cube;
  case Routine::Unknown:
  case Routine::Trsm:
  case Routine::Ormqr:
    return 0;
  }
  return 0;
}

double getFlops(RuleBuilder &builder, CustomCallOp call, Routine routine) {
  if (routine == Routine::Unknown || call->getNumOperands() == 0 ||
      builder.getOperandRank(0) < 2) {
    return 0;
  }
  auto matrix = cast<RankedTensorType>(call->getOperand(0).getType());
  int64_t rank = matrix.getRank();
  auto rows = static_cast<double>(matrix.getDimSize(rank - 2));
  auto columns = static_cast<double>(matrix.getDimSize(rank - 1));
  double flops = getNumElements(matrix) / (rows * columns) *
                 getFlops(routine, rows, columns);
  if (routine == Routine::Trsm || routine == Routine::Ormqr) {
    double applied = getNumElements(call->getResult(0).getType());
    // n^2 for every right-hand side; a reflector of length m takes 4 m.
    flops = applied * columns * (routine == Routine::Trsm ? 1 : 4);
  }
  // A product of complex numbers has four products, and as many sums.
  return isa<ComplexType>(matrix.getElementType()) ? 4 * flops : flops;
}

} // namespace

std::optional<ShardingRule> stablehlo::getMatrixKernelRule(CustomCallOp call) {
  std::optional<int64_t> numBatchDims = getNumBatchDims(call);
  RuleBuilder builder(call);
  if (!numBatchDims || !builder.isUsable()) {
    return std::nullopt;
  }
  Routine routine = getRoutine(call.getCallTargetName());
  addBatch(builder, call, *numBatchDims);
  if (routine == Routine::Trsm || routine == Routine::Ormqr) {
    addSides(builder, call, routine == Routine::Trsm ? 1 : 2);
  }
  builder.getRule().flops = getFlops(builder, call, routine);
  return builder.finish();
}
