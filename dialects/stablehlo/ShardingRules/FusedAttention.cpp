//===- FusedAttention.cpp - cuDNN's attention kernels ---------------------===//
//
// out[b,h,t,v] = softmax(scale * q[b,t,h,d] k[b,s,h,d] + bias[b,h,t,s])
// v[b,s,h,v] and its gradients, as JAX calls them. Batches and heads are
// independent of each other. A head of keys and values serves a group of heads
// of queries:
//   heads of queries = (group, head of the group)
// The configuration of a call holds its sizes, and what cannot be cut: random
// numbers that count through the whole tensor, and offsets into it.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Kernels.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <array>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::Factor;
using alpa::FactorKind;
using alpa::ShardingRule;
using alpa::TensorFactors;
namespace json = llvm::json;

namespace {

constexpr StringRef kConfig = "cudnn_fmha_backend_config";
constexpr StringRef kScores = "intermediate_tensor_shape";

/// Loops of attention; `Nothing` is that of the workspace, which has no bytes
/// before XLA has found how many it takes: all devices have the same.
enum Loop { Batch, Group, Member, Query, Key, Depth, ValueDepth, Nothing };
constexpr unsigned kNumLoops = Nothing + 1;

/// The loops of every dimension of a tensor.
using Loops = SmallVector<SmallVector<Loop, 4>, 4>;

struct Attention {
  bool isBackward = false;
  bool hasBias = false;
  /// Whether heads stand in front of the sequence in what the caller hands in
  /// and gets: BNTH, otherwise BTNH.
  bool areHeadsFirst = false;
  std::array<int64_t, kNumLoops> sizes = {};
  std::array<FactorKind, kNumLoops> kinds = {};
  SmallVector<Loops> operands, results;
  double flops = 0;
};

/// Whether it is one of the kernels, and which; dropout draws by the position
/// in the whole tensor, and scales in 8 bits are those of all of its elements.
std::optional<Attention> readTarget(StringRef target) {
  Attention found;
  if (!target.consume_front("__cudnn$fmha")) {
    return std::nullopt;
  }
  found.hasBias = target.consume_front("ScaleBias");
  if (!target.consume_front("Softmax")) {
    return std::nullopt;
  }
  found.isBackward = target.consume_front("Backward");
  return target.empty() ? std::optional(found) : std::nullopt;
}

/// The configuration of a call, as JAX writes it.
std::optional<json::Value> parseConfig(CustomCallOp call) {
  auto text = dyn_cast_or_null<StringAttr>(call.getBackendConfigAttr());
  if (!text) {
    return std::nullopt;
  }
  llvm::Expected<json::Value> parsed = json::parse(text.getValue());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return std::nullopt;
  }
  return std::move(*parsed);
}

json::Object *findConfig(json::Value &config) {
  json::Object *root = config.getAsObject();
  return root ? root->getObject(kConfig) : nullptr;
}

/// Batch, heads, queries and keys.
std::optional<std::array<int64_t, 4>> readSizes(const json::Object &config) {
  const json::Object *scores = config.getObject(kScores);
  const json::Array *dims = scores ? scores->getArray("dimensions") : nullptr;
  if (!dims || dims->size() != 4) {
    return std::nullopt;
  }
  std::array<int64_t, 4> sizes;
  for (auto [dim, size] : llvm::zip_equal(*dims, sizes)) {
    std::optional<StringRef> text = dim.getAsString();
    if (!text || text->getAsInteger(10, size)) {
      return std::nullopt;
    }
  }
  return sizes;
}

/// Heads are a dimension of the operands of the product that gives the scores.
std::optional<bool> readAreHeadsFirst(const json::Object &config,
                                      bool isBackward) {
  const json::Object *product =
      config.getObject(isBackward ? "bmm2_grad_gemm2_dot_dimension_numbers"
                                  : "bmm1_dot_dimension_numbers");
  const json::Array *batch =
      product ? product->getArray("lhs_batch_dimensions") : nullptr;
  if (!batch || batch->size() != 2) {
    return std::nullopt;
  }
  std::optional<StringRef> heads = (*batch)[1].getAsString();
  if (!heads || (*heads != "1" && *heads != "2")) {
    return std::nullopt;
  }
  return *heads == "1";
}

/// Whether blocks of operands are all that blocks of results are made of. A
/// slope of a linear bias (ALiBi) belongs to the number of its head; packed
/// sequences and pages are found by offsets into the whole.
bool isBlockwise(const json::Object &config) {
  std::optional<StringRef> mask = config.getString("mask_type");
  return mask &&
         llvm::is_contained({"NO_MASK", "PADDING", "CAUSAL", "PADDING_CAUSAL"},
                            *mask) &&
         config.getNumber("dropout_rate").value_or(0) == 0 &&
         config.getInteger("max_seg_per_batch").value_or(1) == 1 &&
         !config.getBoolean("is_paged_attention").value_or(false);
}

