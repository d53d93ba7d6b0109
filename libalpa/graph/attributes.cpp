#include "libalpa/graph/attributes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

namespace alpa {

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> values) {
  for (const auto& [name, value] : values) set(name, value);
}

void Attributes::set(const std::string& name, AttributeValue value) {
  const auto at = std::lower_bound(values_.begin(), values_.end(), name,
                                   [](const auto& entry, const std::string& n) { return entry.first < n; });
  if (at != values_.end() && at->first == name)
    at->second = std::move(value);
  else
    values_.insert(at, {name, std::move(value)});
}

void Attributes::erase(std::string_view name) {
  std::erase_if(values_, [name](const auto& entry) { return entry.first == name; });
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return &value;
  return nullptr;
}

std::int64_t Attributes::integer(std::string_view name) const {
  const AttributeValue* value = find(name);
  assert(value && std::holds_alternative<std::int64_t>(*value));
  return std::get<std::int64_t>(*value);
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t default_value) const {
  return has(name) ? integer(name) : default_value;
}

double Attributes::number(std::string_view name) const {
  const AttributeValue* value = find(name);
  assert(value && !std::holds_alternative<std::string>(*value));
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  return std::get<double>(*value);
}

double Attributes::number(std::string_view name, double default_value) const {
  return has(name) ? number(name) : default_value;
}

const std::string& Attributes::text(std::string_view name) const {
  const AttributeValue* value = find(name);
  assert(value && std::holds_alternative<std::string>(*value));
  return std::get<std::string>(*value);
}

std::string Attributes::to_string() const {
  std::string text;
  for (const auto& [name, value] : values_) {
    if (!text.empty()) text += ' ';
    if (const auto* whole = std::get_if<std::int64_t>(&value))
      text += fmt::format("{}={}", name, *whole);
    else if (const auto* number = std::get_if<double>(&value))
      text += fmt::format("{}={}", name, *number);
    else
      text += fmt::format("{}='{}'", name, std::get<std::string>(value));
  }
  return text;
}

}  // namespace alpa
