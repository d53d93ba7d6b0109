#include "libalpa/model/operator_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <sstream>

#include "libalpa/base/constraint.h"
#include "libalpa/base/limits.h"

namespace alpa {

namespace {

struct Kind {
  std::string_view name;
  bool is_integer;
  Range range;
};

const Kind& kind_of(const OperatorSetting& setting) {
  static const std::array<Kind, 6> kinds{{{"number", false, between(-kMostNumber, kMostNumber)},
                                          {"positive", false, between(kLeastNumber, kMostNumber)},
                                          {"share", false, between(0, kNearlyOne)},
                                          {"integer", true, between(1, kMostElements)},
                                          {"count", true, between(0, kMostElements)},
                                          {"flag", true, between(0, 1)}}};
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) { return kind.name == setting.kind; });
  assert(found != kinds.end());
  return *found;
}

}  // namespace

std::string OperatorSetting::expected() const {
  if (kind == "text") return "a text";
  const Kind& facts = kind_of(*this);
  return fmt::format("{}, {}", facts.is_integer ? "an integer" : "a number", range_text(facts.range));
}

bool OperatorSetting::accepts(const Number& value) const {
  const Kind& facts = kind_of(*this);
  return (value.is_integer || !facts.is_integer) && facts.range.contains(value.real);
}

std::vector<OperatorSetting> operator_settings(const OpDef& op) {
  std::vector<OperatorSetting> settings;
  std::istringstream words{std::string(op.settings)};
  for (std::string word; words >> word;) {
    const std::size_t colon = word.find(':');
    OperatorSetting setting{word.substr(0, colon), word.substr(colon + 1), word.back() == '?'};
    if (setting.optional) setting.kind.pop_back();
    settings.push_back(std::move(setting));
  }
  return settings;
}

const OperatorSetting* find_setting(const std::vector<OperatorSetting>& settings, std::string_view name) {
  for (const OperatorSetting& setting : settings) {
    const std::string_view known = setting.name;
    if (known == name || (known.ends_with('*') && name.starts_with(known.substr(0, known.size() - 1))))
      return &setting;
  }
  return nullptr;
}

}  // namespace alpa
