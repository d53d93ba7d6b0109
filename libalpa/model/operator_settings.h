#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/graph/op.h"

namespace alpa {

/// One entry of OpDef::settings.
struct OperatorSetting {
  std::string name;  ///< "size_*": any name that begins with "size_"
  std::string kind;  ///< "text", "number", "integer", "count" or "flag"
  bool optional = false;
};

std::vector<OperatorSetting> operator_settings(const OpDef&);

/// The entry that `name` belongs to, or null.
const OperatorSetting* find_setting(const std::vector<OperatorSetting>&, std::string_view name);

}  // namespace alpa
