#include "libalpa/base/words.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "libalpa/base/error.h"

namespace alpa {

void refuse_name(const char* kind, const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  throw Error(ErrorKind::input, fmt::format("unknown {} '{}'", kind, name),
              fmt::format("{}one of {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                          fmt::join(known, ", ")));
}

}  // namespace alpa
