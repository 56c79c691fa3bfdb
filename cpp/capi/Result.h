//===- Result.h - What a call of the C interface produced -------*- C++ -*-===//

#ifndef CPP_CAPI_RESULT_H
#define CPP_CAPI_RESULT_H

#include "cpp/capi/StablehloAlpa.h"
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

struct AlpaResult {
  struct Array {
    std::string name;
    AlpaArrayType type;
    std::vector<char> data;
    size_t rows, columns;
  };
  struct StringList {
    std::string name;
    std::vector<std::string> strings;
  };

  bool failed = false;
  std::string error;
  std::vector<Array> arrays;
  std::vector<StringList> lists;

  template <typename T>
  void addArray(std::string name, const std::vector<T> &values,
                size_t columns = 0) {
    constexpr AlpaArrayType type = std::is_same_v<T, double>    ? ALPA_FLOAT64
                                   : std::is_same_v<T, int64_t> ? ALPA_INT64
                                   : std::is_same_v<T, int32_t> ? ALPA_INT32
                                                                : ALPA_INT8;
    static_assert(type != ALPA_INT8 || sizeof(T) == 1);
    Array array{std::move(name), type, {}, values.size(), columns};
    if (columns != 0) {
      array.rows = values.size() / columns;
    }
    array.data.resize(values.size() * sizeof(T));
    if (!values.empty()) {
      std::memcpy(array.data.data(), values.data(), array.data.size());
    }
    arrays.push_back(std::move(array));
  }

  void addList(std::string name, std::vector<std::string> strings) {
    lists.push_back({std::move(name), std::move(strings)});
  }
};

#endif // CPP_CAPI_RESULT_H
