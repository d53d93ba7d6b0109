#include "libalpa/planner/stage_problem.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <fmt/core.h>

namespace alpa {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One variable of the selection problem: a node (with its strategies) or the resting layout of a value.
struct Variable {
  int node = -1;   ///< canonical node, or
  int value = -1;  ///< canonical value
  std::vector<Strategy> strategies;     ///< of a node
  std::vector<NodeLayout> layouts;      ///< of a node, per strategy
  std::vector<ShardingSpec> specs;      ///< of a value
  std::vector<double> cost;
  std::vector<std::int64_t> fixed, slot, transient;  ///< bytes per strategy
  int begin = 0, end = 0;               ///< life of the transient

  std::size_t choices() const { return cost.size(); }
};

class StageProblem {
 public:
  StageProblem(const PlanningGraph& planning, const StageRequest& request, const CostModel& costs)
      : planning_(planning), graph_(*planning.graph), request_(request), costs_(costs),
        conversions_(costs.cluster(), {request.first_device, request.mesh}) {}

  StageSolution solve(const SelectionOptions& options) {
    StageSolution solution;
    if (!build(solution)) return solution;
    const SelectionProblem problem = selection_problem();
    const SelectionSolution selected = solve_selection(problem, options);
    if (!selected.feasible) {
      solution.why_not = selected.proof;
      solution.least_memory = selected.least_memory;
      return solution;
    }
    solution.feasible = true;
    solution.lower_bound_s = selected.lower_bound;
    extract(selected.choice, solution);
    return solution;
  }

 private:
  struct EdgeKey {
    int from, to;      ///< variables
    int from_slot;     ///< result of `from` (0 for a layout)
    int to_slot;       ///< operand of `to`; result slot when `to` is the resting layout
    int value;         ///< canonical
    Phase phase;       ///< how often it is paid
    auto operator<=>(const EdgeKey&) const = default;
  };

  const Node& node_at(int n) const { return graph_.nodes[static_cast<std::size_t>(n)]; }
  bool in_stage(int node) const {
    const int layer = node_at(node).layer;
    return layer >= request_.first_layer && layer < request_.end_layer && !node_at(node).op->reduces_globally;
  }

  /// The first layer of the stage that equals this one stands for it.
  int canonical_layer(int layer) const {
    int first = request_.first_layer;
    while (planning_.classes.of_layer[static_cast<std::size_t>(first)] != planning_.classes.of_layer[static_cast<std::size_t>(layer)]) ++first;
    return first;
  }
  int canonical_node(int node) const {
    const int layer = canonical_layer(node_at(node).layer);
    return planning_.classes.layer_nodes[static_cast<std::size_t>(layer)][static_cast<std::size_t>(planning_.classes.place_in_layer[static_cast<std::size_t>(node)])];
  }
  int slot_of(const std::vector<int>& list, int value) const {
    return static_cast<int>(std::find(list.begin(), list.end(), value) - list.begin());
  }
  int canonical_value(int value) const {
    const Value& v = value_of(graph_, value);
    if (v.producer >= 0 && in_stage(v.producer))
      return node_at(canonical_node(v.producer)).results[static_cast<std::size_t>(slot_of(node_at(v.producer).results, value))];
    if (v.kind == ValueKind::state) {
      const auto at = canonical_state_.find(value);
      return at == canonical_state_.end() ? value : at->second;
    }
    return value;
  }

  double times(Phase phase) const {
    if (phase == Phase::update) return 1;
    return request_.micro_batches * (phase == Phase::forward && request_.rematerialize ? 2.0 : 1.0);
  }

  bool saved(int value) const {
    const Value& v = value_of(graph_, value);
    if (v.kind == ValueKind::state) return false;
    if (v.producer >= 0 && node_at(v.producer).phase != Phase::forward) return false;
    for (const int n : planning_.consumers[static_cast<std::size_t>(value)]) {
      if (!in_stage(n) || node_at(n).phase == Phase::update) continue;
      if (request_.rematerialize ? v.producer < 0 || node_at(n).layer != node_at(v.producer).layer : node_at(n).phase == Phase::backward)
        return true;
    }
    return false;
  }

  bool becomes_parameter(int value) const {
    for (const State& state : graph_.states)
      if (state.next == value) return state.is_parameter;
    return false;
  }

