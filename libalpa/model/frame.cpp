#include "libalpa/model/frame.h"

#include <fmt/core.h>

#include "libalpa/base/error.h"

namespace alpa {

std::string Frame::within() const {
  return path.empty() ? "" : fmt::format("in {} (layer at {}): ", path, layer);
}

void Frame::fault(const SourceLocation& place, const std::string& text) const {
  faults.add(place, within() + text);
}

std::optional<Number> Frame::number(const std::string& text, const SourceLocation& place) const {
  try {
    return evaluate(text, numbers);
  } catch (const Error& error) {
    const bool divides = error.happened().find(" is not divisible by ") == std::string::npos;
    fault(place, error.happened() +
                     (divides ? "" : "; try: other numbers in [dimensions], or where the layer is used"));
    return {};
  }
}

std::optional<std::int64_t> Frame::positive(const std::string& text, const SourceLocation& place,
                                            const std::string& what, std::int64_t most) const {
  const std::optional<Number> value = number(text, place);
  if (!value) return {};
  if (value->is_integer && value->integer >= 1 && value->integer <= most) return value->integer;
  fault(place, fmt::format("{} is {}, expected an integer from 1 to {}", what, number_text(*value), most));
  return {};
}

bool Frame::holds(const std::string& when, const SourceLocation& place) const {
  if (when == "1") return true;
  const std::optional<Number> value = number(when, place);
  return value && value->real != 0;
}

}  // namespace alpa