/// The tensors of a call, in the order of `_dot_product_attention_*_lowering`
/// of JAX: q, k, v, bias?, lengths? -> out, statistics?, workspace, and
/// q, k, v, statistics, dout, bias?, out, lengths? -> dq, dk, dv, dbias?,
/// workspace. Results have their heads first.
void addTensors(Attention &attention, const Loops &bias, unsigned numLengths,
                bool hasStatistics) {
  auto tensor = [&](ArrayRef<Loop> heads, Loop sequence, Loop depth,
                    bool areHeadsFirst) {
    SmallVector<Loop, 4> headDim(heads);
    return areHeadsFirst ? Loops{{Batch}, headDim, {sequence}, {depth}}
                         : Loops{{Batch}, {sequence}, headDim, {depth}};
  };
  bool first = attention.areHeadsFirst;
  Loops statistics = {{Batch}, {Group, Member}, {Query}};
  auto &operands = attention.operands, &results = attention.results;
  operands = {tensor({Group, Member}, Query, Depth, first),
              tensor({Group}, Key, Depth, first),
              tensor({Group}, Key, ValueDepth, first)};
  Loops out = tensor({Group, Member}, Query, ValueDepth, first);
  if (attention.isBackward) {
    operands.append({statistics, out});
  }
  if (attention.hasBias) {
    operands.push_back(bias);
  }
  if (attention.isBackward) {
    operands.push_back(out);
    results = {tensor({Group, Member}, Query, Depth, true),
               tensor({Group}, Key, Depth, true),
               tensor({Group}, Key, ValueDepth, true)};
    if (attention.hasBias) {
      results.push_back(bias);
    }
  } else {
    results = {tensor({Group, Member}, Query, ValueDepth, true)};
    if (hasStatistics) {
      results.push_back(statistics);
    }
  }
  operands.append(numLengths, {{Batch}});
  results.push_back({{Nothing}});
}

ArrayRef<int64_t> getShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() ? tensor.getShape()
                                           : ArrayRef<int64_t>();
}

/// Loops of a bias, of which a batch or the heads may have one in common.
Loops getBiasLoops(const Attention &attention, ArrayRef<int64_t> shape) {
  Loops loops = {{}, {}, {Query}, {Key}};
  if (shape.size() == 4 && shape[0] == attention.sizes[Batch]) {
    loops[0] = {Batch};
  }
  if (shape.size() == 4 &&
      shape[1] == attention.sizes[Group] * attention.sizes[Member]) {
    loops[1] = {Group, Member};
  }
  return loops;
}

/// Whether tensors have the sizes that their loops say.
bool fits(TypeRange types, ArrayRef<Loops> tensors,
          const std::array<int64_t, kNumLoops> &sizes) {
  if (types.size() != tensors.size()) {
    return false;
  }
  for (auto [type, loops] : llvm::zip_equal(types, tensors)) {
    ArrayRef<int64_t> shape = getShape(type);
    if (shape.size() != loops.size()) {
      return false;
    }
    for (auto [size, dim] : llvm::zip_equal(shape, loops)) {
      int64_t product = 1;
      for (Loop loop : dim) {
        product *= sizes[loop];
      }
      if (product != size) {
        return false;
      }
    }
  }
  return true;
}

/// What is a sum over a loop in one result and has the loop in another: the
/// gradients of keys and values over the heads of a group, that of a bias over
/// what has it in common. No strategy of one operator is both. The last result
/// is the workspace.
void findKinds(Attention &attention) {
  attention.kinds.fill(FactorKind::Replicated);
  for (Loop loop : {Batch, Group, Member}) {
    auto results = ArrayRef(attention.results).drop_back();
    bool isInAll = llvm::all_of(results, [&](const Loops &tensor) {
      return llvm::any_of(tensor, [&](const auto &dim) {
        return llvm::is_contained(dim, loop);
      });
    });
    if (isInAll) {
      attention.kinds[loop] = FactorKind::Parallel;
    }
  }
}

/// Two products forward, and five backward, where scores are made again. Of a
/// causal mask half of the scores are left.
double getFlops(const Attention &attention, StringRef mask) {
  const auto &sizes = attention.sizes;
  double scores = mask.contains("CAUSAL") ? 0.5 : 1;
  for (Loop loop : {Batch, Group, Member, Query, Key}) {
    scores *= static_cast<double>(sizes[loop]);
  }
  auto depth = static_cast<double>(sizes[Depth]);
  auto valueDepth = static_cast<double>(sizes[ValueDepth]);
  return 2 * scores *
         (attention.isBackward ? 3 * depth + 2 * valueDepth
                               : depth + valueDepth);
}

