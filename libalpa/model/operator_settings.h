#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/graph/op.h"
#include "libalpa/model/expression.h"

namespace alpa {

/// One entry of OpDef::settings.
struct OperatorSetting {
  std::string name;  ///< "size_*": any name that begins with "size_"
  std::string kind;  ///< as in OpDef::settings
  bool optional = false;

  std::string expected() const;       ///< "a number, from 0 to 0.999999"
  bool accepts(const Number&) const;  ///< of all kinds but text
};

std::vector<OperatorSetting> operator_settings(const OpDef&);

/// The entry that `name` belongs to, or null.
const OperatorSetting* find_setting(const std::vector<OperatorSetting>&, std::string_view name);

}  // namespace alpa
