#include "libalpa/graph/autodiff.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/graph/factoring.h"
#include "libalpa/graph/lossy_gradients.h"
#include "libalpa/graph/update_scalars.h"

namespace alpa {
namespace {

class Differentiator {
 public:
  Differentiator(const Graph& forward, OpCatalog catalog, const TrainingOptions& options)
      : forward_(forward), builder_(catalog, forward), options_(options) {}

  Graph run() {
    mark_dependents();
    const ValueIndex seed = builder_.input(InputKind::loss_scale, {DType::f32, {}}, "loss_scale");
    contributions_[forward_.loss].push_back({seed, layer_of_loss()});
    for (const NodeIndex n : forward_.nodes.reversed_indices()) differentiate(n);
    if (options_.embedding_gradients == EmbeddingGradients::sparse && !joins_rows_)
      throw Error(
          ErrorKind::input,
          "gradients of embeddings are to be sparse, and the model has no table that one embedding alone "
          "looks up",
          "embedding_gradients = \"dense\"");
    accumulate();
    if (options_.precision == Precision::f16 &&
        (options_.gradient_delay > 0 || options_.gradient_compression != GradientCompression::none))
      throw Error(ErrorKind::input,
                  "gradients are delayed or compressed, and those of f16 have another scale in each step",
                  "precision = \"bf16\"; or gradient_delay = 0 and gradient_compression = \"none\"");
    std::optional<DelayedGradients> delayed;
    if (options_.gradient_delay > 0) delayed.emplace(builder_, options_.gradient_delay, gradients_);
    if (options_.gradient_compression == GradientCompression::powersgd)
      compress_gradients(builder_, options_.compression_rank, gradients_);
    update();
    if (delayed) delayed->keep(builder_);
    update_running_averages();
    return without_dead_nodes(builder_.finish());
  }

 private:
  struct Contribution {
    ValueIndex value;
    int layer;
  };

  int layer_of_loss() const { return node_of(forward_, value_of(forward_, forward_.loss).producer).layer; }

  /// Values that depend on a parameter; nothing else needs a gradient.
  void mark_dependents() {
    for (const State& state : forward_.states)
      if (state.is_parameter) dependent_.insert(state.value);
    for (const Node& node : forward_.nodes)
      for (const ValueIndex operand : node.operands)
        if (dependent_.contains(operand)) dependent_.insert(node.results.begin(), node.results.end());
  }

  ValueIndex summed(const std::vector<Contribution>& parts, Phase phase, int layer) {
    ValueIndex sum = parts[0].value;
    builder_.set_place(phase, layer);
    for (std::size_t i = 1; i < parts.size(); ++i)
      sum = builder_.add("add", {sum, parts[i].value}, {}, "sum of gradients");
    return sum;
  }

  /// Summed within each layer first, so that one tensor per layer crosses a stage boundary. There in the
  /// order of the forward pass: the gradient that a residual hands on is whole and comes last, so that those
  /// of queries, keys and values, where they are partial, are summed over the ranks as one.
  std::vector<Contribution> per_layer(const std::vector<Contribution>& parts) {
    std::map<int, std::vector<Contribution>> by_layer;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) by_layer[part->layer].push_back(*part);
    std::vector<Contribution> sums;
    for (const auto& [layer, group] : by_layer)
      sums.push_back({summed(group, Phase::backward, layer), layer});
    return sums;
  }

  ValueIndex total(const std::vector<Contribution>& parts, int layer) {
    return summed(per_layer(parts), Phase::backward, layer);
  }

  void differentiate(NodeIndex index) {
    Node node = node_of(forward_, index);
    if (!node.op->gradient) return;
    std::vector<ValueIndex> gradients;
    bool any = false;
    for (const ValueIndex result : node.results) {
      const auto found = contributions_.find(result);
      gradients.push_back(found == contributions_.end() ? ValueIndex() : total(found->second, node.layer));
      if (gradients.back() < 0) continue;
      any = true;
      mark_gradient_of_computed(gradients.back());
    }
    if (!any) return;
    builder_.set_place(Phase::backward, node.layer);
    if (has_sparse_gradient(node)) join_rows(node, gradients[0]);
    const std::vector<ValueIndex> operand_gradients =
        in_step(fmt::format("differentiating '{}'", node.name),
                [&] { return node.op->gradient(builder_, node, gradients); });
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (operand_gradients[i] >= 0 && dependent_.contains(node.operands[i])) {
        contributions_[node.operands[i]].push_back({operand_gradients[i], node.layer});
        if (value_of(forward_, node.operands[i]).producer >= 0)
          mark_gradient_of_computed(operand_gradients[i]);
      }
  }

