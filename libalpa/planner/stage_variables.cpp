#include "libalpa/planner/stage_variables.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/planner/axis_roles.h"

namespace alpa {
namespace {

class Builder {
 public:
  Builder(const StageScope& scope, const StageRequest& request, const MeshPrices& prices)
      : scope_(scope), request_(request), prices_(prices) {}

  StageVariables build() {
    for (const int n : scope_.canonical_nodes()) clock_[n] = built_.clock++;
    for (const int n : scope_.canonical_nodes())
      if (!add_node(n)) return std::move(built_);
    for (const int v : scope_.values()) add_value(v);
    return std::move(built_);
  }

 private:
  StageVariable& variable(int index) { return built_.variables[static_cast<std::size_t>(index)]; }
  const NodeOption& option(int node, int choice) const {
    return prices_.options(node)[static_cast<std::size_t>(choice)];
  }

  int add_variable(StageVariable&& added) {
    const std::size_t choices = added.choices.size();
    added.cost.resize(choices, 0.0);
    added.fixed.resize(choices, 0);
    added.slot.resize(choices, 0);
    built_.variables.push_back(std::move(added));
    return static_cast<int>(built_.variables.size()) - 1;
  }

  bool add_node(int n) {
    const Node& node = scope_.node(n);
    StageVariable added;
    added.node = n;
    added.choices = allowed_options(scope_.planning(), n, prices_.options(n), request_);
    if (added.choices.empty()) {
      built_.why_not =
          fmt::format("no strategy of '{}' ({}) fits the mesh {}",
                      node.name.empty() ? node.op->name : node.name, node.op->name, mesh_text(request_.mesh));
      return false;
    }
    // A sum is done by the kernel of the gradient where that can accumulate.
    const int producer = scope_.value(node.operands[0]).producer;
    const bool fused = node.op->sums_micro_batches && producer >= 0 && scope_.node(producer).op->accumulates;
    const double runs = fused ? 0 : runs_per_step(request_, node.phase) * scope_.runs(n) * scope_.copies(n);
    for (const int o : added.choices) added.cost.push_back(runs * option(n, o).seconds + norm_seconds(n, o));
    built_.of_node[n] = add_variable(std::move(added));
    add_memory(n);
    return true;
  }

  double norm_seconds(int n, int o) const {
    double seconds = 0;
    for (const int i : scope_.planning().measured[static_cast<std::size_t>(n)]) {
      const std::size_t operand = static_cast<std::size_t>(i);
      const int layout = option(n, o).operands[operand];
      seconds += prices_.norm_seconds(scope_.node(n).operands[operand])[static_cast<std::size_t>(layout)];
    }
    return seconds * scope_.copies(n);
  }

  bool rests_on_state(const Node& node) const {
    return node.phase == Phase::update && node.op->overwrites[0] >= 0;
  }

  /// A value that lives no longer than its users need it.
  bool passes(int v) const {
    const Value& value = scope_.value(v);
    if (value.kind != ValueKind::computed || scope_.saved(v)) return false;
    if (!scope_.makes(v)) return true;
    const Node& producer = scope_.node(value.producer);
    return !producer.op->sums_micro_batches && !rests_on_state(producer);
  }

