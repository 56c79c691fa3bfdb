//===- DiscardableAttributes.cpp - What a plan writes on others -----------===//
//
// Every attribute `alpa.*` has a type and a place, and is refused by its name
// where it has another or is not known.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <optional>

using namespace mlir;
using namespace mlir::alpa;

using Emit = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

LogicalResult mlir::alpa::verifySharding(Operation *op, const Twine &what,
                                         ShardingAttr sharding,
                                         RankedTensorType type) {
  if (sharding.getRank() != type.getRank()) {
    return op->emitOpError() << what << " has rank " << sharding.getRank()
                             << ", its value has rank " << type.getRank();
  }
  MeshAttr mesh = getMesh(op);
  if (!mesh || !type.hasStaticShape()) {
    return success();
  }
  if (sharding.getAxes().size() > mesh.getNumAxes()) {
    return op->emitOpError()
           << what << " uses mesh axis " << sharding.getAxes().size() - 1
           << ", the mesh has " << mesh.getNumAxes() << " axes";
  }
  if (!divides(getRow(sharding, mesh.getNumAxes()), type.getShape(),
               mesh.getSizes())) {
    return op->emitOpError() << what << " " << sharding << " does not divide "
                             << type << " on " << mesh;
  }
  return success();
}

/// One sharding per value, each of the value's rank; on a mesh, each divides
/// its shape.
static LogicalResult verifyShardings(Operation *op, NamedAttribute attr,
                                     ValueRange values) {
  StringRef name = attr.getName().getValue();
  auto shardings = dyn_cast<ArrayAttr>(attr.getValue());
  if (!shardings || shardings.size() != values.size()) {
    return op->emitOpError()
           << "'" << name << "' needs one sharding per value, " << values.size()
           << " in all";
  }
  for (auto [index, entry, value] : llvm::enumerate(shardings, values)) {
    auto sharding = dyn_cast<ShardingAttr>(entry);
    if (!sharding) {
      return op->emitOpError()
             << "'" << name << "' entry " << index << " is no sharding";
    }
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type &&
        failed(verifySharding(op, "'" + name + "' entry " + Twine(index),
                              sharding, type))) {
      return failure();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Types of attributes
//===----------------------------------------------------------------------===//

static LogicalResult verifyInteger(Emit emit, NamedAttribute attr,
                                   int64_t least) {
  auto number = dyn_cast<IntegerAttr>(attr.getValue());
  if (!number || !number.getType().isSignlessInteger(64)) {
    return emit() << "'" << attr.getName().getValue()
                  << "' must be an integer of type i64, not "
                  << attr.getValue();
  }
  if (number.getInt() < least) {
    return emit() << "'" << attr.getName().getValue() << "' must be at least "
                  << least << ", it is " << number.getInt();
  }
  return success();
}

/// `what` is the type that it must have, as the error says it.
template <typename Kind>
static LogicalResult verifyKind(Emit emit, NamedAttribute attr,
                                StringRef what) {
  return isa<Kind>(attr.getValue())
             ? success()
             : LogicalResult(emit()
                             << "'" << attr.getName().getValue() << "' must be "
                             << what << ", not " << attr.getValue());
}

static LogicalResult verifyPlace(Emit emit, NamedAttribute attr, bool isRight,
                                 StringRef place) {
  return isRight ? success()
                 : LogicalResult(emit() << "'" << attr.getName().getValue()
                                        << "' belongs on " << place);
}

//===----------------------------------------------------------------------===//
// Attributes of operators
//===----------------------------------------------------------------------===//

/// Whether a carried rule may say more than the operator's own, which splits
/// nothing: the operator is opaque to us. Others are whole because of what they
/// are, as a scatter of quantized elements is: a block of theirs is not made by
/// the operator as it stands.
static bool canSplitMore(Operation *op, const ShardingRule &own) {
  return own.isReplicated() &&
         op->getName().getStringRef() == "stablehlo.custom_call";
}

/// A rule fits its operator; where the operator knows its loops, it restricts
/// what that allows.
static LogicalResult verifyRule(Operation *op, NamedAttribute attr) {
  auto carried = dyn_cast<RuleAttr>(attr.getValue());
  if (!carried) {
    return op->emitOpError()
           << "'" << kRuleAttrName << "' must be a sharding rule, not "
           << attr.getValue();
  }
  ShardingRule rule = carried.getRule();
  if (!rule.resolveSizes(op)) {
    return op->emitOpError()
           << "'" << kRuleAttrName << "' has factors whose size no shape gives";
  }
  if (failed(rule.verify(op))) {
    return failure();
  }
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface) {
    return success();
  }
  ShardingRule own = interface.getShardingRule();
  bool splitsNothing = rule.isReplicated() && rule.linearOperands.empty();
  if (!splitsNothing && !canSplitMore(op, own) && !rule.isRestrictionOf(own)) {
    return op->emitOpError()
           << "'" << kRuleAttrName
           << "' allows what the operator's own rule does not: it may only "
              "replicate factors and leave out linear operands of "
           << RuleAttr::get(op->getContext(), own);
  }
  return success();
}

static LogicalResult verifyStrategy(Operation *op, NamedAttribute attr) {
  auto strategy = dyn_cast<StrategyAttr>(attr.getValue());
  if (!strategy) {
    return op->emitOpError() << "'" << kStrategyAttrName
                             << "' must be a strategy, not " << attr.getValue();
  }
  MeshAttr mesh = strategy.getAxes().empty() ? MeshAttr() : getMesh(op);
  if (mesh && strategy.getAxes().size() > mesh.getNumAxes()) {
    return op->emitOpError()
           << "'" << kStrategyAttrName << "' uses mesh axis "
           << strategy.getAxes().size() - 1 << ", the mesh has "
           << mesh.getNumAxes() << " axes";
  }
  return success();
}

static LogicalResult verifyFollows(Operation *op, NamedAttribute attr) {
  if (failed(verifyInteger([&] { return op->emitOpError(); }, attr, 0))) {
    return failure();
  }
  int64_t operand = cast<IntegerAttr>(attr.getValue()).getInt();
  if (operand >= op->getNumOperands()) {
    return op->emitOpError() << "'" << kFollowsAttrName << "' names operand "
                             << operand << " of the " << op->getNumOperands();
  }
  return success();
}

static LogicalResult verifyRole(Operation *op, NamedAttribute attr) {
  auto role = dyn_cast<StringAttr>(attr.getValue());
  if (!role || !llvm::is_contained(
                   {StringRef(kLeaderRole), StringRef(kFollowerRole),
                    StringRef(kRematerializedRole), StringRef(kReplicatedRole)},
                   role.getValue())) {
    return op->emitOpError()
           << "'" << kRoleAttrName << "' must be \"" << kLeaderRole << "\", \""
           << kFollowerRole << "\", \"" << kRematerializedRole << "\" or \""
           << kReplicatedRole << "\", not " << attr.getValue();
  }
  return success();
}

static LogicalResult verifyProductRing(Operation *op, NamedAttribute attr) {
  auto side = dyn_cast<StringAttr>(attr.getValue());
  bool isProduct = op->getName().getStringRef() == "stablehlo.dot_general";
  if (!side || !llvm::is_contained({"lhs", "rhs", "result"}, side.getValue())) {
    return op->emitOpError() << "'" << kProductRingAttrName
                             << "' must be \"lhs\", \"rhs\" or \"result\", not "
                             << attr.getValue();
  }
  return verifyPlace([&] { return op->emitOpError(); }, attr, isProduct,
                     "a dot_general");
}

static LogicalResult verifyPartialEdges(Operation *op, NamedAttribute attr) {
  auto numbers = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
  auto dataFlow = dyn_cast<DataFlowOpInterface>(op);
  if (!numbers || !dataFlow) {
    return op->emitOpError()
           << "'" << kPartialEdgesAttrName
           << "' must be an array of i64 on an operator through whose regions "
              "data flows";
  }
  int64_t numEdges = DataFlowEdges(dataFlow).size();
  for (int64_t number : numbers.asArrayRef()) {
    if (number < 0 || number >= numEdges) {
      return op->emitOpError()
             << "'" << kPartialEdgesAttrName << "' names edge " << number
             << ", there are " << numEdges;
    }
  }
  return success();
}

/// What a strategy is chosen from, and what is chosen; nothing for other
/// attributes.
static std::optional<LogicalResult> verifyPlanned(Operation *op,
                                                  NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  if (name == kOperandsAttrName) {
    return verifyShardings(op, attr, op->getOperands());
  }
  if (name == kResultsAttrName) {
    return verifyShardings(op, attr, op->getResults());
  }
  if (name == kStrategyAttrName) {
    return verifyStrategy(op, attr);
  }
  if (name == kRuleAttrName) {
    return verifyRule(op, attr);
  }
  if (name == kRoleAttrName) {
    return verifyRole(op, attr);
  }
  if (name == kFollowsAttrName) {
    return verifyFollows(op, attr);
  }
  if (name == kPartialEdgesAttrName) {
    return verifyPartialEdges(op, attr);
  }
  if (name == kProductRingAttrName) {
    return verifyProductRing(op, attr);
  }
  return std::nullopt;
}

LogicalResult AlpaDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  if (std::optional<LogicalResult> planned = verifyPlanned(op, attr)) {
    return *planned;
  }
  StringRef name = attr.getName().getValue();
  auto emit = [&] { return op->emitOpError(); };
  if (name == kLayerAttrName || name == kPhaseAttrName) {
    return verifyInteger(emit, attr, 0);
  }
  if (name == kOnceAttrName) {
    return verifyKind<UnitAttr>(emit, attr, "unit");
  }
  if (name == kExplicitPaddingAttrName) {
    bool isGradient =
        op->getName().getStringRef() == "stablehlo.select_and_scatter";
    return success(
        succeeded(verifyKind<UnitAttr>(emit, attr, "unit")) &&
        succeeded(verifyPlace(emit, attr, isGradient, "a select_and_scatter")));
  }
  if (name == kMeshAttrName) {
    bool isModule = isa<ModuleOp>(op);
    return success(succeeded(verifyKind<MeshAttr>(emit, attr, "a mesh")) &&
                   succeeded(verifyPlace(emit, attr, isModule, "a module")));
  }
  if (name == kTripCountAttrName) {
    bool isLoop = op->getNumRegions() > 0;
    return success(succeeded(verifyInteger(emit, attr, 0)) &&
                   succeeded(verifyPlace(emit, attr, isLoop, "a loop")));
  }
  if (name == kBarrierAttrName) {
    bool isPart = op->getNumOperands() == 1 &&
                  op->getOperandTypes() == op->getResultTypes();
    return success(
        succeeded(verifyInteger(emit, attr, 0)) &&
        succeeded(verifyPlace(emit, attr, isPart, "a part of a barrier")));
  }
  if (name == kMicroBatchesAttrName) {
    bool isFunction = isa<FunctionOpInterface>(op);
    return success(
        succeeded(verifyInteger(emit, attr, 1)) &&
        succeeded(verifyPlace(emit, attr, isFunction, "a function")));
  }
  return emit() << "'" << name << "' is no attribute of an operator";
}

