#include "libalpa/ops/catalog.h"

namespace alpa {

OpCatalog op_catalog() {
  static constexpr const OpDef* table[] = {
#define ALPA_OP(name) &ops::name,
#include "libalpa/ops/ops.def"
#undef ALPA_OP
  };
  return OpCatalog(table);
}

}  // namespace alpa
