#include "libalpa/ops/vertex_states.h"

#include "libalpa/ops/catalog.h"

namespace alpa {

namespace ops {

constinit const OpDef gather{
    .name = "gather",
    .rule = "b v e, b v s -> b v d | whole v e s d",
    .flops_per_point = 0,
    .ids = 1,
    .takes_no_id = true,
    .internal = true,
};

constinit const OpDef received{
    .name = "received",
    .rule = "b v e, b v s -> b v d | whole v e s d",
    .flops_per_point = 0,
    .ids = 1,
    .takes_no_id = true,
    .internal = true,
};

}  // namespace ops

OpCatalog vertex_catalog() {
  static const std::vector<const OpDef*> all = [] {
    const std::span<const OpDef* const> known = op_catalog().all();
    std::vector<const OpDef*> table(known.begin(), known.end());
    table.insert(table.end(), {&ops::gather, &ops::received});
    return table;
  }();
  return OpCatalog(all);
}

bool has_rows(const TensorType& type, const TensorType& structure) {
  return type.dtype == DType::f32 && type.shape.size() == 3 && type.shape[0] == structure.shape[0] &&
         type.shape[1] == structure.shape[1];
}

ValueIndex add_gather(GraphBuilder& g, ValueIndex rows, ValueIndex structure, int state, std::int64_t width,
                      bool sum) {
  const std::int64_t children = g.type(structure).shape.back() - 1;
  Attributes attributes{{"state", std::int64_t{state}}, {"size_d", sum ? width : children * width}};
  if (sum) attributes.set("sum", std::int64_t{1});
  return g.add("gather", {rows, structure}, attributes);
}

}  // namespace alpa
