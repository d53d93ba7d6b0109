#include "libalpa/checkpoint/state_differences.h"

#include <fmt/core.h>

namespace alpa {

std::string state_differences(const std::map<std::string, std::pair<std::string, std::string>>& types,
                              const std::string& one, const std::string& other) {
  constexpr int most_lines = 12;
  std::string table;
  int differing = 0;
  for (const auto& [name, row] : types) {
    const auto& [here, there] = row;
    if (here == there || ++differing > most_lines) continue;
    table +=
        fmt::format("\n  {:<40} {:<20} {}", name, here.empty() ? "-" : here, there.empty() ? "-" : there);
  }
  if (differing == 0) return {};
  if (differing > most_lines) table += fmt::format("\n  and {} more", differing - most_lines);
  return fmt::format("{} of {} states differ\n  {:<40} {:<20} {}", differing, types.size(), "state", one,
                     other) +
         table;
}

}  // namespace alpa
