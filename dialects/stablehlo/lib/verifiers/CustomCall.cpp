//===- CustomCall.cpp - verifiers of calls --------------------------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

//===----------------------------------------------------------------------===//
// CustomCallOp
//===----------------------------------------------------------------------===//

/// A layout for each type, that orders its dimensions.
static LogicalResult verifyLayouts(Operation *op, StringRef name,
                                   TypeRange types, ArrayAttr layouts) {
  if (verifyCount(op, (name + " layouts").str(), layouts.size(), types.size())
          .failed()) {
    return failure();
  }
  for (auto [type, attr] : llvm::zip_equal(types, layouts)) {
    auto layout = cast<DenseIntElementsAttr>(attr);
    if (isa<TupleType>(type)) {
      return op->emitOpError()
             << name << " of " << type << " cannot have a layout";
    }
    auto shaped = dyn_cast<ShapedType>(type);
    if (shaped && !shaped.hasRank()) {
      continue;
    }
    int64_t rank = shaped ? shaped.getRank() : 0;
    // A splat's text may have any number of entries.
    bool isOrder = layout.getNumElements() == rank;
    if (isOrder) {
      auto dims =
          llvm::map_to_vector(layout.getValues<APInt>(), [](const APInt &dim) {
            return dim.getSExtValue();
          });
      llvm::sort(dims);
      isOrder = llvm::equal(dims, llvm::seq<int64_t>(0, rank));
    }
    if (!isOrder) {
      return op->emitOpError()
             << name << " layout " << layout << " does not order the " << rank
             << " dimensions of " << type;
    }
  }
  return success();
}

/// The results, or what the one tuple holds that is the result.
static TypeRange getLaidOutTypes(CustomCallOp op) {
  auto tuple = op.getNumResults() == 1
                   ? dyn_cast<TupleType>(op.getResult(0).getType())
                   : TupleType();
  return tuple ? TypeRange(tuple.getTypes()) : TypeRange(op.getResultTypes());
}

/// The part of a type at a path through tuples, or null.
static Type getPart(Type type, ArrayRef<int64_t> path) {
  for (int64_t index : path) {
    auto tuple = dyn_cast<TupleType>(type);
    if (!tuple || index < 0 || index >= static_cast<int64_t>(tuple.size())) {
      return {};
    }
    type = tuple.getType(index);
  }
  return type;
}

static Type getWholeResult(CustomCallOp op) {
  return op.getNumResults() == 1
             ? op.getResult(0).getType()
             : TupleType::get(op.getContext(), op.getResultTypes());
}

/// Each alias names an operand and a part of the results of its type.
static LogicalResult verifyAliases(CustomCallOp op) {
  for (auto alias :
       op.getOutputOperandAliases().getAsRange<OutputOperandAliasAttr>()) {
    if (verifyDim(op, "aliased operand", alias.getOperandIndex(),
                  op.getInputs().size())
            .failed()) {
      return failure();
    }
    Type operand = getPart(op.getInputs()[alias.getOperandIndex()].getType(),
                           alias.getOperandTupleIndices());
    Type result = getPart(getWholeResult(op), alias.getOutputTupleIndices());
    if (!operand || !result) {
      return op.emitOpError() << "has no part " << alias << " of operands and "
                              << "results";
    }
    if (operand != result) {
      return op.emitOpError()
             << "gives a result of " << result << " the memory of " << operand;
    }
  }
  return success();
}

/// The paths to the buffers of a type.
static void findBuffers(Type type, SmallVector<int64_t> &path,
                        SmallVectorImpl<SmallVector<int64_t>> &found) {
  if (isa<MemRefType>(type)) {
    found.push_back(path);
  }
  auto tuple = dyn_cast<TupleType>(type);
  for (size_t index = 0; tuple && index < tuple.size(); ++index) {
    path.push_back(index);
    findBuffers(tuple.getType(index), path, found);
    path.pop_back();
  }
}

/// A buffer that is given back is one that was taken, and only once.
static LogicalResult verifyBuffers(CustomCallOp op) {
  SmallVector<SmallVector<int64_t>> buffers;
  SmallVector<int64_t> path;
  findBuffers(getWholeResult(op), path, buffers);
  auto aliases = llvm::to_vector(
      op.getOutputOperandAliases().getAsRange<OutputOperandAliasAttr>());
  for (ArrayRef<int64_t> buffer : buffers) {
    int64_t count = llvm::count_if(aliases, [&](OutputOperandAliasAttr alias) {
      return alias.getOutputTupleIndices() == buffer;
    });
    if (count != 1) {
      return op.emitOpError()
             << "must give the buffer result at [" << buffer
             << "] one operand's memory, but has " << count << " aliases of it";
    }
  }
  for (auto [index, alias] : llvm::enumerate(aliases)) {
    bool isBuffer = isa<MemRefType>(
        getPart(op.getInputs()[alias.getOperandIndex()].getType(),
                alias.getOperandTupleIndices()));
    bool isRepeated = llvm::any_of(ArrayRef(aliases).drop_front(index + 1),
                                   [&, alias = alias](auto other) {
                                     return other.getOperandIndex() ==
                                                alias.getOperandIndex() &&
                                            other.getOperandTupleIndices() ==
                                                alias.getOperandTupleIndices();
                                   });
    if (isBuffer && isRepeated) {
      return op.emitOpError() << "gives away the buffer operand "
                              << alias.getOperandIndex() << " twice";
    }
  }
  return success();
}