//===----------------------------------------------------------------------===//
// Attributes of arguments and results
//===----------------------------------------------------------------------===//

/// The sharding of an argument or a result of a function.
static LogicalResult verifyBoundary(Operation *op, NamedAttribute attr,
                                    Type value) {
  auto sharding = dyn_cast<ShardingAttr>(attr.getValue());
  if (!sharding) {
    return op->emitOpError() << "'" << kShardingAttrName << "' is no sharding";
  }
  auto type = dyn_cast<RankedTensorType>(value);
  return type ? verifySharding(op, "'alpa.sharding'", sharding, type)
              : success();
}

/// Numbers that say what arguments and results of a stage are.
static bool isKindOfBoth(StringRef name) {
  return name == kTransferAttrName || name == kLocalAttrName ||
         name == kAccumulatorAttrName;
}

LogicalResult AlpaDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned argument,
                                                    NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function) {
    return success();
  }
  StringRef name = attr.getName().getValue();
  auto emit = [&] { return op->emitOpError(); };
  if (name == kShardingAttrName) {
    return verifyBoundary(op, attr, function.getArgumentTypes()[argument]);
  }
  if (name == kOnceAttrName || name == kPlacedAttrName) {
    return verifyKind<UnitAttr>(emit, attr, "unit");
  }
  if (name == kAliasAttrName) {
    if (failed(verifyInteger(emit, attr, 0))) {
      return failure();
    }
    int64_t result = cast<IntegerAttr>(attr.getValue()).getInt();
    return result < function.getNumResults()
               ? success()
               : LogicalResult(emit()
                               << "'" << name << "' of argument " << argument
                               << " names result " << result << " of the "
                               << function.getNumResults());
  }
  if (isKindOfBoth(name) || name == kInputAttrName || name == kBatchAttrName ||
      name == kMicroBatchAttrName) {
    return verifyInteger(emit, attr, 0);
  }
  return emit() << "'" << name << "' is no attribute of an argument";
}

LogicalResult AlpaDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                       unsigned result,
                                                       NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function) {
    return success();
  }
  StringRef name = attr.getName().getValue();
  auto emit = [&] { return op->emitOpError(); };
  if (name == kShardingAttrName) {
    return verifyBoundary(op, attr, function.getResultTypes()[result]);
  }
  if (name == kOnceAttrName || name == kPlacedAttrName) {
    return verifyKind<UnitAttr>(emit, attr, "unit");
  }
  if (isKindOfBoth(name) || name == kOutputAttrName) {
    return verifyInteger(emit, attr, 0);
  }
  return emit() << "'" << name << "' is no attribute of a result";
}
