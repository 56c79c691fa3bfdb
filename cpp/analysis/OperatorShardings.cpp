//===- OperatorShardings.cpp - The plan of one operator -------------------===//

#include "cpp/analysis/OperatorShardings.h"

namespace mlir::alpa {

OperatorRows getReplicatedRows(Operation *op, unsigned numAxes) {
  ShardingRow replicated(numAxes, kReplicated);
  OperatorRows rows;
  rows.operands.assign(op->getNumOperands(), replicated);
  rows.results.assign(op->getNumResults(), replicated);
  return rows;
}

static OperatorRows getManualRows(ManualOp op) {
  OperatorRows rows;
  for (unsigned index = 0; index < op->getNumOperands(); ++index) {
    rows.operands.push_back(op.getOperandRow(index));
  }
  for (unsigned index = 0; index < op->getNumResults(); ++index) {
    rows.results.push_back(op.getResultRow(index));
  }
  return rows;
}

/// Why a strategy is none of a rule's; empty if it is one.
static std::string findFault(const ShardingRule &rule, ArrayRef<int> factorRow,
                             Shares shares) {
  for (int entry : factorRow) {
    if (entry <= kLinearSet) {
      unsigned set = kLinearSet - entry;
      if (set >= rule.linearOperands.size()) {
        return "names linear(" + std::to_string(set) + "), the rule has " +
               std::to_string(rule.linearOperands.size()) + " such sets";
      }
      if (!holdsFor(rule, set, shares)) {
        return "names linear(" + std::to_string(set) +
               "), which holds for micro-batches only";
      }
    } else if (entry != kNoFactor) {
      unsigned factor = entry;
      if (factor >= rule.factors.size()) {
        return "names factor " + getFactorName(factor) + ", the rule has " +
               std::to_string(rule.factors.size());
      }
      if (rule.factors[factor].kind == FactorKind::Replicated) {
        return "splits factor " + getFactorName(factor) +
               ", which is replicated";
      }
      if (rule.factors[factor].hasExchange() &&
          shares == Shares::OfMicroBatches) {
        return "splits factor " + getFactorName(factor) +
               (rule.factors[factor].isOrdered() ? ", which is ordered"
                                                 : ", which is windowed") +
               ": micro-batches exchange nothing";
      }
    }
  }
  return "";
}

/// The strategy that the written shardings seem to follow from.
static std::string suggestStrategy(Operation *op, const ShardingRule &rule,
                                   MeshAttr mesh, Shares shares) {
  OperatorRows rows;
  auto append = [&](StringRef name, auto &list) {
    if (auto shardings = op->getAttrOfType<ArrayAttr>(name)) {
      for (auto sharding : shardings.getAsRange<ShardingAttr>()) {
        list.push_back(getRow(sharding, mesh.getNumAxes()));
      }
    }
  };
  append(kOperandsAttrName, rows.operands);
  append(kResultsAttrName, rows.results);
  auto factorRow = findFactorRow(rule, rows, mesh.getSizes(), shares);
  std::string text;
  if (factorRow) {
    llvm::raw_string_ostream os(text);
    os << "its shardings are those of "
       << StrategyAttr::getOf(op->getContext(), *factorRow);
  }
  return factorRow ? text : "its shardings follow from none";
}

FailureOr<OperatorRows> getPlannedRows(Operation *op, MeshAttr mesh,
                                       Shares shares) {
  if (auto manual = dyn_cast<ManualOp>(op)) {
    if (manual.getMesh() != mesh) {
      return manual.emitOpError() << "runs on another mesh than " << mesh;
    }
    return getManualRows(manual);
  }
  std::optional<ShardingRule> rule = getShardingRule(op);
  if (!rule) {
    return getReplicatedRows(op, mesh.getNumAxes());
  }
  if (failed(rule->verify(op))) {
    return failure();
  }
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttrName);
  if (!strategy) {
    return op->emitOpError()
           << "has no '" << kStrategyAttrName
           << "': " << suggestStrategy(op, *rule, mesh, shares);
  }
  FactorRow factorRow = strategy.getRow(mesh.getNumAxes());
  std::string fault = findFault(*rule, factorRow, shares);
  std::optional<OperatorRows> rows;
  if (fault.empty()) {
    rows = getOperatorRows(*rule, factorRow, mesh.getSizes());
    fault = "does not divide its factors into blocks";
  }
  if (!rows) {
    return op->emitOpError() << "strategy " << strategy << " " << fault << ": "
                             << RuleAttr::get(op->getContext(), *rule);
  }
  return std::move(*rows);
}

