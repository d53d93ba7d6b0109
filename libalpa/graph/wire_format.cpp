#include "libalpa/graph/wire_format.h"

#include <cmath>

namespace alpa {

double WireFormat::sent_share(const Shape& tile) const {
  if (vocabulary == 0) return 1;
  if (distinct_share > 0) return distinct_share;
  const auto ids = static_cast<double>(vocabulary);
  const auto drawn = static_cast<double>(element_count(tile) / tile.back());
  return vocabulary == 1 ? 1 / drawn : -ids * std::expm1(drawn * std::log1p(-1 / ids)) / drawn;
}

}  // namespace alpa