  /// Where the table is looked up elsewhere too, or multiplied, its gradients are added up as tables anyway.
  bool has_sparse_gradient(const Node& node) const {
    if (options_.embedding_gradients != EmbeddingGradients::sparse || !node.op->looks_up_rows) return false;
    std::ptrdiff_t uses = 0;
    for (const Node& other : forward_.nodes) uses += std::ranges::count(other.operands, node.operands[0]);
    return uses == 1;
  }

  /// Gives the gradient of a table rows in place of `rows`, and in the node's operands their ids.
  void join_rows(Node& node, ValueIndex& rows) {
    if (options_.gradient_sum != GradientSum::f32)
      throw Error(ErrorKind::input, "gradients of embeddings are sparse, and those are summed in f32",
                  "gradient_sum = \"f32\", or embedding_gradients = \"dense\"");
    if (options_.precision == Precision::f16)
      throw Error(ErrorKind::input, "gradients of embeddings are sparse on CPUs alone, and f16 is for GPUs",
                  "precision = \"bf16\", or embedding_gradients = \"dense\"");
    ValueIndex& ids = node.operands[static_cast<std::size_t>(node.op->ids)];
    const std::vector<ValueIndex> joined =
        builder_.add_all("distinct_rows", {rows, ids}, {}, node.name + ".rows");
    rows = joined[0];
    ids = joined[1];
    Value& sent = builder_.graph().values[rows];
    sent.row_ids = ids;
    sent.wire.vocabulary = builder_.type(node.operands[0]).shape[0];
    sent.wire.distinct_share = options_.distinct_ids;
    joins_rows_ = true;
  }

  void mark_gradient_of_computed(ValueIndex value) {
    builder_.graph().values[value].is_gradient_of_computed = true;
  }

  void accumulate() {
    for (const StateIndex s : forward_.states.indices()) {
      const State& state = forward_.states[s];
      if (!state.is_parameter) continue;
      const auto found = contributions_.find(state.value);
      if (found == contributions_.end())
        throw Error(ErrorKind::input, fmt::format("parameter '{}' does not reach the loss", state.name),
                    "remove it, or use it in a node that the loss depends on");
      const char* const op = options_.gradient_sum == GradientSum::f32 ? "accumulate" : "accumulate_rounded";
      std::vector<Contribution> sums = per_layer(found->second);
      for (Contribution& sum : sums) {
        set_wire_type(sum.value);
        builder_.set_place(Phase::backward, sum.layer);
        sum.value = builder_.add(op, {sum.value}, {}, state.name + ".gradient");
        set_wire_type(sum.value);
      }
      const int layer = sums.front().layer;
      gradients_.push_back({s, summed(sums, Phase::update, layer), layer});
      set_wire_type(gradients_.back().value);
    }
  }

  /// Of a gradient of weights, or a sum of such.
  void set_wire_type(ValueIndex gradient) {
    Value& value = builder_.graph().values[gradient];
    if (options_.gradient_wire == GradientWire::bf16 && value.type.dtype == DType::f32 &&
        !value.is_gradient_of_computed)
      value.wire.sum_type = DType::bf16;
  }

  void update() {
    std::vector<ValueIndex> all;
    for (const ParameterGradient& gradient : gradients_) all.push_back(gradient.value);
    builder_.set_place(Phase::update, 0);
    scalars_ =
        builder_.input(InputKind::update_scalars, {DType::f32, {UpdateScalars::kCount}}, "update_scalars");
    const ValueIndex norm = builder_.add("sum_squares", all, {}, "gradient norm");
    builder_.graph().gradient_square_sum = norm;
    for (const ParameterGradient& gradient : gradients_)
      update_parameter(forward_.states[gradient.parameter], gradient, norm);
  }

