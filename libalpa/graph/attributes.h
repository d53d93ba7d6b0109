#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace alpa {

using AttributeValue = std::variant<std::int64_t, double, std::string>;

/// The settings of one node ("epsilon", "equation", ...), sorted by name. A name that is absent where an
/// operator asks for it without a default is our own bug, so it asserts.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> values);

  void set(const std::string& name, AttributeValue value);
  void erase(std::string_view name);  ///< if it is there
  bool has(std::string_view name) const { return find(name) != nullptr; }

  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t default_value) const;
  double number(std::string_view name) const;  ///< also reads integers
  double number(std::string_view name, double default_value) const;
  const std::string& text(std::string_view name) const;

  const std::vector<std::pair<std::string, AttributeValue>>& all() const { return values_; }
  std::string to_string() const;  ///< "causal=1 equation='b s k, k n -> b s n'"; "" when empty
  bool operator==(const Attributes&) const = default;

 private:
  const AttributeValue* find(std::string_view name) const;
  std::vector<std::pair<std::string, AttributeValue>> values_;
};

}  // namespace alpa
