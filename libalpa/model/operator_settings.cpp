#include "libalpa/model/operator_settings.h"

#include <sstream>

namespace alpa {

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