  void update_running_averages() {
    for (const Node& node : forward_.nodes) {
      if (node.op->running_average < 0) continue;
      const ValueIndex average = node.operands[node.op->running_average];
      const Value& value = value_of(forward_, average);
      State* state = nullptr;
      for (State& each : builder_.graph().states)
        if (each.value == average) state = &each;
      if (!state || state->is_parameter || state->next >= 0)
        throw Error(ErrorKind::input, fmt::format("'{}' is what '{}' keeps as a running average: expected a "
                                                  "weight with trained = 0, for it alone",
                                                  value.name, node.name));
      const ValueIndex statistic = node.operands[0];
      const Attributes keep{{"keep", static_cast<std::int64_t>(value.type.shape.size())}};
      builder_.set_place(Phase::backward, node.layer);
      const ValueIndex of_micro_batch =
          builder_.add("reduce_leading", {statistic}, keep, node.name + ".groups");
      const ValueIndex sum = builder_.add("accumulate", {of_micro_batch}, {}, node.name + ".sum");
      builder_.set_place(Phase::update, node.layer);
      state->next = builder_.add("running_update", {average, sum, scalars_},
                                 {{"momentum", node.attributes.number("momentum")},
                                  {"correction", node.attributes.number("correction", 1)},
                                  {"groups", builder_.type(statistic).shape[0]}},
                                 value.name + ".update");
    }
  }

  /// A parameter whose update is being built.
  struct Updated {
    const State& parameter;
    ValueIndex gradient, norm;
    TensorType full;     ///< of the weights that are updated, in f32
    ValueIndex weights;  ///< the parameter's own value, or its f32 master weights
    double decay;        ///< of weights

    bool has_master() const { return weights != parameter.value; }
  };

  void update_parameter(const State& parameter, const ParameterGradient& gradient, ValueIndex norm) {
    const TensorType type = builder_.type(parameter.value);
    const TensorType full{DType::f32, type.shape};
    builder_.set_place(Phase::update, gradient.layer);
    if (!parameter.unpadded.empty() && options_.optimizer == OptimizerKind::adafactor)
      throw Error(
          ErrorKind::input,
          fmt::format("'{}' is padded, and adafactor's means would count the padding", parameter.name),
          "pad_to = 1 and pad_heads_to = 1, or another optimizer");
    ValueIndex weights = parameter.value;
    if (type.dtype != DType::f32) {
      weights =
          builder_.state(parameter.name + ".master", full, parameter.initializer, false, parameter.name);
      builder_.graph().states.back().unpadded = parameter.unpadded;
    }
    const double decay = parameter.decays && type.shape.size() >= 2 ? options_.weight_decay : 0.0;
    const Updated updated{parameter, gradient.value, norm, full, weights, decay};
    if (options_.optimizer == OptimizerKind::adafactor)
      update_by_adafactor(updated);
    else
      update_with_moments(updated);
  }

  ValueIndex moment(const Updated& of, const std::string& name, const TensorType& type) {
    const ValueIndex value = builder_.state(of.parameter.name + "." + name, type, {}, false);
    builder_.graph().states.back().unpadded = of.parameter.unpadded;
    return value;
  }

  void set_next(ValueIndex state_value, ValueIndex next) {
    for (State& state : builder_.graph().states)
      if (state.value == state_value) state.next = next;
  }

  /// An update in one step.
  void update_with_moments(const Updated& of) {
    Attributes attributes{{"clip", options_.gradient_clip}, {"weight_decay", of.decay}};
    std::vector<ValueIndex> operands{of.weights, of.gradient};
    const bool adamw = options_.optimizer == OptimizerKind::adamw;
    if (adamw) {
      attributes.set("beta1", options_.beta1);
      attributes.set("beta2", options_.beta2);
      attributes.set("epsilon", options_.epsilon);
      operands.push_back(moment(of, "moment1", of.full));
      operands.push_back(moment(of, "moment2", of.full));
    } else {
      attributes.set("momentum", options_.momentum);
      if (options_.nesterov) attributes.set("nesterov", std::int64_t{1});
      operands.push_back(moment(of, "momentum", of.full));
    }
    std::vector<ValueIndex> owners{of.weights};
    owners.insert(owners.end(), operands.begin() + 2, operands.end());
    operands.insert(operands.end(), {scalars_, of.norm});
    if (of.has_master()) {
      owners.push_back(of.parameter.value);
      operands.push_back(of.parameter.value);
    }
    const std::string op = std::string(adamw ? "adamw" : "sgd") + (of.has_master() ? "_master" : "");
    const std::vector<ValueIndex> results =
        builder_.add_all(op, operands, attributes, of.parameter.name + ".update");
    for (std::size_t i = 0; i < owners.size(); ++i) set_next(owners[i], results[i]);
  }