/// Sizes of all loops, from the configuration and the shapes; false if those do
/// not agree.
bool readLoops(Attention &attention, CustomCallOp call,
               const std::array<int64_t, 4> &scores) {
  ArrayRef<int64_t> key = getShape(call->getOperand(1).getType());
  ArrayRef<int64_t> value = getShape(call->getOperand(2).getType());
  if (key.size() != 4 || value.size() != 4) {
    return false;
  }
  auto [batch, heads, queries, keys] = scores;
  int64_t groups = key[attention.areHeadsFirst ? 1 : 2];
  if (groups < 1 || heads % groups != 0) {
    return false;
  }
  attention.sizes = {batch, groups, heads / groups, queries,
                     keys,  key[3], value[3],       0};
  return llvm::all_of(ArrayRef(attention.sizes).drop_back(),
                      [](int64_t size) { return size > 0; });
}

std::optional<Attention> readAttention(CustomCallOp call) {
  std::optional<Attention> attention = readTarget(call.getCallTargetName());
  std::optional<json::Value> parsed = parseConfig(call);
  const json::Object *config = parsed ? findConfig(*parsed) : nullptr;
  if (!attention || !config || !isBlockwise(*config)) {
    return std::nullopt;
  }
  std::optional<std::array<int64_t, 4>> scores = readSizes(*config);
  std::optional<bool> areHeadsFirst =
      readAreHeadsFirst(*config, attention->isBackward);
  unsigned numFixed =
      (attention->isBackward ? 6 : 3) + (attention->hasBias ? 1 : 0);
  if (!scores || !areHeadsFirst || call->getNumOperands() < numFixed) {
    return std::nullopt;
  }
  attention->areHeadsFirst = *areHeadsFirst;
  if (!readLoops(*attention, call, *scores)) {
    return std::nullopt;
  }
  unsigned position = attention->isBackward ? 5 : 3;
  Loops bias;
  if (attention->hasBias) {
    bias = getBiasLoops(*attention,
                        getShape(call->getOperand(position).getType()));
  }
  addTensors(*attention, bias, call->getNumOperands() - numFixed,
             call->getNumResults() == 3);
  if (!fits(call->getOperandTypes(), attention->operands, attention->sizes) ||
      !fits(call->getResultTypes(), attention->results, attention->sizes)) {
    return std::nullopt;
  }
  findKinds(*attention);
  attention->flops = getFlops(*attention, *config->getString("mask_type"));
  return attention;
}

} // namespace

std::optional<ShardingRule> stablehlo::getAttentionRule(CustomCallOp call) {
  std::optional<Attention> attention = readAttention(call);
  if (!attention) {
    return std::nullopt;
  }
  ShardingRule rule;
  std::array<std::optional<unsigned>, kNumLoops> factors;
  for (unsigned loop = 0; loop < kNumLoops; ++loop) {
    // A loop of one iteration needs no factor.
    if (attention->sizes[loop] != 1) {
      factors[loop] =
          rule.addFactor(attention->sizes[loop], attention->kinds[loop]);
    }
  }
  auto add = [&](ArrayRef<Loops> tensors, auto &to) {
    for (const Loops &loops : tensors) {
      TensorFactors tensor(loops.size());
      for (auto [dim, made] : llvm::zip_equal(loops, tensor)) {
        for (Loop loop : dim) {
          if (factors[loop]) {
            made.push_back(*factors[loop]);
          }
        }
      }
      to.push_back(tensor);
    }
  };
  add(attention->operands, rule.operands);
  add(attention->results, rule.results);
  rule.flops = attention->flops;
  return rule;
}

FailureOr<SmallVector<Value>>
stablehlo::localizeAttention(CustomCallOp call, alpa::LocalContext &context) {
  std::optional<Attention> attention = readAttention(call);
  SmallVector<Value> results = alpa::cloneLocal(call, context);
  std::optional<json::Value> parsed = parseConfig(call);
  json::Object *config = parsed ? findConfig(*parsed) : nullptr;
  if (!attention || !config) {
    // Whole, as it was.
    return results;
  }
  ArrayRef<int64_t> query = getShape(context.getOperands().front().getType());
  json::Array &dims = *config->getObject(kScores)->getArray("dimensions");
  dims[0] = llvm::itostr(query[0]);
  dims[1] = llvm::itostr(query[attention->areHeadsFirst ? 1 : 2]);
  std::string text;
  llvm::raw_string_ostream(text) << *parsed;
  auto local = cast<CustomCallOp>(results.front().getDefiningOp());
  local.setBackendConfigAttr(StringAttr::get(call.getContext(), text));
  return results;
}