  bool updated_here(int state_value) const {
    for (const State& state : graph_.states)
      if (state.value == state_value) return state.next < 0 || in_stage(value_of(graph_, state.next).producer);
    return false;
  }

  std::vector<int> users_here(int value) const {
    std::vector<int> users;
    for (const int n : planning_.consumers[static_cast<std::size_t>(value)])
      if (in_stage(n)) users.push_back(n);
    return users;
  }
  bool leaves(int value) const {
    for (const int n : planning_.consumers[static_cast<std::size_t>(value)])
      if (!in_stage(n)) return true;
    return false;
  }

  bool build(StageSolution& solution);
  void map_states();
  bool allowed(const Node&, int node, const Strategy&, const ShardingRule&) const;
  bool add_node(int node, StageSolution& solution);
  int layout_variable(int value, const std::vector<ShardingSpec>& specs);
  std::vector<ShardingSpec> resting_candidates(int value) const;
  void add_value(int value);
  void connect(int value, int consumer, std::size_t operand);
  void add_edge(EdgeKey key) { ++edges_[key]; }
  bool may_rest(const ShardingSpec&) const;
  SelectionProblem selection_problem() const;
  std::vector<double> edge_costs(const EdgeKey&, double count) const;
  const ShardingSpec& spec_from(const EdgeKey&, std::size_t choice) const;
  const ShardingSpec& spec_to(const EdgeKey&, std::size_t choice) const;
  void extract(const std::vector<int>& choice, StageSolution&) const;
  ShardingSpec chosen_resting(int value, const std::vector<int>& choice) const;
  double chosen_cost(const std::vector<int>& choice, bool update) const;

  const PlanningGraph& planning_;
  const Graph& graph_;
  const StageRequest& request_;
  const CostModel& costs_;
  Conversions conversions_;
  std::vector<Variable> variables_;
  std::map<int, int> node_variable_;    ///< canonical node -> variable
  std::map<int, int> layout_variable_;  ///< canonical value -> variable
  std::map<int, int> canonical_state_;  ///< value of a state -> that of the folded layer
  std::map<EdgeKey, int> edges_;        ///< -> how many layers have it
  std::map<int, int> copies_;           ///< canonical node or value of a state -> how many it stands for
  int clock_ = 0;                       ///< position of nodes, for lives of transients
};

std::int64_t tile_bytes(const TensorType& whole, const ShardingSpec& spec, const MeshShape& mesh) {
  return byte_count(tile_type(whole, spec, mesh));
}

/// States of equal layers are the operands of equal nodes.
void StageProblem::map_states() {
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
    if (!in_stage(n)) continue;
    const Node& node = node_at(n);
    const Node& canonical = node_at(canonical_node(n));
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (value_of(graph_, node.operands[i]).kind == ValueKind::state)
        canonical_state_.emplace(node.operands[i], canonical.operands[i]);
  }
}

bool StageProblem::build(StageSolution& solution) {
  map_states();
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n)
    if (in_stage(n)) ++copies_[canonical_node(n)];
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::update})
    for (const auto& [n, count] : copies_)
      if (node_at(n).phase == phase && !add_node(n, solution)) return false;
  std::set<int> values;
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
    if (!in_stage(n)) continue;
    values.insert(node_at(n).operands.begin(), node_at(n).operands.end());
    values.insert(node_at(n).results.begin(), node_at(n).results.end());
  }
  for (const int v : values) add_value(v);
  return true;
}

/// Whether the roles of the axes and the spread of the state let the node do this.
bool StageProblem::allowed(const Node& node, int index, const Strategy& strategy, const ShardingRule& rule) const {
  const auto& roles = planning_.roles[static_cast<std::size_t>(index)];
  const auto has = [&](FactorRole role) {
    for (std::size_t f = 0; f < roles.size(); ++f)
      if (roles[f] == role && !rule.factors[f].whole && rule.factors[f].size > 1) return true;
    return false;
  };
  for (std::size_t axis = 0; axis < request_.roles.size(); ++axis) {
    const int choice = strategy[axis];
    const FactorRole split = choice >= 0 ? roles[static_cast<std::size_t>(choice)] : FactorRole::other;
    const AxisRole role = request_.roles[axis];
    if (role == AxisRole::tensor && split != FactorRole::other) return false;
    if (role != AxisRole::data && role != AxisRole::sequence) continue;
    const FactorRole wanted = role == AxisRole::data ? FactorRole::sample : FactorRole::sequence;
    if (has(wanted)) {
      if (split != wanted) return false;
      continue;
    }
    const bool update = node.phase == Phase::update;
    if (node.op->sums_micro_batches) {
      const bool spread = request_.spread >= StateSpread::gradients;
      if (request_.spread != StateSpread::free && !spread && choice != kPassPartialAxis) return false;
    } else if (update) {
      if (request_.spread == StateSpread::none && choice >= 0) return false;
    } else if (choice >= 0) {
      return false;
    }
  }
  return true;
}

