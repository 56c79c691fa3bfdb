//===- BooleanElements.cpp - Booleans in the text that is exchanged -------===//

#include "cpp/capi/BooleanElements.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using llvm::StringRef;

/// How many elements `"> : tensor<11x11xi1>` says behind the bytes; 0 of other
/// elements.
static uint64_t getNumBooleans(StringRef text) {
  if (!text.consume_front("\"> : tensor<")) {
    return 0;
  }
  uint64_t count = 1;
  while (!text.starts_with("i1>")) {
    uint64_t size = 0;
    bool overflows = false;
    if (text.consumeInteger(10, size) || !text.consume_front("x")) {
      return 0;
    }
    count = llvm::SaturatingMultiply(count, size, &overflows);
    if (overflows) {
      return 0;
    }
  }
  return count;
}

using Rewriter = llvm::function_ref<void(StringRef digits, uint64_t numElements,
                                         std::string &out)>;

/// Rewrites the digits of each constant of booleans.
static std::string rewriteBooleans(StringRef text, Rewriter rewrite) {
  constexpr StringRef kBegin = "dense<\"0x";
  std::string out;
  for (size_t at = text.find(kBegin); at != StringRef::npos;
       at = text.find(kBegin)) {
    out += text.take_front(at + kBegin.size());
    text = text.drop_front(at + kBegin.size());
    StringRef digits = text.take_while(llvm::isHexDigit);
    text = text.drop_front(digits.size());
    if (uint64_t count = getNumBooleans(text)) {
      rewrite(digits, count, out);
    } else {
      out += digits;
    }
  }
  out += text;
  return out;
}

static uint8_t getByte(StringRef digits, uint64_t index) {
  return llvm::hexFromNibbles(digits[2 * index], digits[2 * index + 1]);
}

static void addByte(uint8_t byte, std::string &out) {
  out += llvm::hexdigit(byte >> 4);
  out += llvm::hexdigit(byte & 15);
}

std::string mlir::alpa::packBooleans(StringRef text) {
  return rewriteBooleans(
      text, [](StringRef digits, uint64_t count, std::string &out) {
        if (digits.size() % 2 != 0 || digits.size() / 2 != count) {
          out += digits;
          return;
        }
        for (uint64_t begin = 0; begin < count; begin += 8) {
          uint8_t byte = 0;
          for (uint64_t bit = 0; bit < 8 && begin + bit < count; ++bit) {
            byte |= (getByte(digits, begin + bit) != 0) << bit;
          }
          addByte(byte, out);
        }
      });
}

std::string mlir::alpa::unpackBooleans(StringRef text) {
  return rewriteBooleans(
      text, [](StringRef digits, uint64_t count, std::string &out) {
        if (digits.size() != 2 * llvm::divideCeil(count, uint64_t(8))) {
          out += digits;
          return;
        }
        for (uint64_t index = 0; index < count; ++index) {
          addByte(getByte(digits, index / 8) >> (index % 8) & 1, out);
        }
      });
}
