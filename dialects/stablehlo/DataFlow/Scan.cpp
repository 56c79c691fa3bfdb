//===- Scan.cpp - The region of chlo.scan ---------------------------------===//
//
// By name and not by class: upstream's CHLO has had the operator only since
// 2026, and the project is built against older ones, too.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/DataFlow/Scan.h"

#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;

namespace {

/// `outputs, carries = scan(inputs, inits)`: the body takes a slice of each
/// input, and the carries; it returns a slice of each output, and the carries.
struct ScanDataFlow : alpa::DataFlowOpInterface::FallbackModel<ScanDataFlow> {
  SmallVector<alpa::DataFlowEdge> getDataFlowEdges(Operation *op) const {
    SmallVector<alpa::DataFlowEdge> edges;
    for (unsigned input = 0; input < getNumInputs(op); ++input) {
      edges.push_back(getInput(op, input));
    }
    unsigned numOutputs = getNumOutputs(op);
    for (unsigned output = 0; output < numOutputs; ++output) {
      alpa::DataFlowEdge edge;
      edge.sources = {&getReturn(op)->getOpOperand(output)};
      edge.targets = {op->getResult(output)};
      edge.sliced = getDimension(op);
      edges.push_back(std::move(edge));
    }
    for (unsigned index = getNumInputs(op); index < op->getNumOperands();
         ++index) {
      edges.push_back(getCarry(op, index));
    }
    return edges;
  }

  alpa::DataFlowEdge getDataFlowEdge(Operation *op,
                                     BlockArgument argument) const {
    unsigned index = argument.getArgNumber();
    return index < getNumInputs(op) ? getInput(op, index) : getCarry(op, index);
  }

  std::optional<double> getRegionRuns(Operation *op) const {
    unsigned dimension = getDimension(op);
    Value whole = getNumInputs(op) != 0 ? op->getOperand(0) : op->getResult(0);
    auto type = dyn_cast<RankedTensorType>(whole.getType());
    if (!type || dimension >= type.getRank() || type.isDynamicDim(dimension)) {
      return std::nullopt;
    }
    return static_cast<double>(type.getDimSize(dimension));
  }

  Operation *cloneWithTypes(Operation *op, OpBuilder &builder,
                            ValueRange operands, TypeRange resultTypes) const {
    return alpa::cloneWithEmptyRegions(op, builder, operands, resultTypes);
  }

  /// One carry more. Where slices may be combined in any order there is none
  /// that only hands something on.
  Operation *addDataFlowEdge(Operation *op, OpBuilder &builder,
                             Value initial) const {
    auto anyOrder = op->getAttrOfType<BoolAttr>("is_associative");
    if (anyOrder && anyOrder.getValue()) {
      return nullptr;
    }
    Type type = initial.getType();
    Operation *exit = getReturn(op);
    exit->insertOperands(exit->getNumOperands(),
                         op->getRegion(0).addArgument(type, op->getLoc()));
    SmallVector<Value> operands(op->getOperands());
    operands.push_back(initial);
    Operation *made = alpa::replaceWithMoreResults(op, builder, operands, type);
    addCarry(made, "operandSegmentSizes");
    addCarry(made, "resultSegmentSizes");
    return made;
  }

private:
  static unsigned getDimension(Operation *op) {
    return op->getAttrOfType<IntegerAttr>("dimension").getInt();
  }
  static unsigned getNumInputs(Operation *op) {
    return op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes")[0];
  }
  static unsigned getNumOutputs(Operation *op) {
    return op->getAttrOfType<DenseI32ArrayAttr>("resultSegmentSizes")[0];
  }
  static void addCarry(Operation *op, StringRef segments) {
    SmallVector<int32_t> sizes(
        op->getAttrOfType<DenseI32ArrayAttr>(segments).asArrayRef());
    ++sizes[1];
    op->setAttr(segments, DenseI32ArrayAttr::get(op->getContext(), sizes));
  }
  static Operation *getReturn(Operation *op) {
    return op->getRegion(0).front().getTerminator();
  }

  static alpa::DataFlowEdge getInput(Operation *op, unsigned index) {
    alpa::DataFlowEdge edge;
    edge.sources = {&op->getOpOperand(index)};
    edge.targets = {op->getRegion(0).getArgument(index)};
    edge.sliced = getDimension(op);
    return edge;
  }

  static alpa::DataFlowEdge getCarry(Operation *op, unsigned operand) {
    unsigned result = operand - getNumInputs(op) + getNumOutputs(op);
    alpa::DataFlowEdge edge;
    edge.sources = {&op->getOpOperand(operand),
                    &getReturn(op)->getOpOperand(result)};
    edge.targets = {op->getRegion(0).getArgument(operand),
                    op->getResult(result)};
    return edge;
  }
};

} // namespace

void stablehlo::attachScanDataFlow(MLIRContext &context) {
  if (auto scan = RegisteredOperationName::lookup("chlo.scan", &context)) {
    scan->attachInterface<ScanDataFlow>();
  }
}