bool StageProblem::add_node(int index, StageSolution& solution) {
  const Node& node = node_at(index);
  const std::vector<TensorType> types = operand_types(graph_, node);
  const OpCall call{types, node.attributes};
  const ShardingRule rule = rule_of(*node.op, call);
  Variable variable;
  variable.node = index;
  const int count = copies_.at(index);
  const bool rests_on_state = node.phase == Phase::update && node.op->overwrites[0] >= 0;
  std::vector<Strategy> candidates;
  for (Strategy& strategy : strategies(*node.op, call, request_.mesh))
    if (allowed(node, index, strategy, rule)) candidates.push_back(std::move(strategy));
  // ZeRO spreads over the data axes all that divides; the rest stays whole.
  const bool spread_here = (node.op->sums_micro_batches && request_.spread >= StateSpread::gradients) ||
                           (rests_on_state && request_.spread >= StateSpread::optimizer);
  if (spread_here && request_.spread != StateSpread::free) {
    const auto splits_data = [&](const Strategy& s) {
      for (std::size_t axis = 0; axis < request_.roles.size(); ++axis)
        if (request_.roles[axis] == AxisRole::data && s[axis] < 0) return false;
      return true;
    };
    if (std::any_of(candidates.begin(), candidates.end(), splits_data))
      std::erase_if(candidates, [&](const Strategy& s) { return !splits_data(s); });
  }
  for (Strategy& strategy : candidates) {
    NodeLayout layout = layout_of(*node.op, call, strategy, request_.mesh);
    const Work work{flops_of(*node.op, layout.local_call()), static_cast<double>(bytes_moved_by(*node.op, layout.local_call())), layout.local_operands[0].dtype};
    // A sum is done by the kernel of the gradient where that can accumulate.
    const int producer = value_of(graph_, node.operands[0]).producer;
    const bool fused = node.op->sums_micro_batches && producer >= 0 && node_at(producer).op->accumulates;
    variable.cost.push_back(fused ? 0 : times(node.phase) * count * costs_.operator_seconds(signature_of(*node.op, layout.local_call()), work));
    std::int64_t fixed = 0, slot = 0, transient = workspace_of(*node.op, layout.local_call());
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const std::int64_t bytes = byte_count(layout.local_results[r]);
      if (node.op->sums_micro_batches)
        fixed += count * bytes;
      else if (rests_on_state)
        fixed += becomes_parameter(node.results[r]) ? 0 : count * bytes;  // those are counted where they rest
      else if (saved(node.results[r]) && users_here(node.results[r]).size() <= 1)
        slot += count * bytes;
      else
        transient += bytes;
    }
    variable.fixed.push_back(fixed);
    variable.slot.push_back(slot);
    variable.transient.push_back(transient);
    variable.layouts.push_back(std::move(layout));
    variable.strategies.push_back(std::move(strategy));
  }
  if (variable.choices() == 0) {
    solution.why_not = fmt::format("no strategy of '{}' ({}) fits the mesh {}", node.name.empty() ? node.op->name : node.name, node.op->name, mesh_text(request_.mesh));
    return false;
  }
  variable.begin = clock_++;
  variable.end = clock_;
  node_variable_[index] = static_cast<int>(variables_.size());
  variables_.push_back(std::move(variable));
  return true;
}

