#include "libalpa/planner/stage/stage_variables.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "libalpa/planner/stage/axis_roles.h"

namespace alpa {
namespace {

class Builder {
 public:
  Builder(const StageScope& scope, const StageRequest& request, const MeshCosts& mesh_costs)
      : scope_(scope), request_(request), mesh_costs_(mesh_costs) {}

  StageVariables build() {
    for (const ValueIndex v : scope_.values()) note_needs(v);
    for (const NodeIndex n : scope_.canonical_nodes())
      if (!add_node(n)) return std::move(built_);
    for (const ValueIndex v : scope_.values()) add_value(v);
    return std::move(built_);
  }

 private:
  const StageLimits& limits() const { return scope_.planning().limits; }
  StageVariable& variable(int index) { return built_.variables[index]; }
  const NodeOption& option(NodeIndex node, int choice) const { return mesh_costs_.options(node)[choice]; }

  int add_variable(StageVariable&& added) {
    const std::size_t choices = added.choices.size();
    added.cost.resize(choices, 0.0);
    added.once.resize(choices, 0.0);
    added.resident.resize(choices, 0);
    added.per_micro_batch.resize(choices, 0);
    built_.variables.push_back(std::move(added));
    return static_cast<int>(built_.variables.size()) - 1;
  }

  bool add_node(NodeIndex n) {
    const Node& node = scope_.node(n);
    StageVariable added;
    added.node = n;
    added.choices = allowed_options(scope_.planning(), n, mesh_costs_.options(n), request_);
    const bool fits_mesh = !added.choices.empty();
    std::erase_if(added.choices, [&](int o) { return !is_within_limits(n, option(n, o)); });
    if (added.choices.empty()) {
      built_.why_not = fmt::format("no strategy of '{}' ({}) fits the mesh {}{}",
                                   node.name.empty() ? node.op->name : node.name, node.op->name,
                                   mesh_text(request_.mesh), fits_mesh ? " and the constraints" : "");
      return false;
    }
    added.sums_in_kernel = scope_.kernel_of_sum(n) >= 0;
    const double runs = added.sums_in_kernel ? 0
                                             : runs_per_step(request_, node.phase) *
                                                   (scope_.runs_again(n) ? 2 : 1) * scope_.copies(n);
    for (const int o : added.choices) added.cost.push_back(runs * option(n, o).seconds + norm_seconds(n, o));
    built_.of_node[n] = add_variable(std::move(added));
    add_memory(n);
    return true;
  }

  bool is_within_limits(NodeIndex n, const NodeOption& o) const {
    if (tensor_parallel_devices(scope_.node(n), scope_.planning().roles[n], o.strategy, request_.mesh) >
        limits().most_tensor_parallel)
      return false;
    const std::vector<ValueIndex>& made = scope_.node(n).results;
    for (std::size_t r = 0; r < made.size(); ++r)
      if (limits().against(made[r], mesh_costs_.layouts(made[r]).spec(o.results[r])) != nullptr) return false;
    return true;
  }

  /// A value is limited where it is made, or updated.
  void keep_within_limits(ValueIndex v, std::vector<int>& layouts) {
    const bool is_here = scope_.makes(v) || (scope_.value(v).kind == ValueKind::state && scope_.updates(v));
    if (!is_here || limits().forms_of(v).empty()) return;
    const auto against = [&](int layout) { return limits().against(v, mesh_costs_.layouts(v).spec(layout)); };
    const TensorForm* first = against(layouts.front());
    std::erase_if(layouts, [&](int layout) { return against(layout) != nullptr; });
    if (layouts.empty())
      built_.why_not = fmt::format("'{}' on the mesh {} violates {}", scope_.value(v).name,
                                   mesh_text(request_.mesh), first->constraint);
  }

