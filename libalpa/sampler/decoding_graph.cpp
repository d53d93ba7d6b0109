#include "libalpa/sampler/decoding_graph.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

constexpr std::size_t kSequence = 1;  ///< the dimension of tokens that has the places of a sequence

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::input, "text cannot be sampled from this model: " + why,
              "a model whose layers are causal attention and work on each token by itself, as gpt.toml and "
              "llama.toml");
}

/// The node whose operand 0 is the scores of each word to come next.
const Node& loss_of_tokens(const Graph& graph) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes) {
    if (node.op->name != "cross_entropy" || node.phase != Phase::forward) continue;
    if (found) refuse("it has several losses");
    found = &node;
  }
  if (!found) refuse("it has no loss of tokens");
  return *found;
}

ValueIndex input_of(const Graph& graph, InputKind kind) {
  const auto found = std::ranges::find(graph.inputs, kind, &Input::kind);
  return found == graph.inputs.end() ? ValueIndex() : found->value;
}

/// Which nodes lead to a value.
Indexed<NodeIndex, bool> leading_to(const Graph& graph, ValueIndex value) {
  Indexed<NodeIndex, bool> leads(graph.nodes.size());
  Indexed<ValueIndex, bool> wanted(graph.values.size());
  wanted[value] = true;
  for (auto n = graph.nodes.size(); n-- > 0;) {
    const NodeIndex index(static_cast<int>(n));
    const Node& node = graph.nodes[index];
    leads[index] = std::ranges::any_of(node.results, [&](ValueIndex result) { return wanted[result]; });
    if (leads[index])
      for (const ValueIndex operand : node.operands) wanted[operand] = true;
  }
  return leads;
}

std::string text_of(const Graph& graph, const Node& node) {
  return fmt::format("'{}' of layer '{}'", node.op->name, graph.layers[static_cast<std::size_t>(node.layer)]);
}

/// Whether results of a node have the places of its operands, one by one, in the same dimension. An addition
/// may have an operand with a row for each place.
bool keeps_places(const Graph& graph, const Node& node, const Indexed<ValueIndex, bool>& has_places) {
  const std::vector<TensorType> types = operand_types(graph, node);
  const ShardingRule rule = rule_of(*node.op, {types, node.attributes});
  DimensionFactors places;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (!has_places[node.operands[i]]) continue;
    const DimensionFactors& own = rule.operands[i][kSequence];
    if (own.size() != 1 || (!places.empty() && own != places)) return false;
    places = own;
  }
  if (places.empty() || rule.factors[static_cast<std::size_t>(places[0])].whole) return false;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    for (std::size_t d = 0; d < rule.operands[i].size(); ++d)
      if (std::ranges::count(rule.operands[i][d], places[0]) > 0 &&
          !(has_places[node.operands[i]] && d == kSequence))
        return node.op->name == "bias_add";
  return std::ranges::all_of(rule.results, [&](const std::vector<DimensionFactors>& result) {
    return result.size() > kSequence && result[kSequence] == places;
  });
}

/// Which values of the forward have the places of a sequence as dimension 1, each worked out by itself but
/// for attention.
Indexed<ValueIndex, bool> values_with_places(const Graph& training) {
  Indexed<ValueIndex, bool> has_places(training.values.size());
  for (const Input& input : training.inputs) has_places[input.value] = input.is_sequence();
  for (const Node& node : training.nodes) {
    if (node.phase != Phase::forward) continue;
    if (node.op->name == "attention")
      has_places[node.results[0]] = has_places[node.operands[0]];
    else if (keeps_places(training, node, has_places))
      for (const ValueIndex result : node.results) has_places[result] = true;
  }
  return has_places;
}

class Decoding {
 public:
  Decoding(const Graph& training, OpCatalog catalog, std::int64_t samples, std::int64_t tokens)
      : training_(training),
        samples_(samples),
        tokens_(tokens),
        builder_(catalog),
        of_(training.values.size()),
        has_places_(values_with_places(training)) {}

  DecodingGraph run() {
    const Node& loss = loss_of_tokens(training_);
    const ValueIndex tokens = input_of(training_, InputKind::tokens);
    if (tokens < 0) refuse("its inputs are no tokens");
    made_.sequence = value_of(training_, tokens).type.shape[kSequence];
    builder_.graph().samples = samples_;
    for (const std::string& layer : training_.layers) builder_.begin_layer(layer);
    const TensorType ids{DType::i32, {samples_, tokens_}};
    made_.tokens = of_[tokens] = builder_.input(InputKind::tokens, ids, "tokens");
    made_.places = builder_.input(InputKind::data, ids, "places", made_.sequence);
    const ValueIndex scores = loss.operands[0];
    const Indexed<NodeIndex, bool> leads = leading_to(training_, scores);
    add_parameters(leads);
    for (const NodeIndex n : training_.nodes.indices())
      if (leads[n]) add(n);
    made_.vocabulary = loss.attributes.integer("words", 0) > 0 ? loss.attributes.integer("words")
                                                               : builder_.type(of_[scores]).shape.back();
    keep_scores(of_[scores], loss);
    made_.graph = builder_.finish();
    made_.trained_value.resize(made_.graph.values.size());
    for (const ValueIndex v : training_.values.indices())
      if (of_[v] >= 0 && made_.trained_value[of_[v]] < 0) made_.trained_value[of_[v]] = v;
    made_.decoded_value = std::move(of_);
    return std::move(made_);
  }