/// The calls that make a buffer, put a tensor into one and take one out.
static LogicalResult verifyBufferCall(CustomCallOp op, bool takes,
                                      bool isToBuffer) {
  if (verifyCount(op, "operands", op.getInputs().size(), takes).failed() ||
      verifyCount(op, "results", op.getNumResults(), 1).failed()) {
    return failure();
  }
  Type result = op.getResult(0).getType();
  if (isa<MemRefType>(result) != isToBuffer) {
    return op.emitOpError()
           << "must give a " << (isToBuffer ? "buffer" : "tensor")
           << ", but got " << result;
  }
  if (!takes) {
    return success();
  }
  Type operand = op.getInputs().front().getType();
  bool isOtherKind =
      isToBuffer ? isa<TensorType>(operand) : isa<MemRefType>(operand);
  if (!isOtherKind || failed(verifyCompatibleShape(operand, result)) ||
      cast<ShapedType>(operand).getElementType() !=
          cast<ShapedType>(result).getElementType()) {
    return op.emitOpError() << "cannot take " << operand << " as " << result;
  }
  return success();
}

LogicalResult CustomCallOp::verify() {
  if (getOperandLayouts().has_value() != getResultLayouts().has_value()) {
    return emitOpError("needs layouts of both operands and results, or none");
  }
  if (getOperandLayouts() &&
      (verifyLayouts(*this, "operand", getOperandTypes(), *getOperandLayouts())
           .failed() ||
       verifyLayouts(*this, "result", getLaidOutTypes(*this),
                     *getResultLayouts())
           .failed())) {
    return failure();
  }
  if (verifyAliases(*this).failed()) {
    return failure();
  }
  bool isTyped = getApiVersion() == CustomCallApiVersion::API_VERSION_TYPED_FFI;
  if (getBackendConfig() &&
      isa<DictionaryAttr>(*getBackendConfig()) != isTyped) {
    return emitOpError() << "backend_config of "
                         << stringifyEnum(getApiVersion()) << " must be a "
                         << (isTyped ? "dictionary" : "string") << ", but got "
                         << *getBackendConfig();
  }
  StringRef target = getCallTargetName();
  if (target == "CreateBuffer") {
    return verifyBufferCall(*this, /*takes=*/false, /*isToBuffer=*/true);
  }
  if (target == "Pin" || target == "Unpin") {
    return verifyBufferCall(*this, /*takes=*/true,
                            /*isToBuffer=*/target == "Pin");
  }
  return verifyBuffers(*this);
}

//===----------------------------------------------------------------------===//
// CompositeOp
//===----------------------------------------------------------------------===//

/// `my_namespace.my_op`.
static bool isNamespacedName(StringRef name) {
  auto [space, rest] = name.split('.');
  auto isWord = [](StringRef word, StringRef others) {
    return !word.empty() && llvm::all_of(word, [&](char character) {
      return llvm::isAlnum(character) || others.contains(character);
    });
  };
  SmallVector<StringRef> words;
  rest.split(words, '.');
  return !space.empty() && llvm::isAlpha(space.front()) && isWord(space, "_") &&
         llvm::all_of(words,
                      [&](StringRef word) { return isWord(word, "_$"); });
}

LogicalResult
CompositeOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // (C1)
  if (!isNamespacedName(getName())) {
    return emitOpError() << "name must be like my_namespace.my_op, but got '"
                         << getName() << "'";
  }
  // (C2)
  auto function = symbolTable.lookupNearestSymbolFrom<func::FuncOp>(
      *this, getDecompositionAttr());
  if (!function) {
    return emitOpError() << getDecompositionAttr() << " is no function";
  }
  // (C3), (C4)
  FunctionType type = function.getFunctionType();
  if (TypeRange(type.getInputs()) != getOperandTypes() ||
      TypeRange(type.getResults()) != getResultTypes()) {
    return emitOpError() << "is of "
                         << FunctionType::get(getContext(), getOperandTypes(),
                                              getResultTypes())
                         << ", its decomposition of " << type;
  }
  return success();
}