  double norm_seconds(NodeIndex n, int o) const {
    double seconds = 0;
    for (const int i : scope_.planning().uses.measured[n])
      seconds += mesh_costs_.norm_seconds(scope_.node(n).operands[i])[option(n, o).operands[i]];
    return seconds * scope_.copies(n);
  }

  /// Of what the node makes, all that lasts longer than its segment.
  void add_memory(NodeIndex n) {
    const Node& node = scope_.node(n);
    StageVariable& added = variable(built_.of_node.at(n));
    const int count = scope_.copies(n);
    for (std::size_t c = 0; c < added.choices.size(); ++c) {
      const NodeOption& o = option(n, added.choices[c]);
      for (std::size_t r = 0; r < node.results.size(); ++r) {
        const ValueIndex v = node.results[r];
        const std::int64_t size = mesh_costs_.layouts(v).bytes(o.results[r]);
        if (node.op->sums_micro_batches || scope_.planning().uses.summed_over_step[v]) {
          added.resident[c] += count * size;
        } else if (const StateIndex state = scope_.planning().uses.state_after_value(v); state >= 0) {
          if (scope_.planning().rests_as_updated(state)) added.resident[c] += count * size;
        } else if (scope_.stays(v) && !needs_.at(scope_.canonical_value(v)).rest) {
          added.per_micro_batch[c] += count * size;
        }
      }
    }
  }

  double tile_bytes(ValueIndex v, int layout) const {
    const LayoutTable& table = mesh_costs_.layouts(v);
    return static_cast<double>(byte_count(tile_type(table.whole(), table.spec(layout), request_.mesh)));
  }

  /// What a value or one that is folded into it needs variables for.
  struct Needs {
    bool rest = false;         ///< it outlives the segment that makes it, and not just as it is made
    bool leaves = false;       ///< to another stage
    std::set<Phase> segments;  ///< in which several things are made of it
  };

  void note_needs(ValueIndex v) {
    const Value& value = scope_.value(v);
    if (scope_.planning().uses.state_after_value(v) >= 0) return;
    if (scope_.makes(v) && scope_.node(value.producer).op->sums_micro_batches) return;
    Needs& needs = needs_[scope_.canonical_value(v)];
    std::size_t all = 0;
    for (const Phase segment : {Phase::forward, Phase::backward}) all += scope_.uses_in(v, segment).size();
    const bool rests = !scope_.makes(v) || scope_.leaves(v) || (scope_.saved(v) && all > 1);
    needs.rest = needs.rest || rests;
    needs.leaves = needs.leaves || scope_.leaves(v);
    for (const Phase segment : {Phase::forward, Phase::backward})
      if (scope_.uses_in(v, segment).size() > 1) needs.segments.insert(segment);
  }

  static void propose(int layout, std::vector<int>& layouts) {
    if (std::find(layouts.begin(), layouts.end(), layout) == layouts.end()) layouts.push_back(layout);
  }

  void propose_as_made(ValueIndex v, std::vector<int>& layouts) const {
    if (!scope_.makes(v)) return;
    const NodeIndex producer = scope_.value(v).producer, n = scope_.canonical_node(producer);
    const auto result = static_cast<std::size_t>(place_of(scope_.node(producer).results, v));
    for (const int o : built_.variables[built_.of_node.at(n)].choices)
      propose(option(n, o).results[result], layouts);
  }

  void propose_as_used(ValueIndex v, std::span<const StageScope::Use> uses, std::vector<int>& layouts) const {
    for (const auto& [user, operand] : uses) {
      const NodeIndex n = scope_.canonical_node(user);
      for (const int o : built_.variables[built_.of_node.at(n)].choices) {
        const int layout = option(n, o).operands[operand];
        // Partial terms reach it from an operator of the same stage only: nothing partial crosses stages.
        if (!mesh_costs_.layouts(v).spec(layout).is_partial() || scope_.makes(v)) propose(layout, layouts);
      }
    }
  }

