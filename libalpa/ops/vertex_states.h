#pragma once
#include "libalpa/graph/graph.h"

namespace alpa {

namespace ops {
extern const OpDef gather;    ///< (rows, structure) -> rows: what the children published as state `state`
extern const OpDef received;  ///< (rows, structure) -> rows: the gradient that the parents gave back of it
}  // namespace ops

/// All operators, and the two that stand in vertex functions (ops/vertex.h) for what comes from other rows.
/// They have no kernels: `rounds` and `rounds_grad` do what they say.
OpCatalog vertex_catalog();

/// Whether a tensor is f32 [b v w], a row for each vertex of that structure [b v k+1].
bool has_rows(const TensorType&, const TensorType& structure);

/// A gather of that state, so many numbers wide: of all children side by side, or with `sum` added up.
ValueIndex add_gather(GraphBuilder&, ValueIndex rows, ValueIndex structure, int state, std::int64_t width,
                      bool sum);

}  // namespace alpa