  void add_memory(int n) {
    const Node& node = scope_.node(n);
    StageVariable& added = variable(built_.of_node.at(n));
    const int count = scope_.copies(n), now = clock_.at(n);
    added.passing = {now, now + 1, {}};
    for (std::size_t c = 0; c < added.choices.size(); ++c) {
      const NodeOption& o = option(n, added.choices[c]);
      std::int64_t passing = o.workspace;
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        if (passes(node.operands[i]) &&
            !(node.phase == Phase::backward && scope_.made_again(node.operands[i])))
          passing += bytes(node.operands[i], o.operands[i]);
      for (std::size_t r = 0; r < node.results.size(); ++r) {
        const int v = node.results[r];
        const std::int64_t size = bytes(v, o.results[r]);
        if (node.op->sums_micro_batches) {
          added.fixed[c] += count * size;
        } else if (rests_on_state(node)) {
          const int state = scope_.planning().state_after[static_cast<std::size_t>(v)];
          const bool parameter =
              state >= 0 && scope_.graph().states[static_cast<std::size_t>(state)].is_parameter;
          added.fixed[c] += parameter ? 0 : count * size;  // those are counted where they rest
        } else if (scope_.saved(v) && scope_.users(v).size() <= 1) {
          added.slot[c] += count * size;
        } else {
          passing += size;
        }
      }
      added.passing.bytes.push_back(passing);
    }
    for (std::size_t r = 0; r < node.results.size(); ++r)
      if (scope_.made_again(node.results[r])) hold_again(added, node.results[r], n, r);
  }

  /// All that a layer's backward needs is there before it starts.
  void hold_again(StageVariable& added, int v, int n, std::size_t result) {
    int first = built_.clock, last = 0;
    for (const int other : scope_.canonical_nodes())
      if (scope_.node(other).phase == Phase::backward && scope_.node(other).layer == scope_.node(n).layer)
        first = std::min(first, clock_.at(other));
    for (const int user : scope_.users(v))
      if (scope_.node(user).phase == Phase::backward)
        last = std::max(last, clock_.at(scope_.canonical_node(user)) + 1);
    if (first >= last) return;
    Holding& again = added.again;
    again.begin = again.bytes.empty() ? first : std::min(again.begin, first);
    again.end = std::max(again.end, last);
    again.bytes.resize(added.choices.size(), 0);
    for (std::size_t c = 0; c < added.choices.size(); ++c)
      again.bytes[c] += bytes(v, option(n, added.choices[c]).results[result]);
  }

  std::int64_t bytes(int value, int layout) const { return prices_.layouts(value).bytes(layout); }

  std::vector<int> resting_candidates(int v) const {
    std::vector<int> layouts;
    const LayoutTable& table = prices_.layouts(v);
    const auto propose = [&](int layout) {
      if (scope_.leaves(v) && table.spec(layout).is_partial()) return;
      if (std::find(layouts.begin(), layouts.end(), layout) == layouts.end()) layouts.push_back(layout);
    };
    const Value& value = scope_.value(v);
    const int whole = table.find(replicated_spec(value.type.shape.size()));
    if (value.kind == ValueKind::state) {
      for (const int layout : prices_.resting(v))
        if (may_rest(table.spec(layout), request_)) propose(layout);
      if (layouts.empty()) propose(whole);
      return layouts;
    }
    if (scope_.makes(v)) {
      const int n = scope_.canonical_node(value.producer);
      const auto result = static_cast<std::size_t>(place_of(scope_.node(value.producer).results, v));
      for (const int o : built_.variables[static_cast<std::size_t>(built_.of_node.at(n))].choices)
        propose(option(n, o).results[result]);
    }
    for (const int user : scope_.users(v)) {
      const int n = scope_.canonical_node(user);
      const std::vector<int>& operands = scope_.node(user).operands;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i] == v)
          for (const int o : built_.variables[static_cast<std::size_t>(built_.of_node.at(n))].choices) {
            const int layout = option(n, o).operands[i];
            // Partial terms reach it from an operator of the same stage only: nothing partial crosses stages.
            if (!table.spec(layout).is_partial() || scope_.makes(v)) propose(layout);
          }
    }
    if (layouts.empty()) propose(whole);
    return layouts;
  }

  int layout_variable(int canonical, int v) {
    const auto known = built_.of_value.find(canonical);
    if (known != built_.of_value.end()) return known->second;
    StageVariable added;
    added.value = canonical;
    added.choices = resting_candidates(v);
    return built_.of_value[canonical] = add_variable(std::move(added));
  }