  std::vector<int> resting_candidates(ValueIndex v) {
    std::vector<int> layouts;
    const LayoutTable& table = mesh_costs_.layouts(v);
    const Value& value = scope_.value(v);
    const int whole = table.find(replicated_spec(value.type.shape.size()));
    if (value.kind == ValueKind::input) {
      propose(whole, layouts);
    } else if (value.kind == ValueKind::state) {
      for (const int layout : mesh_costs_.resting(v))
        if (may_rest(table.spec(layout), request_)) propose(layout, layouts);
    } else {
      propose_as_made(v, layouts);
      for (const Phase segment : {Phase::forward, Phase::backward, Phase::update})
        propose_as_used(v, scope_.uses_in(v, segment), layouts);
      if (needs_.at(scope_.canonical_value(v)).leaves)
        std::erase_if(layouts, [&](int layout) { return table.spec(layout).is_partial(); });
    }
    if (layouts.empty()) propose(whole, layouts);
    keep_within_limits(v, layouts);
    return layouts;
  }

  /// Of the layout in which a value rests.
  int layout_variable(ValueIndex canonical, ValueIndex v) {
    const auto known = built_.of_value.find(canonical);
    if (known != built_.of_value.end()) return known->second;
    StageVariable added;
    added.value = canonical;
    added.choices = resting_candidates(v);
    const Value& value = scope_.value(v);
    if (value.producer >= 0 && scope_.makes(v) &&
        needs_[canonical].segments.contains(scope_.node(value.producer).phase)) {
      std::vector<int> as_made;
      propose_as_made(v, as_made);
      std::erase_if(as_made, [&](int layout) {
        return std::ranges::find(added.choices, layout) == added.choices.end();
      });
      added.as_made.assign(added.choices.size(), false);
      added.as_made.resize(added.choices.size() + as_made.size(), true);
      added.choices.insert(added.choices.end(), as_made.begin(), as_made.end());
    }
    return built_.of_value[canonical] = add_variable(std::move(added));
  }

  /// Of the layout from which all users of a segment start.
  int segment_variable(ValueIndex canonical, ValueIndex v, Phase segment) {
    const auto known = built_.of_segment.find({canonical, segment});
    if (known != built_.of_segment.end()) return known->second;
    StageVariable added;
    added.value = canonical;
    added.segment = segment;
    if (scope_.made_in(v, segment))
      propose_as_made(v, added.choices);
    else
      added.choices = resting_candidates(v);
    propose_as_used(v, scope_.uses_in(v, segment), added.choices);
    if (scope_.value(v).kind == ValueKind::computed) keep_within_limits(v, added.choices);
    if (scope_.lasts(v) && needs_[canonical].rest) {
      added.at_rest.assign(added.choices.size(), false);
      std::vector<int> at_rest = variable(built_.of_value.at(canonical)).choices;  // as made may come twice
      std::ranges::sort(at_rest);
      at_rest.erase(std::unique(at_rest.begin(), at_rest.end()), at_rest.end());
      added.choices.insert(added.choices.end(), at_rest.begin(), at_rest.end());
      added.at_rest.resize(added.choices.size(), true);
    }
    return built_.of_segment[{canonical, segment}] = add_variable(std::move(added));
  }

  /// What a variable decides of a value: a node's result or operand, or the value's own layout.
  struct Source {
    int variable = -1, place = 0;
    bool is_operand = false;
  };

  void flow(const Source& from, int to, ValueIndex v, Phase segment, int to_place = 0, NodeIndex user = {}) {
    const ValueIndex canonical = scope_.canonical_value(v);
    const bool joins = segment == Phase::update && !from.is_operand && scope_.may_be_in_bucket(v);
    StageFlow& flow = built_.edges[{from.variable, to, from.place, from.is_operand, to_place, canonical,
                                    segment, joins, !from.is_operand && scope_.is_summed_early(v)}];
    const bool is_first = flow.count++ == 0;
    if (user >= 0) flow.stays = flow.stays && scope_.node(user).layer == scope_.home_layer(v);
    if (is_first || (v == canonical && flow.value != canonical)) flow.value = v, flow.user = user;
  }

