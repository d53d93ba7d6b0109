#include "tests/support/source_folder.h"

#include <cstdlib>

namespace alpa {

std::filesystem::path source_folder() {
  const char* carried = std::getenv("ALPA_SOURCE_DIR");
  return carried ? carried : ALPA_SOURCE_DIR;
}

}  // namespace alpa
