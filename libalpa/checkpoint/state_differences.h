#pragma once
#include <map>
#include <string>
#include <utility>

namespace alpa {

/// "" where the types that two models have of each state are the same ("": it has none of that name);
/// otherwise how many differ, and a table with a line for each, at most twelve, under the names of the two.
std::string state_differences(const std::map<std::string, std::pair<std::string, std::string>>& types,
                              const std::string& one, const std::string& other);

}  // namespace alpa
