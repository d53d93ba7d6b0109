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

/// Whether there are no CUDA kernels of that operator, in whatever build.
bool is_cpu_only(const OpDef&);

}  // namespace alpa
