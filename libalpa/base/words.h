#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/constraint.h"

namespace alpa {

/// Throws Error(input): there is no `kind` of that name, and which there are.
[[noreturn]] void refuse_name(const char* kind, const std::string& name,
                              const std::vector<std::string>& known);

/// The value of that name, in a list that has each once. `kind`: what they are, for messages.
template <class Value>
Value value_named(const std::string& name, std::span<const Word<Value>> words, const char* kind) {
  std::vector<std::string> known;
  for (const Word<Value>& word : words) {
    if (word.name == name) return word.value;
    known.emplace_back(word.name);
  }
  refuse_name(kind, name, known);
}

template <class Value>
std::string name_of(const Value& value, std::span<const Word<Value>> words) {
  return std::string(std::ranges::find(words, value, &Word<Value>::value)->name);
}

}  // namespace alpa
