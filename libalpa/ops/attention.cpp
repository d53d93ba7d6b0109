#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/graph/graph.h"
#include "libalpa/ops/attention_scratch.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/rotary_rule.h"

namespace alpa {

AttentionScratch attention_scratch(const OpCall& call) {
  const bool gradient = call.operands.size() > 4;
  const TensorType &query = call.operands[gradient ? 1 : 0], &key = call.operands[gradient ? 2 : 1];
  const bool convert = query.dtype != DType::f32;
  const std::int64_t width = query.shape[3], heads = query.shape[2], groups = key.shape[2];
  const auto blocks = [](std::int64_t rows, std::int64_t block) { return (rows + block - 1) / block; };
  AttentionScratch scratch;
  const std::int64_t rows = scratch.kQueryBlock, keys = scratch.kKeyBlock;
  scratch.tiles = (gradient ? 2 : 1) * rows * keys;
  scratch.row_values = 2 * rows;
  scratch.query_blocks = convert ? 2 * rows * width : 0;
  scratch.key_block = convert ? keys * width : 0;
  scratch.key_values = convert ? std::max(2 * scratch.key_block, scratch.tiles / 2) : 0;
  scratch.key_gradients = gradient ? 2 * scratch.key_block : 0;
  scratch.query_gradient = convert && gradient ? heads / groups * query.shape[1] * width : 0;
  // The gradient has tasks of one key head, or of one block where those are too few for the threads.
  const std::int64_t query_tasks = query.shape[0] * heads * blocks(query.shape[1], rows);
  const std::int64_t key_tasks = key.shape[0] * groups * blocks(key.shape[1], keys);
  scratch.workers = std::min(scratch.kMostWorkers, gradient ? std::max(query_tasks, key_tasks) : query_tasks);
  return scratch;
}

}  // namespace alpa

namespace alpa::ops {

ShardingRule rotary_rule(const OpCall& call) {
  const bool has_places = call.operands.size() > 1;
  ShardingRule rule = parse_rule(
      has_places ? "b s h k, b s -> b s h k | whole k" : "b s h k -> b s h k | whole k", call.operands);
  const auto width = std::ranges::find(rule.factors, "k", &Factor::name);
  if (width->size % 2 == 0) return rule;
  throw Error(ErrorKind::input, fmt::format("turns pairs of numbers, so a head cannot have {}", width->size));
}

namespace {

/// The rule of a call whose `count` operands may be followed by first keys.
ShardingRule rule_of_heads(const OpCall& call, std::size_t count, const std::string& operands,
                           const std::string& results) {
  return parse_rule(
      operands + (call.operands.size() > count ? ", b s -> " : " -> ") + results + " | whole k | ring t s",
      call.operands);
}

ShardingRule attention_rule(const OpCall& call) {
  return rule_of_heads(call, 3, "b s (g r) k, b t g k, b t g k", "b s (g r) k, b (g r) s");
}

ShardingRule attention_grad_rule(const OpCall& call) {
  return rule_of_heads(call, 6, "b s (g r) k, b s (g r) k, b t g k, b t g k, b s (g r) k, b (g r) s",
                       "b s (g r) k, b t g k, b t g k");
}

std::vector<ValueIndex> attention_gradient(GraphBuilder& g, const Node& node,
                                           std::span<const ValueIndex> dy) {
  std::vector<ValueIndex> operands{dy[0],           node.operands[0], node.operands[1], node.operands[2],
                                   node.results[0], node.results[1]};
  const bool has_first_keys = node.operands.size() > 3;
  if (has_first_keys) operands.push_back(node.operands[3]);
  std::vector<ValueIndex> gradients =
      g.add_all("attention_grad", std::move(operands), node.attributes, node.name + ".grad");
  if (has_first_keys) gradients.emplace_back();
  return gradients;
}

/// Two products (scores, values) of 2*s*t*k per head, of all keys up to the query: where documents end is not
/// known here. Of a part of the queries a causal mask leaves what the
/// last of them see, as they are what the others wait for: of all queries half, of keys that visit them all.
double score_flops(const TensorType& query, const TensorType& key, const Attributes& attributes) {
  const auto queries = static_cast<double>(query.shape[1]), keys = static_cast<double>(key.shape[1]);
  const bool masked = attributes.integer("causal", 0) && !attributes.integer("visiting", 0);
  const double seen = masked ? 1 - std::min(queries, keys) / (2 * std::max(queries, keys)) : 1;
  return 4 * static_cast<double>(element_count(query.shape)) * keys * seen;
}

double attention_flops(const OpCall& call) {
  return score_flops(call.operands[0], call.operands[1], call.attributes);
}
double attention_grad_flops(const OpCall& call) {
  return 2.5 * score_flops(call.operands[1], call.operands[2], call.attributes);
}

std::int64_t attention_workspace(const OpCall& call) { return attention_scratch(call).bytes(); }

/// One number in f32 for each query of each head.
std::int64_t row_deltas(const OpCall& call) { return byte_count(call.operands[5]); }

std::vector<ValueIndex> rotary_gradient(GraphBuilder& g, const Node& node, std::span<const ValueIndex> dy) {
  Attributes attributes = node.attributes;
  attributes.set("inverse", std::int64_t{1} - node.attributes.integer("inverse", 0));
  return {g.add("rotary", {dy[0]}, attributes)};
}

}  // namespace

// softmax(query key^T * scale) value per head, scores never held as a whole (FlashAttention, NeurIPS'22).
// Query heads are (g r): g groups share a key and a value head. Results: output, log-sum-exp of the scores
// [b, heads, s]. Attributes: causal (0 or 1; key t is seen by query s when t <= s, global positions), scale
// (default 1/sqrt(k)). Keys may come in blocks: each call that accumulates takes further ones into what the
// results hold, here by the log-sum-exp, in attention_grad by addition. A call may show a query no key at all
// (output 0, log-sum-exp -infinity). A fourth operand [b, s] says which key is the first that a query sees,
// global positions, never falling from query to query.
constinit const OpDef attention{
    .name = "attention",
    .rule = "",
    .make_rule = attention_rule,
    .result_types = "same,f32",
    .flops = attention_flops,
    .cpu_workspace_bytes = attention_workspace,
    .gradient = attention_gradient,
    .settings = "causal:flag? scale:number?",
    .ids = 3,
    .starts_of = "t",
    .untimed = "scale",
};

// (d output, query, key, value, output, log-sum-exp) -> d query, d key, d value; first keys as above.
constinit const OpDef attention_grad{
    .name = "attention_grad",
    .rule = "",
    .make_rule = attention_grad_rule,
    .flops = attention_grad_flops,
    .recomputed_share = 0.2,  // the scores: one product of five
    .cpu_workspace_bytes = attention_workspace,
    .cuda_workspace_bytes = row_deltas,
    .ids = 6,
    .starts_of = "t",
    .internal = true,
    .untimed = "scale",
};

// Rotary position embedding (RoFormer, 2021): pairs (i, i + k/2) of the last dimension turn by position /
// theta^(2i/k). Dimension 1 is the position. Attributes: theta, inverse (turns back: its own gradient).
constinit const OpDef rotary{
    .name = "rotary",
    .rule = "",
    .make_rule = rotary_rule,
    .flops_per_point = 6,
    .gradient = rotary_gradient,
    .settings = "theta:positive",
    .untimed = "theta inverse",
};

}  // namespace alpa::ops
