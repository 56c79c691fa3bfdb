//===- Alpa.cpp - The sharding dialect ------------------------------------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Sharding.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::alpa;

#include "dialects/alpa/AlpaDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/alpa/AlpaAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/alpa/AlpaOps.cpp.inc"

namespace {
/// Operations are pure, and mean the same wherever they stand.
struct AlpaInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }

  /// Bodies of `alpa.manual` call functions as any other code does.
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void AlpaDialect::initialize() {
  addInterfaces<AlpaInlinerInterface>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/alpa/AlpaAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/alpa/AlpaOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

int64_t MeshAttr::getNumDevices() const {
  int64_t devices = 1;
  for (int64_t size : getSizes()) {
    devices *= size;
  }
  return devices;
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    int64_t size = 0;
    if (parser.parseString(&name) || parser.parseEqual() ||
        parser.parseInteger(size)) {
      return failure();
    }
    names.push_back(StringAttr::get(parser.getContext(), name));
    sizes.push_back(size);
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis) ||
      parser.parseGreater()) {
    return {};
  }
  return parser.getChecked<MeshAttr>(parser.getContext(), names, sizes);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(
      llvm::zip(getNames(), getSizes()), printer, [&](auto axis) {
        printer << std::get<0>(axis) << "=" << std::get<1>(axis);
      });
  printer << "]>";
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> sizes) {
  // C1
  if (names.empty() || names.size() > 8) {
    return emitError() << "a mesh has 1 to 8 axes, not " << names.size();
  }
  // C2, C3
  llvm::SmallSet<StringRef, 4> seen;
  int64_t devices = 1;
  for (auto [name, size] : llvm::zip(names, sizes)) {
    if (name.empty() || !seen.insert(name.getValue()).second) {
      return emitError() << "mesh axis name \"" << name.getValue()
                         << "\" is empty or used twice";
    }
    if (size <= 0) {
      return emitError() << "mesh axis \"" << name.getValue()
                         << "\" must have a positive size, not " << size;
    }
    if (size > (int64_t(1) << 20) / devices) {
      return emitError() << "a mesh has at most 1048576 devices";
    }
    devices *= size;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ShardingAttr
//===----------------------------------------------------------------------===//

/// Reads `S0R`, `RS01P2`. Returns false on anything else.
static bool parseNotation(StringRef text, unsigned &rank,
                          SmallVectorImpl<int8_t> &axes) {
  rank = 0;
  int8_t place = kReplicated;
  bool inPartial = false;
  unsigned digits = 0;
  unsigned last = 0;
  for (char c : text) {
    bool opensAxes = c == 'S' || c == 'P';
    if (opensAxes || c == 'R') {
      if (inPartial || (place != kReplicated && digits == 0)) {
        return false;
      }
      inPartial = c == 'P';
      place = c == 'R' ? kReplicated : inPartial ? kPartial : int8_t(rank);
      rank += inPartial ? 0 : 1;
      digits = 0;
      if (rank > 100) {
        return false;
      }
      continue;
    }
    if (c < '0' || c > '7' || place == kReplicated) {
      return false;
    }
    unsigned axis = c - '0';
    if (digits++ > 0 && axis <= last) {
      return false;
    }
    last = axis;
    if (axes.size() <= axis) {
      axes.resize(axis + 1, kReplicated);
    }
    if (axes[axis] != kReplicated) {
      return false;
    }
    axes[axis] = place;
  }
  return place == kReplicated || digits > 0;
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess()) {
    return {};
  }
  StringRef text;
  SMLoc loc = parser.getCurrentLocation();
  (void)parser.parseOptionalKeyword(&text);
  unsigned rank = 0;
  SmallVector<int8_t> axes;
  if (!parseNotation(text, rank, axes)) {
    parser.emitError(loc) << "expected a sharding such as S0R, RS01 or RRP1 "
                             "with each axis once and ascending, not '"
                          << text << "'";
    return {};
  }
  if (parser.parseGreater()) {
    return {};
  }
  return ShardingAttr::get(parser.getContext(), rank, axes);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << toString(getAxes(), getRank()) << ">";
}

//===----------------------------------------------------------------------===//
// ResolveOp
//===----------------------------------------------------------------------===//

ShardingRule ResolveOp::getShardingRule() {
  return ShardingRule::pointwise(*this);
}

FailureOr<SmallVector<Value>> ResolveOp::localize(LocalContext &context) {
  return llvm::to_vector(context.getOperands());
}

//===----------------------------------------------------------------------===//
// ConstrainOp
//===----------------------------------------------------------------------===//

/// The names of an entry, without the `unit` of an open dimension.
static ArrayRef<Attribute> getNamedAxes(ArrayAttr entry) {
  if (!entry) {
    return {};
  }
  ArrayRef<Attribute> names = entry.getValue();
  return !names.empty() && isa<UnitAttr>(names.back()) ? names.drop_back()
                                                       : names;
}

LogicalResult ConstrainOp::verify() {
  // C1
  if (static_cast<int64_t>(getDims().size()) != getType().getRank()) {
    return emitOpError() << "has " << getDims().size()
                         << " entries for a tensor of rank "
                         << getType().getRank();
  }
  SmallVector<Attribute> names;
  for (Attribute dim : getDims()) {
    auto entry = dyn_cast<ArrayAttr>(dim);
    ArrayRef<Attribute> named = getNamedAxes(entry);
    if (!entry || !llvm::all_of(named, llvm::IsaPred<StringAttr>)) {
      return emitOpError() << "expects names of axes, and perhaps unit at the "
                              "end, per dimension, not "
                           << dim;
    }
    llvm::append_range(names, named);
  }
  if (ArrayAttr whole = getReplicatedAttr()) {
    llvm::append_range(names, whole);
  }
  // C2
  llvm::SmallDenseSet<Attribute> seen;
  for (Attribute name : names) {
    if (!seen.insert(name).second) {
      return emitOpError() << "names axis " << name << " twice";
    }
  }
  return success();
}

bool ConstrainOp::allows(ArrayRef<int8_t> axes, MeshAttr mesh) {
  SmallVector<int8_t> wanted(mesh.getNumAxes(), kReplicated);
  // Per dimension the last axis that it names, or the number of axes if none
  // but those may split it.
  SmallVector<int64_t> last;
  auto find = [&](Attribute name) -> std::optional<int64_t> {
    const auto *found = llvm::find(mesh.getNames(), cast<StringAttr>(name));
    return found == mesh.getNames().end()
               ? std::nullopt
               : std::optional(found - mesh.getNames().begin());
  };
  for (auto [dim, entry] : llvm::enumerate(getDims().getAsRange<ArrayAttr>())) {
    ArrayRef<Attribute> names = getNamedAxes(entry);
    last.push_back(-1);
    for (Attribute name : names) {
      std::optional<int64_t> axis = find(name);
      if (!axis) {
        continue;
      }
      // The lower axis is always the major one.
      if (*axis < last.back()) {
        return false;
      }
      last.back() = *axis;
      wanted[*axis] = static_cast<int8_t>(dim);
    }
    if (names.size() == entry.size()) {
      last.back() = mesh.getNumAxes();
    }
  }
  auto isWhole = [&](unsigned axis) {
    ArrayAttr whole = getReplicatedAttr();
    return whole && llvm::is_contained(whole, mesh.getNames()[axis]);
  };
  return llvm::all_of(llvm::enumerate(axes, wanted), [&](auto entry) {
    auto [axis, has, wants] = entry;
    return has == wants ||
           (wants == kReplicated && has >= 0 && !isWhole(axis) &&
            static_cast<int64_t>(axis) > last[has]);
  });
}

ShardingRule ConstrainOp::getShardingRule() {
  ShardingRule rule = ShardingRule::pointwise(*this);
  rule.untouchedOperands.push_back(0);
  rule.untouchedResults.push_back(0);
  return rule;
}

FailureOr<SmallVector<Value>> ConstrainOp::localize(LocalContext &context) {
  return llvm::to_vector(context.getOperands());
}

//===----------------------------------------------------------------------===//
// AccumulateOp
//===----------------------------------------------------------------------===//

ShardingRule AccumulateOp::getShardingRule() {
  ShardingRule rule = ShardingRule::pointwise(*this);
  if (isSummable(getType())) {
    rule.addLinear(0);
  }
  return rule;
}

OperatorRole AccumulateOp::getOperatorRole() { return OperatorRole::Follower; }

FailureOr<SmallVector<Value>> AccumulateOp::localize(LocalContext &context) {
  return llvm::to_vector(context.getOperands());
}

//===----------------------------------------------------------------------===//
// CollectOp
//===----------------------------------------------------------------------===//

LogicalResult CollectOp::verify() {
  auto part = cast<RankedTensorType>(getOperand().getType());
  auto whole = cast<RankedTensorType>(getResult().getType());
  auto dimension = static_cast<int64_t>(getDimension());
  // C2
  if (dimension < 0 || dimension >= part.getRank()) {
    return emitOpError() << "dimension " << dimension << " is none of the "
                         << part.getRank() << " of " << part;
  }
  // C1
  bool fits = part.getElementType() == whole.getElementType() &&
              part.getRank() == whole.getRank();
  for (int64_t index = 0; fits && index < part.getRank(); ++index) {
    int64_t own = part.getDimSize(index), all = whole.getDimSize(index);
    fits = own == all || (index == dimension && own > 0 && all % own == 0);
  }
  return fits ? success()
              : emitOpError() << "parts " << part << " along dimension "
                              << dimension << " do not make up " << whole;
}

/// Every device has the parts of all micro-batches: along the dimension nothing
/// is split.
ShardingRule CollectOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors factors;
  for (auto [index, size] : llvm::enumerate(
           cast<RankedTensorType>(getOperand().getType()).getShape())) {
    factors.emplace_back();
    if (static_cast<uint64_t>(index) != getDimension()) {
      factors.back().push_back(rule.addFactor(size, FactorKind::Parallel));
    }
  }
  rule.operands = {factors, {}};
  rule.results = {factors};
  return rule;
}

OperatorRole CollectOp::getOperatorRole() { return OperatorRole::Follower; }

/// Cutting a stage into phases replaces it by an update of what is collected.
FailureOr<SmallVector<Value>> CollectOp::localize(LocalContext &context) {
  return failure();
}

//===----------------------------------------------------------------------===//
// ReshardOp
//===----------------------------------------------------------------------===//

LogicalResult ReshardOp::verify() {
  // C2
  if (getMesh(*this) && !getType().hasStaticShape()) {
    return emitOpError() << "needs a tensor of static shape, not " << getType();
  }
  // C1, C2
  for (ShardingAttr sharding : {getSource(), getTarget()}) {
    if (failed(verifySharding(*this, "sharding", sharding, getType()))) {
      return failure();
    }
  }
  return success();
}

OpFoldResult ReshardOp::fold(FoldAdaptor) {
  return getSource() == getTarget() ? OpFoldResult(getOperand())
                                    : OpFoldResult();
}