  void connect(Source from, ValueIndex v, Phase segment) {
    const std::span<const StageScope::Use> in_order = scope_.uses_in(v, segment);
    std::vector<StageScope::Use> uses(in_order.begin(), in_order.end());
    const bool from_last = segment == Phase::update && scope_.value(v).kind != ValueKind::input;
    if (from_last) std::ranges::reverse(uses);
    for (const auto& [user, operand] : uses) {
      const int to = built_.of_node.at(scope_.canonical_node(user));
      // But for the node itself that updates a state where it rests.
      if (!from_last || from.is_operand || to != from.variable) flow(from, to, v, segment, operand, user);
      if (from_last && !from.is_operand) from = {to, operand, true};
    }
  }

  /// An input is loaded whole in each segment that takes it, but for what the forward saved for the backward.
  void add_input(ValueIndex v) {
    const int index = layout_variable(v, v);
    StageVariable& loaded = variable(index);
    std::set<Phase> loading;
    for (const NodeIndex user : scope_.users(v)) loading.insert(scope_.node(user).phase);
    if (scope_.saved(v)) {
      loading.erase(Phase::backward);
      loaded.per_micro_batch[0] += mesh_costs_.layouts(v).bytes(loaded.choices[0]);
    }
    const double seconds = mesh_costs_.costs().copy_seconds(tile_bytes(v, loaded.choices[0]));
    for (const Phase phase : loading)
      if (phase == Phase::update)
        loaded.pay_once(0, seconds);
      else
        loaded.cost[0] += runs_per_step(request_, phase) * seconds;
    for (const Phase segment : {Phase::forward, Phase::backward, Phase::update}) {
      Source start{index};
      if (needs_.at(v).segments.contains(segment)) {
        const int own = segment_variable(v, v, segment);
        flow(start, own, v, segment);
        start = {own};
      }
      connect(start, v, segment);
    }
  }

  /// How often it comes from another stage in a step.
  double arrivals_of(ValueIndex v) const {
    const Value& value = scope_.value(v);
    if (value.kind == ValueKind::state) return scope_.updates(v) ? 0 : 1;
    if (scope_.makes(v)) return 0;
    return runs_per_step(request_, phase_of_transfer(scope_.graph(), v));
  }

  /// Of a tile in that layout on each device, unpacked.
  double arrival_seconds(ValueIndex v, int layout) const {
    const CostModel& costs = mesh_costs_.costs();
    const ValueIndex made = scope_.value(v).kind == ValueKind::state ? scope_.next_of_state(v) : v;
    const bool is_earlier =
        made >= 0 && scope_.node(scope_.value(made).producer).layer < request_.first_layer;
    const bool is_apart = is_earlier ? request_.sides.before_is_apart : request_.sides.after_is_apart;
    const double bytes = tile_bytes(v, layout), unpacked_s = costs.copy_seconds(bytes);
    if (!is_apart) return costs.send_seconds(true, bytes) + unpacked_s;
    const int active = devices_on_node(request_.mesh, costs.cluster().devices_per_node);
    const int different = different_tiles(mesh_costs_.layouts(v).spec(layout), request_.mesh, active);
    return costs.arrival_seconds(bytes, different, active) + unpacked_s;
  }

  /// What is no parameter rests as its update takes it; others start from there.
  void add_state_of_update(ValueIndex v, const State& state) {
    if (!scope_.makes(state.next)) return;
    const NodeIndex update = scope_.value(state.next).producer;
    const Source rest{built_.of_node.at(scope_.canonical_node(update)),
                      place_of(scope_.node(update).results, state.next)};
    for (const Phase segment : {Phase::forward, Phase::backward, Phase::update}) connect(rest, v, segment);
  }

