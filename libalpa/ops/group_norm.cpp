#include <string>

#include "libalpa/graph/graph.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

/// Names of the dimensions between the sample and the channels.
std::string places_of(const TensorType& x) {
  std::string names;
  for (std::size_t d = 1; d + 1 < x.shape.size(); ++d) names += "p" + std::to_string(d) + " ";
  return names;
}

/// A rule in which X stands for a tensor [n ... (g c)], C for its channels and S for its statistics.
ShardingRule group_rule(std::string_view pattern, const OpCall& call) {
  const std::string places = call.operands.empty() ? "" : places_of(call.operands[0]);
  std::string notation;
  for (const char letter : pattern)
    notation += letter == 'X'   ? "n " + places + "(g c)"
                : letter == 'C' ? "(g c)"
                : letter == 'S' ? "n g"
                                : std::string(1, letter);
  return parse_rule(notation + " | whole c " + places, call.operands, size_attributes(call.attributes));
}

ShardingRule group_norm_rule(const OpCall& call) { return group_rule("X, C, C -> X, S, S", call); }
ShardingRule group_norm_grad_rule(const OpCall& call) { return group_rule("X, X, C, S, S -> X, C, C", call); }

std::vector<ValueIndex> group_norm_gradient(GraphBuilder& g, const Node& node,
                                            std::span<const ValueIndex> dy) {
  return g.add_all("group_norm_grad",
                   {dy[0], node.operands[0], node.operands[1], node.results[1], node.results[2]},
                   {{"size_g", node.attributes.integer("size_g")}}, node.name + ".grad");
}

}  // namespace

// (x [n ... (g c)], gain, bias) -> y, mean, 1/deviation [n g], over each group of channels of each sample
// (Group Normalization, ECCV'18); attributes size_g, epsilon.
constinit const OpDef group_norm{
    .name = "group_norm",
    .rule = "",
    .make_rule = group_norm_rule,
    .result_types = "same,f32,f32",
    .flops_per_point = 8,
    .gradient = group_norm_gradient,
    .settings = "size_g:integer epsilon:positive",
    .untimed = "epsilon",
};

// (dy, x, gain, mean, 1/deviation) -> dx, dgain, dbias
constinit const OpDef group_norm_grad{
    .name = "group_norm_grad",
    .rule = "",
    .make_rule = group_norm_grad_rule,
    .flops_per_point = 14,
    .internal = true,
};

}  // namespace alpa::ops