/// A parameter is spread over the data axes or whole along them, as the request says.
bool StageProblem::may_rest(const ShardingSpec& spec) const {
  if (request_.spread == StateSpread::free) return true;
  for (std::size_t axis = 0; axis < request_.roles.size(); ++axis) {
    if (request_.roles[axis] != AxisRole::data && request_.roles[axis] != AxisRole::sequence) continue;
    bool split = false;
    for (const auto& axes : spec.axes) split = split || std::find(axes.begin(), axes.end(), static_cast<int>(axis)) != axes.end();
    if (split != (request_.spread == StateSpread::parameters && request_.roles[axis] == AxisRole::data)) return false;
  }
  return true;
}

std::vector<ShardingSpec> StageProblem::resting_candidates(int value) const {
  const Value& v = value_of(graph_, value);
  std::vector<ShardingSpec> specs;
  const auto propose = [&](const ShardingSpec& spec) {
    if (leaves(value) && spec.is_partial()) return;
    if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
  };
  if (v.kind == ValueKind::state) {
    for (const ShardingSpec& spec : all_specs(v.type.shape, request_.mesh))
      if (may_rest(spec)) propose(spec);
    if (specs.empty()) propose(replicated_spec(v.type.shape.size()));
    return specs;
  }
  if (v.producer >= 0 && in_stage(v.producer)) {
    const Variable& producer = variables_[static_cast<std::size_t>(node_variable_.at(canonical_node(v.producer)))];
    const std::size_t result = static_cast<std::size_t>(slot_of(node_at(v.producer).results, value));
    for (const NodeLayout& layout : producer.layouts) propose(layout.results[result]);
  }
  for (const int user : users_here(value)) {
    const Variable& consumer = variables_[static_cast<std::size_t>(node_variable_.at(canonical_node(user)))];
    for (std::size_t i = 0; i < node_at(user).operands.size(); ++i)
      if (node_at(user).operands[i] == value)
        for (const NodeLayout& layout : consumer.layouts)
          if (!layout.operands[i].is_partial() || v.producer >= 0) propose(layout.operands[i]);
  }
  if (specs.empty()) propose(replicated_spec(v.type.shape.size()));
  return specs;
}

int StageProblem::layout_variable(int canonical, const std::vector<ShardingSpec>& specs) {
  const auto known = layout_variable_.find(canonical);
  if (known != layout_variable_.end()) return known->second;
  Variable variable;
  variable.value = canonical;
  variable.specs = specs;
  variable.cost.assign(specs.size(), 0.0);
  variable.fixed.assign(specs.size(), 0);
  variable.slot.assign(specs.size(), 0);
  variable.transient.assign(specs.size(), 0);
  layout_variable_[canonical] = static_cast<int>(variables_.size());
  variables_.push_back(std::move(variable));
  return static_cast<int>(variables_.size()) - 1;
}

/// Ties one value of the stage (folded or not) into the problem.
void StageProblem::add_value(int value) {
  const Value& v = value_of(graph_, value);
  if (v.kind == ValueKind::input) return;
  const std::vector<int> users = users_here(value);
  const bool state = v.kind == ValueKind::state;
  const bool made_here = v.producer >= 0 && in_stage(v.producer);
  if (value == graph_.gradient_square_sum) return;
  const int canonical = canonical_value(value);
  int state_index = -1, next_of = -1;
  for (int s = 0; s < static_cast<int>(graph_.states.size()); ++s) {
    if (graph_.states[static_cast<std::size_t>(s)].value == value) state_index = s;
    if (graph_.states[static_cast<std::size_t>(s)].next == value) next_of = s;
  }
  if (next_of >= 0) {  // flows into the resting layout of its state
    const State& owner = graph_.states[static_cast<std::size_t>(next_of)];
    if (!owner.is_parameter) return;
    const int to = layout_variable(canonical_value(owner.value), resting_candidates(owner.value));
    add_edge({node_variable_.at(canonical_node(v.producer)), to, slot_of(node_at(v.producer).results, value), 0, canonical, Phase::update});
    return;
  }
  if (state && !graph_.states[static_cast<std::size_t>(state_index)].is_parameter) return;  // rests as its update wants it
  const bool several = state || !made_here || users.size() > 1 || leaves(value);
  const bool sum = made_here && node_at(v.producer).op->sums_micro_batches;
  if (!several || sum) {
    for (const int user : users)
      for (std::size_t i = 0; i < node_at(user).operands.size(); ++i)
        if (node_at(user).operands[i] == value)
          add_edge({node_variable_.at(canonical_node(v.producer)), node_variable_.at(canonical_node(user)),
                    slot_of(node_at(v.producer).results, value), static_cast<int>(i), canonical, node_at(user).phase});
    return;
  }
  const int layout = layout_variable(canonical, resting_candidates(value));
  Variable& variable = variables_[static_cast<std::size_t>(layout)];
  for (std::size_t c = 0; c < variable.specs.size(); ++c) {
    const std::int64_t bytes = tile_bytes(v.type, variable.specs[c], request_.mesh);
    if (state)
      variable.fixed[c] += bytes;
    else if (saved(value))
      variable.slot[c] += bytes;
    if (!made_here && !state)  // it comes from another stage
      variable.cost[c] += request_.micro_batches * costs_.send_seconds(true, static_cast<double>(bytes));
  }
  if (made_here)
    add_edge({node_variable_.at(canonical_node(v.producer)), layout, slot_of(node_at(v.producer).results, value), 0, canonical, node_at(v.producer).phase});
  for (const int user : users)
    for (std::size_t i = 0; i < node_at(user).operands.size(); ++i)
      if (node_at(user).operands[i] == value)
        add_edge({layout, node_variable_.at(canonical_node(user)), 0, static_cast<int>(i), canonical, node_at(user).phase});
}