  /// Ties one value of the stage (folded or not) into the problem.
  void add_value(ValueIndex v) {
    const Value& value = scope_.value(v);
    if (v == scope_.graph().gradient_square_sum) return;
    if (value.kind == ValueKind::input) return add_input(v);
    const PlanningGraph& planning = scope_.planning();
    const ValueIndex canonical = scope_.canonical_value(v);
    const bool made_here = scope_.makes(v), state = value.kind == ValueKind::state;
    const int from = made_here ? built_.of_node.at(scope_.canonical_node(value.producer)) : -1;
    const int place = made_here ? place_of(scope_.node(value.producer).results, v) : 0;
    if (const StateIndex s = planning.uses.state_after_value(v); s >= 0) {
      const State& owner = scope_.graph().states[s];
      if (!owner.is_parameter) return connect({from, place}, v, Phase::update);
      const int to = layout_variable(scope_.canonical_value(owner.value), owner.value);
      return flow({from, place}, to, v, Phase::update);  // into the resting layout of its state
    }
    if (state) {
      const State& own = scope_.graph().states[planning.uses.state_at[v]];
      if (!own.is_parameter && own.next >= 0) return add_state_of_update(v, own);
    }
    const Source made{from, place};
    if (made_here && scope_.node(value.producer).op->sums_micro_batches) {
      if (scope_.leaves(v)) {
        StageVariable& sum = variable(from);
        for (std::size_t c = 0; c < sum.choices.size(); ++c)
          sum.pay_once(c, mesh_costs_.reduction_seconds(v, option(sum.node, sum.choices[c]).results[0]));
      }
      for (const Phase segment : {Phase::backward, Phase::update}) connect(made, v, segment);
      return;
    }
    const Needs& needs = needs_.at(canonical);
    Source rest;
    if (needs.rest) {
      rest.variable = layout_variable(canonical, v);
      StageVariable& resting = variable(rest.variable);
      const double arrivals = arrivals_of(v);
      const bool arrives_once = arrivals > 0 && phase_of_transfer(scope_.graph(), v) == Phase::update;
      for (std::size_t c = 0; c < resting.choices.size(); ++c) {
        const std::int64_t size = mesh_costs_.layouts(v).bytes(resting.choices[c]);
        if (state)
          resting.resident[c] += scope_.is_fetched(v) ? 0 : size;
        else if (scope_.stays(v))
          resting.per_micro_batch[c] += size;
        const double seconds = arrival_seconds(v, resting.choices[c]);
        if (arrives_once)
          resting.pay_once(c, seconds);
        else
          resting.cost[c] += arrivals * seconds;
      }
      if (made_here) flow(made, rest.variable, v, scope_.node(value.producer).phase);
    }
    for (const Phase segment : {Phase::forward, Phase::backward, Phase::update}) {
      const bool makes = made_here && scope_.node(value.producer).phase == segment,
                 has_own = needs.segments.contains(segment);
      // What is made and rests is first brought to rest, unless the segment has a layout of its own.
      const bool from_maker = scope_.made_in(v, segment) && !(makes && needs.rest && !has_own);
      Source start = from_maker || !needs.rest ? made : rest;
      if (has_own) {
        const int own = segment_variable(canonical, v, segment);
        flow(start, own, v, segment);
        if (makes && needs.rest) flow({own}, rest.variable, v, segment);
        start = {own};
      }
      connect(start, v, segment);
    }
  }

  const StageScope& scope_;
  const StageRequest& request_;
  const MeshCosts& mesh_costs_;
  StageVariables built_;
  std::map<ValueIndex, Needs> needs_;  ///< by canonical value
};

}  // namespace

StageVariables stage_variables(const StageScope& scope, const StageRequest& request,
                               const MeshCosts& mesh_costs) {
  return Builder(scope, request, mesh_costs).build();
}

}  // namespace alpa