 private:
  void add_parameters(const Indexed<NodeIndex, bool>& leads) {
    Indexed<ValueIndex, bool> used(training_.values.size());
    for (const NodeIndex n : training_.nodes.indices())
      if (leads[n])
        for (const ValueIndex operand : training_.nodes[n].operands) used[operand] = true;
    for (const State& state : training_.states) {
      if (!used[state.value]) continue;
      of_[state.value] = builder_.state(state.name, value_of(training_, state.value).type, state.initializer,
                                        state.is_parameter);
      builder_.graph().states.back().unpadded = state.unpadded;
    }
  }

  /// A state that lives from token to token.
  StateIndex cache(const std::string& name, TensorType type) {
    builder_.state(name, std::move(type), {}, false);
    return StateIndex(static_cast<int>(builder_.graph().states.size()) - 1);
  }

  ValueIndex value_at(StateIndex state) const { return builder_.graph().states[state].value; }

  void add(NodeIndex index) {
    const Node& node = training_.nodes[index];
    builder_.set_place(Phase::forward, node.layer);
    if (node.op->only_in_training) {
      of_[node.results[0]] = of_[node.operands[0]];
      return;
    }
    if (node.op->name == "document_starts") {
      made_.document_end = static_cast<std::int32_t>(node.attributes.integer("end"));
      return;
    }
    std::vector<ValueIndex> operands;
    for (const ValueIndex operand : node.operands) {
      if (node.op->name == "attention" && operands.size() == 3) break;
      if (of_[operand] < 0)
        refuse(fmt::format("{} takes '{}', which is not there before the next token is known",
                           text_of(training_, node), value_of(training_, operand).name));
      operands.push_back(of_[operand]);
    }
    const std::vector<ValueIndex> results = add_for(node, std::move(operands));
    for (std::size_t r = 0; r < results.size(); ++r)
      if (results[r] >= 0) of_[node.results[r]] = results[r];
    made_.trained_node.resize(builder_.graph().nodes.size(), index);
  }

  std::vector<ValueIndex> add_for(const Node& node, std::vector<ValueIndex> operands) {
    if (node.op->name == "attention") return {attend(node, operands)};
    if (node.op->name == "rotary" && has_places_[node.operands[0]])
      return {builder_.add("rotary_at", {operands[0], made_.places}, node.attributes, node.name)};
    if (node.op->name == "bias_add" && has_positions(node)) {
      const ValueIndex rows = builder_.add("embedding", {operands[1], made_.places}, {}, node.name);
      return {builder_.add("add", {operands[0], rows}, {}, node.name)};
    }
    if (node.op->name == "bias_add" && reaches_places(node))
      refuse(text_of(training_, node) + " adds numbers of each place in another form than rows");
    check_places(node);
    return builder_.add_all(node.op->name, std::move(operands), node.attributes, node.name);
  }

  /// Whether it adds a row of its second operand for each place.
  bool has_positions(const Node& node) const {
    const Shape& rows = value_of(training_, node.operands[1]).type.shape;
    return has_places_[node.operands[0]] && rows.size() == 2 && rows[0] == made_.sequence &&
           value_of(training_, node.operands[0]).type.shape.size() == 3;
  }

  /// Whether its second operand, of the last dimensions of the first, is of places too.
  bool reaches_places(const Node& node) const {
    return has_places_[node.operands[0]] &&
           value_of(training_, node.operands[1]).type.shape.size() + kSequence + 1 >
               value_of(training_, node.operands[0]).type.shape.size();
  }

  ValueIndex attend(const Node& node, const std::vector<ValueIndex>& operands) {
    if (node.attributes.integer("causal", 0) == 0)
      refuse(text_of(training_, node) + " sees what comes later (causal = 0)");
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (!has_places_[node.operands[i]]) refuse(text_of(training_, node) + " is not of one sequence");
    TensorType type = builder_.type(operands[1]);
    type.shape[kSequence] = made_.sequence;
    const std::string name = fmt::format("decoding.cache.{}.", caches_++);
    const StateIndex keys = cache(name + "keys", type), values = cache(name + "values", type);
    Attributes attributes;
    if (node.attributes.has("scale")) attributes.set("scale", node.attributes.number("scale"));
    const std::vector<ValueIndex> results = builder_.add_all(
        "cached_attention",
        {operands[0], operands[1], operands[2], value_at(keys), value_at(values), made_.places}, attributes,
        node.name);
    builder_.graph().states[keys].next = results[1];
    builder_.graph().states[values].next = results[2];
    return results[0];
  }

  /// That the node treats each place of a sequence by itself.
  void check_places(const Node& node) const {
    const auto has_places = [&](ValueIndex value) { return has_places_[value]; };
    if (std::ranges::none_of(node.operands, has_places)) return;
    if (!std::ranges::all_of(node.results, has_places))
      refuse(text_of(training_, node) + " mixes the tokens of a sequence");
  }

  void keep_scores(ValueIndex scores, const Node& loss) {
    builder_.set_place(Phase::forward, loss.layer);
    made_.scores = cache("decoding.scores", builder_.type(scores));
    builder_.graph().states[made_.scores].next = builder_.add("store", {value_at(made_.scores), scores});
    builder_.graph().loss = builder_.add("reduce_sum", {scores});
    made_.trained_node.resize(builder_.graph().nodes.size());
  }

  const Graph& training_;
  std::int64_t samples_, tokens_;
  GraphBuilder builder_;
  Indexed<ValueIndex, ValueIndex> of_;  ///< [value of the training graph]
  Indexed<ValueIndex, bool> has_places_;
  DecodingGraph made_;
  int caches_ = 0;
};

}  // namespace

DecodingGraph decoding_graph(const Graph& training, OpCatalog catalog, std::int64_t samples,
                             std::int64_t tokens) {
  return Decoding(training, catalog, samples, tokens).run();
}

}  // namespace alpa
