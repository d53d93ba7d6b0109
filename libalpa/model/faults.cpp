#include "libalpa/model/faults.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"

namespace alpa {

void ModelFaults::add(const SourceLocation& place, std::string text) {
  const auto same = [&](const Fault& fault) { return fault.place == place; };
  if (std::none_of(faults_.begin(), faults_.end(), same)) faults_.push_back({place, std::move(text)});
}

void ModelFaults::throw_if_any(const std::vector<std::string>& sources) const {
  if (faults_.empty()) return;
  std::vector<Fault> sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Fault& a, const Fault& b) { return a.place < b.place; });
  std::string text;
  for (const Fault& fault : sorted)
    text += fmt::format("{}{}:{}:{}: {}", text.empty() ? "" : "\n",
                        sources.at(static_cast<std::size_t>(fault.place.source)), fault.place.at.line,
                        fault.place.at.column, fault.text);
  throw Error(ErrorKind::input, text);
}

std::string suggestion(const std::string& wrong, const std::vector<std::string>& names) {
  const std::string near = nearest_name(wrong, names);
  return near.empty() ? "" : fmt::format(", did you mean '{}'?", near);
}

}  // namespace alpa