const ShardingSpec& StageProblem::spec_from(const EdgeKey& key, std::size_t choice) const {
  const Variable& v = variables_[static_cast<std::size_t>(key.from)];
  return v.node >= 0 ? v.layouts[choice].results[static_cast<std::size_t>(key.from_slot)] : v.specs[choice];
}

const ShardingSpec& StageProblem::spec_to(const EdgeKey& key, std::size_t choice) const {
  const Variable& v = variables_[static_cast<std::size_t>(key.to)];
  return v.node >= 0 ? v.layouts[choice].operands[static_cast<std::size_t>(key.to_slot)] : v.specs[choice];
}

std::vector<double> StageProblem::edge_costs(const EdgeKey& key, double count) const {
  const std::size_t rows = variables_[static_cast<std::size_t>(key.from)].choices();
  const std::size_t columns = variables_[static_cast<std::size_t>(key.to)].choices();
  const TensorType& whole = value_of(graph_, key.value).type;
  std::map<std::pair<ShardingSpec, ShardingSpec>, double> known;
  std::vector<double> costs;
  costs.reserve(rows * columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const ShardingSpec &from = spec_from(key, r), &to = spec_to(key, c);
      if (from == to) {
        costs.push_back(0);
        continue;
      }
      auto at = known.find({from, to});
      if (at == known.end()) at = known.emplace(std::pair(from, to), conversions_.seconds(whole, from, to, costs_)).first;
      costs.push_back(at->second * times(key.phase) * count);
    }
  return costs;
}

SelectionProblem StageProblem::selection_problem() const {
  SelectionProblem problem;
  for (const Variable& variable : variables_) {
    SelectionProblem::Node node;
    node.cost = variable.cost;
    for (std::size_t c = 0; c < variable.choices(); ++c) {
      const std::int64_t lasting = variable.fixed[c] + request_.in_flight * variable.slot[c];
      node.memory.push_back(lasting > 0 ? lasting : variable.transient[c]);
    }
    const bool lasts = std::any_of(variable.fixed.begin(), variable.fixed.end(), [](std::int64_t b) { return b > 0; }) ||
                       std::any_of(variable.slot.begin(), variable.slot.end(), [](std::int64_t b) { return b > 0; });
    node.begin = lasts ? 0 : variable.begin;
    node.end = lasts ? std::max(clock_, 1) : variable.end;
    problem.nodes.push_back(std::move(node));
  }
  for (const auto& [key, count] : edges_) {
    if (key.from == key.to) continue;
    problem.edges.push_back({key.from, key.to, edge_costs(key, count)});
  }
  problem.memory_limit = costs_.cluster().memory_bytes;
  return problem;
}