  void connect(int from, int from_place, int v, int canonical) {
    for (const int user : scope_.users(v)) {
      const std::vector<int>& operands = scope_.node(user).operands;
      const int to = built_.of_node.at(scope_.canonical_node(user));
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i] == v)
          built_.edges[{from, to, from_place, static_cast<int>(i), canonical, scope_.node(user).phase}] +=
              scope_.runs(scope_.canonical_node(user));
    }
  }

  /// Ties one value of the stage (folded or not) into the problem.
  void add_value(int v) {
    const Value& value = scope_.value(v);
    if (value.kind == ValueKind::input || v == scope_.graph().gradient_square_sum) return;
    const PlanningGraph& planning = scope_.planning();
    const int canonical = scope_.canonical_value(v);
    const bool made_here = scope_.makes(v), state = value.kind == ValueKind::state;
    const int from = made_here ? built_.of_node.at(scope_.canonical_node(value.producer)) : -1;
    const int place = made_here ? place_of(scope_.node(value.producer).results, v) : 0;
    if (const int s = planning.state_after[static_cast<std::size_t>(v)]; s >= 0) {
      // Flows into the resting layout of its state.
      const State& owner = scope_.graph().states[static_cast<std::size_t>(s)];
      if (!owner.is_parameter) return;
      const int to = layout_variable(scope_.canonical_value(owner.value), owner.value);
      ++built_.edges[{from, to, place, 0, canonical, Phase::update}];
      return;
    }
    if (state && !scope_.graph()
                      .states[static_cast<std::size_t>(planning.state_at[static_cast<std::size_t>(v)])]
                      .is_parameter)
      return;  // rests as its update wants it
    const bool several = state || !made_here || scope_.users(v).size() > 1 || scope_.leaves(v);
    if (!several || (made_here && scope_.node(value.producer).op->sums_micro_batches)) {
      connect(from, place, v, canonical);
      return;
    }
    const int layout = layout_variable(canonical, v);
    StageVariable& resting = variable(layout);
    for (std::size_t c = 0; c < resting.choices.size(); ++c) {
      const std::int64_t size = bytes(v, resting.choices[c]);
      if (state)
        resting.fixed[c] += size;
      else if (scope_.saved(v))
        resting.slot[c] += size;
      if (!made_here && !state)  // it comes from another stage
        resting.cost[c] +=
            request_.micro_batches * prices_.costs().send_seconds(true, static_cast<double>(size));
    }
    if (made_here)
      built_.edges[{from, layout, place, 0, canonical, scope_.node(value.producer).phase}] +=
          scope_.runs(scope_.canonical_node(value.producer));
    connect(layout, 0, v, canonical);
  }

  const StageScope& scope_;
  const StageRequest& request_;
  const MeshPrices& prices_;
  StageVariables built_;
  std::map<int, int> clock_;  ///< canonical node -> when it runs
};

}  // namespace

StageVariables stage_variables(const StageScope& scope, const StageRequest& request,
                               const MeshPrices& prices) {
  return Builder(scope, request, prices).build();
}

double runs_per_step(const StageRequest& request, Phase phase) {
  return phase == Phase::update ? 1 : request.micro_batches;
}

int layout_at_start(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                    const MeshPrices& prices) {
  const StageVariable& from = stage.variables[static_cast<std::size_t>(edge.from)];
  if (from.node < 0) return from.choices[choice];
  const NodeOption& option = prices.options(from.node)[static_cast<std::size_t>(from.choices[choice])];
  return option.results[static_cast<std::size_t>(edge.from_place)];
}

int layout_at_end(const StageVariables& stage, const StageEdge& edge, std::size_t choice,
                  const MeshPrices& prices) {
  const StageVariable& to = stage.variables[static_cast<std::size_t>(edge.to)];
  if (to.node < 0) return to.choices[choice];
  const NodeOption& option = prices.options(to.node)[static_cast<std::size_t>(to.choices[choice])];
  return option.operands[static_cast<std::size_t>(edge.to_place)];
}

}  // namespace alpa
