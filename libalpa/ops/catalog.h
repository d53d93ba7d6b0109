#pragma once
#include "libalpa/graph/op.h"

namespace alpa {

namespace ops {
#define ALPA_OP(name) extern const OpDef name;
#include "libalpa/ops/ops.def"
#undef ALPA_OP
}  // namespace ops

/// Every operator of the library.
OpCatalog op_catalog();

}  // namespace alpa