ShardingSpec StageProblem::chosen_resting(int value, const std::vector<int>& choice) const {
  const Value& v = value_of(graph_, value);
  const int canonical = canonical_value(value);
  const auto layout = layout_variable_.find(canonical);
  if (layout != layout_variable_.end()) {
    const Variable& variable = variables_[static_cast<std::size_t>(layout->second)];
    return variable.specs[static_cast<std::size_t>(choice[static_cast<std::size_t>(layout->second)])];
  }
  for (const State& state : graph_.states)
    if (state.next == value) return chosen_resting(state.value, choice);
  if (v.kind == ValueKind::state) {  // optimizer state: as its update takes it
    for (const int user : users_here(value)) {
      const int variable = node_variable_.at(canonical_node(user));
      const Variable& update = variables_[static_cast<std::size_t>(variable)];
      return update.layouts[static_cast<std::size_t>(choice[static_cast<std::size_t>(variable)])]
          .operands[static_cast<std::size_t>(slot_of(node_at(user).operands, value))];
    }
  }
  if (v.producer >= 0 && in_stage(v.producer)) {
    const int variable = node_variable_.at(canonical_node(v.producer));
    return variables_[static_cast<std::size_t>(variable)].layouts[static_cast<std::size_t>(choice[static_cast<std::size_t>(variable)])]
        .results[static_cast<std::size_t>(slot_of(node_at(v.producer).results, value))];
  }
  return replicated_spec(v.type.shape.size());
}

double StageProblem::chosen_cost(const std::vector<int>& choice, bool update) const {
  double seconds = 0;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const bool once = variables_[i].node >= 0 && node_at(variables_[i].node).phase == Phase::update;
    if (once == update) seconds += variables_[i].cost[static_cast<std::size_t>(choice[i])];
  }
  for (const auto& [key, count] : edges_) {
    if ((key.phase == Phase::update) != update) continue;
    const ShardingSpec& from = spec_from(key, static_cast<std::size_t>(choice[static_cast<std::size_t>(key.from)]));
    const ShardingSpec& to = spec_to(key, static_cast<std::size_t>(choice[static_cast<std::size_t>(key.to)]));
    seconds += times(key.phase) * count * conversions_.seconds(value_of(graph_, key.value).type, from, to, costs_);
  }
  return seconds;
}

void StageProblem::extract(const std::vector<int>& choice, StageSolution& solution) const {
  std::set<int> values;
  for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
    if (!in_stage(n)) continue;
    const int variable = node_variable_.at(canonical_node(n));
    solution.node_strategy[n] = variables_[static_cast<std::size_t>(variable)].strategies[static_cast<std::size_t>(choice[static_cast<std::size_t>(variable)])];
    values.insert(node_at(n).operands.begin(), node_at(n).operands.end());
    values.insert(node_at(n).results.begin(), node_at(n).results.end());
  }
  for (const int v : values) {
    const Value& value = value_of(graph_, v);
    if (value.kind == ValueKind::input || v == graph_.gradient_square_sum) continue;
    const bool made_here = value.producer >= 0 && in_stage(value.producer);
    if (made_here || (value.kind == ValueKind::state && updated_here(v)))
      solution.value_layout[v] = chosen_resting(v, choice);
    else
      solution.arriving[v] = chosen_resting(v, choice);
  }
  solution.update_s = chosen_cost(choice, true);
  solution.micro_batch_s = chosen_cost(choice, false) / request_.micro_batches;
  std::int64_t transient = 0;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const std::size_t c = static_cast<std::size_t>(choice[i]);
    solution.fixed_bytes += variables_[i].fixed[c];
    solution.slot_bytes += variables_[i].slot[c];
    transient = std::max(transient, variables_[i].transient[c]);
  }
  solution.fixed_bytes += transient;
}

}  // namespace

PlanningGraph prepare(const Graph& graph) {
  PlanningGraph planning{&graph, classify_layers(graph), factor_roles(graph), std::vector<std::vector<int>>(graph.values.size())};
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const Node& node = graph.nodes[static_cast<std::size_t>(n)];
    if (node.op->reduces_globally) continue;
    for (const int operand : node.operands) {
      auto& users = planning.consumers[static_cast<std::size_t>(operand)];
      if (users.empty() || users.back() != n) users.push_back(n);
    }
  }
  return planning;
}

StageSolution solve_stage(const PlanningGraph& planning, const StageRequest& request, const CostModel& costs, const SelectionOptions& options) {
  return StageProblem(planning, request, costs).solve(options);
}

}  // namespace alpa
