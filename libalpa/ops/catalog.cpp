#include "libalpa/ops/catalog.h"

#include <algorithm>
#include <iterator>

namespace alpa {

OpCatalog op_catalog() {
  static constexpr const OpDef* table[] = {
#define ALPA_OP(name) &ops::name,
#include "libalpa/ops/ops.def"
#undef ALPA_OP
  };
  return OpCatalog(table);
}

bool is_cpu_only(const OpDef& op) {
  static constexpr const OpDef* table[] = {
#define ALPA_OP(name)
#define ALPA_CPU_OP(name) &ops::name,
#include "libalpa/ops/ops.def"
#undef ALPA_CPU_OP
#undef ALPA_OP
  };
  return std::ranges::find(table, &op) != std::end(table);
}

}  // namespace alpa