  /// What gradients are multiplied by before they change the weights.
  std::vector<ValueIndex> adafactor_scales(const Updated& of, Factoring factoring) {
    const std::string& name = of.parameter.name;
    const Attributes clip{{"clip", options_.gradient_clip}};
    if (!factoring.exists()) {
      const ValueIndex squares = moment(of, "squares", of.full);
      const std::vector<ValueIndex> results = builder_.add_all(
          "adafactor_moment", {squares, of.gradient, scalars_, of.norm}, clip, name + ".squares.update");
      set_next(squares, results[0]);
      return {results[1]};
    }
    Attributes attributes = factoring.attributes();
    const std::vector<ValueIndex> sums =
        builder_.add_all("adafactor_sums", {of.gradient}, attributes, name + ".sums");
    attributes.set("clip", options_.gradient_clip);
    const ValueIndex rows = moment(of, "rows", builder_.type(sums[0])),
                     columns = moment(of, "columns", builder_.type(sums[1]));
    const std::vector<ValueIndex> results =
        builder_.add_all("adafactor_factors", {rows, columns, sums[0], sums[1], scalars_, of.norm},
                         attributes, name + ".factors");
    set_next(rows, results[0]);
    set_next(columns, results[1]);
    return {results[2], results[3]};
  }

  /// In several steps: libalpa/ops/adafactor.h says what each does.
  void update_by_adafactor(const Updated& of) {
    const Factoring factoring = Factoring::of(of.full.shape);
    const std::vector<ValueIndex> scales = adafactor_scales(of, factoring);
    const auto with_scales = [&](std::vector<ValueIndex> operands) {
      operands.insert(operands.end(), scales.begin(), scales.end());
      return operands;
    };
    Attributes attributes = factoring.attributes();
    attributes.set("size_q", std::int64_t{2});
    const ValueIndex squares =
        builder_.add("adafactor_squares", with_scales({of.parameter.value, of.gradient}), attributes,
                     of.parameter.name + ".step");
    attributes = factoring.attributes();
    attributes.set("elements", element_count(of.full.shape));
    attributes.set("weight_decay", of.decay);
    std::vector<ValueIndex> owners{of.weights};
    if (of.has_master()) owners.push_back(of.parameter.value);
    std::vector<ValueIndex> operands = owners;
    operands.insert(operands.end(), {of.gradient, squares, scalars_, of.norm});
    const std::vector<ValueIndex> results =
        builder_.add_all(of.has_master() ? "adafactor_master" : "adafactor", with_scales(operands),
                         attributes, of.parameter.name + ".update");
    for (std::size_t i = 0; i < owners.size(); ++i) set_next(owners[i], results[i]);
  }

  /// Gradients of values that need none (tokens, constants) were built and are dropped here.
  static Graph without_dead_nodes(Graph graph) {
    std::set<ValueIndex> live{graph.loss, graph.gradient_square_sum};
    for (const State& state : graph.states) live.insert(state.next);
    for (const Metric& metric : graph.metrics) live.insert(metric.values.begin(), metric.values.end());
    Indexed<NodeIndex, bool> keep(graph.nodes.size());
    for (const NodeIndex n : graph.nodes.reversed_indices()) {
      const Node& node = graph.nodes[n];
      for (const ValueIndex result : node.results) keep[n] = keep[n] || live.contains(result);
      if (keep[n]) live.insert(node.operands.begin(), node.operands.end());
    }
    Indexed<NodeIndex, Node> nodes;
    for (const NodeIndex n : graph.nodes.indices()) {
      if (!keep[n]) continue;
      for (const ValueIndex result : graph.nodes[n].results)
        graph.values[result].producer = NodeIndex(nodes.size());
      nodes.push_back(std::move(graph.nodes[n]));
    }
    graph.nodes = std::move(nodes);
    return graph;
  }

  const Graph& forward_;
  GraphBuilder builder_;
  const TrainingOptions& options_;
  ValueIndex scalars_;
  std::set<ValueIndex> dependent_;
  std::map<ValueIndex, std::vector<Contribution>> contributions_;
  std::vector<ParameterGradient> gradients_;  ///< in the order of the states
  bool joins_rows_ = false;
};

}  // namespace

Graph training_graph(const Graph& forward, OpCatalog catalog, const TrainingOptions& options) {
  return Differentiator(forward, catalog, options).run();
}

}  // namespace alpa
