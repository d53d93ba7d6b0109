#include "libalpa/base/words.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "libalpa/base/error.h"

namespace alpa {

void refuse_name(const char* kind, const std::string& name, const std::vector<std::string>& known) {
  throw Error(ErrorKind::input, fmt::format("unknown {} '{}'", kind, name),
              fmt::format("one of {}", fmt::join(known, ", ")));
}

}  // namespace alpa