SmallVector<ShardingAttr> getReturnedShardings(DataFlowOpInterface op,
                                               const DataFlowEdges &edges,
                                               Operation *terminator) {
  return llvm::map_to_vector(
      terminator->getOpOperands(), [&](OpOperand &operand) {
        std::optional<unsigned> edge = edges.find(operand);
        return edge ? getEdgeSharding(op, edges[*edge], /*isInside=*/true)
                    : getReplicatedSharding(operand.get());
      });
}

std::optional<FactorRow> findFactorRow(const ShardingRule &rule,
                                       const OperatorRows &rows,
                                       ArrayRef<int64_t> meshShape,
                                       Shares shares) {
  FactorRow factorRow(meshShape.size(), kNoFactor);
  auto merge = [&](ArrayRef<ShardingRow> shardings,
                   ArrayRef<TensorFactors> tensors) {
    for (auto [sharding, tensor] : llvm::zip(shardings, tensors)) {
      FactorRow own =
          getFactorRow(rule, tensor, sharding, meshShape, kNoFactor);
      for (auto [entry, found] : llvm::zip(factorRow, own)) {
        entry = entry == kNoFactor ? found : entry;
      }
    }
  };
  merge(rows.results, rule.results);
  merge(rows.operands, rule.operands);
  for (auto [axis, entry] : llvm::enumerate(factorRow)) {
    auto isPartial = [axis = axis](const ShardingRow &row) {
      return row[axis] == kPartial;
    };
    if (entry != kNoFactor || llvm::none_of(rows.results, isPartial)) {
      continue;
    }
    SmallVector<unsigned, 2> partial;
    for (auto [operand, row] : llvm::enumerate(rows.operands)) {
      if (isPartial(row)) {
        partial.push_back(operand);
      }
    }
    for (auto [index, set] : llvm::enumerate(rule.linearOperands)) {
      if (set == partial && holdsFor(rule, index, shares)) {
        entry = kLinearSet - static_cast<int>(index);
        break;
      }
    }
  }
  std::optional<OperatorRows> made =
      getOperatorRows(rule, factorRow, meshShape);
  bool isMade =
      made && made->operands == rows.operands && made->results == rows.results;
  return isMade ? std::optional(factorRow) : std::nullopt;
}

void setShardings(Operation *op, const OperatorRows &rows) {
  MLIRContext *context = op->getContext();
  auto write = [&](StringRef name, TypeRange types,
                   ArrayRef<ShardingRow> shardings) {
    SmallVector<Attribute> entries;
    for (auto [type, row] : llvm::zip(types, shardings)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      entries.push_back(
          getShardingAttr(context, row, tensor ? tensor.getRank() : 0));
    }
    op->setAttr(name, ArrayAttr::get(context, entries));
  };
  write(kOperandsAttrName, op->getOperandTypes(), rows.operands);
  write(kResultsAttrName, op->getResultTypes(), rows.results);
}

void setStrategy(Operation *op, ArrayRef<int> factorRow) {
  if (hasShardingRule(op)) {
    op->setAttr(kStrategyAttrName,
                StrategyAttr::getOf(op->getContext(), factorRow));
  }
}

void setPlan(Operation *op, const OperatorRows &rows,
             ArrayRef<int64_t> meshShape, Shares shares) {
  setShardings(op, rows);
  std::optional<ShardingRule> rule = getShardingRule(op);
  std::optional<FactorRow> factorRow =
      rule ? findFactorRow(*rule, rows, meshShape, shares) : std::nullopt;
  if (factorRow) {
    setStrategy(op, *factorRow);
  }
}

} // namespace mlir::alpa
