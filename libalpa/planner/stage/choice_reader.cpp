#include "libalpa/planner/stage/choice_reader.h"

#include "libalpa/planner/stage/stage_edges.h"

namespace alpa {

std::optional<ShardingSpec> ChoiceReader::layout_in(const StageSolution& solution, ValueIndex value,
                                                    std::optional<Phase> segment) const {
  if (segment) {
    const auto at = solution.segment_layouts.find(value);
    if (at == solution.segment_layouts.end()) return std::nullopt;
    return *segment == Phase::forward ? at->second.forward : at->second.backward;
  }
  if (scope_.value(value).kind == ValueKind::input)
    return replicated_spec(scope_.value(value).type.shape.size());
  for (const auto* known : {&solution.value_layout, &solution.received_layout})
    if (const auto at = known->find(value); at != known->end()) return at->second;
  return std::nullopt;
}

std::vector<int> ChoiceReader::choice_of(const StageSolution& solution) const {
  std::vector<int> choice;
  for (int index = 0; index < static_cast<int>(stage_.variables.size()); ++index) {
    const StageVariable& v = variable(index);
    std::size_t c = 0;
    if (v.node >= 0) {
      const auto at = solution.node_strategy.find(v.node);
      if (at == solution.node_strategy.end()) return {};
      while (c < v.choices.size() && option_of(v, c, mesh_costs_).strategy != at->second) ++c;
    } else {
      const std::optional<ShardingSpec> known = layout_in(solution, v.value, v.segment);
      if (!known) return {};
      const ShardingSpec& wanted = *known;
      while (c < v.choices.size() && mesh_costs_.layouts(v.value).spec(v.choices[c]) != wanted) ++c;
      if (c < v.choices.size() && !v.at_rest.empty()) {
        const bool at_rest = layout_in(solution, v.value, {}) == wanted;
        while (c < v.choices.size() &&
               (mesh_costs_.layouts(v.value).spec(v.choices[c]) != wanted || v.at_rest[c] != at_rest))
          ++c;
      }
      if (c < v.choices.size() && !v.as_made.empty()) {
        const int maker = stage_.of_node.at(scope_.value(v.value).producer);  // comes before
        const auto made = static_cast<std::size_t>(choice[maker]);
        const auto result =
            static_cast<std::size_t>(place_of(scope_.node(variable(maker).node).results, v.value));
        const bool as_made = option_of(variable(maker), made, mesh_costs_).results[result] == v.choices[c];
        const int layout = v.choices[c];
        while (c < v.choices.size() && (v.choices[c] != layout || v.as_made[c] != as_made)) ++c;
      }
    }
    if (c == v.choices.size()) return {};
    choice.push_back(static_cast<int>(c));
  }
  return choice;
}

/// The layout in which a node takes or makes a value.
ShardingSpec ChoiceReader::layout_at_node(NodeIndex n, ValueIndex value, bool result,
                                          const std::vector<int>& choice) const {
  const int index = stage_.of_node.at(scope_.canonical_node(n));
  const NodeOption& taken = option_of(variable(index), static_cast<std::size_t>(choice[index]), mesh_costs_);
  const Node& node = scope_.node(n);
  const auto place = static_cast<std::size_t>(place_of(result ? node.results : node.operands, value));
  return mesh_costs_.layouts(value).spec(result ? taken.results[place] : taken.operands[place]);
}

ShardingSpec ChoiceReader::resting_layout(ValueIndex value, const std::vector<int>& choice) const {
  const auto own = stage_.of_value.find(scope_.canonical_value(value));
  if (own != stage_.of_value.end()) {
    const auto chosen = static_cast<std::size_t>(choice[own->second]);
    return mesh_costs_.layouts(value).spec(variable(own->second).choices[chosen]);
  }
  if (const StateIndex state = scope_.planning().uses.state_after_value(value); state >= 0)
    return resting_layout(scope_.graph().states[state].value, choice);
  if (scope_.value(value).kind == ValueKind::state) {
    // What is no parameter rests as its update takes it.
    const StateIndex state = scope_.planning().uses.state_at[value];
    const ValueIndex next = scope_.graph().states[state].next;
    if (next >= 0 && scope_.makes(next))
      return layout_at_node(scope_.value(next).producer, next, true, choice);
    for (const NodeIndex user : scope_.users(value)) return layout_at_node(user, value, false, choice);
  }
  if (scope_.makes(value)) return layout_at_node(scope_.value(value).producer, value, true, choice);
  return replicated_spec(scope_.value(value).type.shape.size());
}

SegmentLayouts ChoiceReader::segment_layouts(ValueIndex value, const std::vector<int>& choice) const {
  const auto in = [&](Phase segment) {
    const auto own = stage_.of_segment.find({scope_.canonical_value(value), segment});
    if (own != stage_.of_segment.end()) {
      const auto chosen = static_cast<std::size_t>(choice[own->second]);
      return mesh_costs_.layouts(value).spec(variable(own->second).choices[chosen]);
    }
    if (!scope_.made_in(value, segment)) return resting_layout(value, choice);
    const bool rests = stage_.of_value.contains(scope_.canonical_value(value)) &&
                       scope_.node(scope_.value(value).producer).phase == segment;
    return rests ? resting_layout(value, choice)
                 : layout_at_node(scope_.value(value).producer, value, true, choice);
  };
  return {in(Phase::forward), in(Phase::backward)};
}

double ChoiceReader::cost_once(const StageVariable& v, std::size_t choice) const {
  const bool of_update = v.node >= 0 && scope_.node(v.node).phase == Phase::update;
  return of_update ? v.cost[choice] : v.once[choice];
}

double ChoiceReader::seconds(const std::vector<int>& choice, bool update) const {
  double sum = 0;
  for (std::size_t i = 0; i < stage_.variables.size(); ++i) {
    const StageVariable& v = stage_.variables[i];
    const auto c = static_cast<std::size_t>(choice[i]);
    const double once = cost_once(v, c);
    sum += update ? once : v.cost[c] - once;
  }
  for (const auto& [edge, flow] : stage_.edges)
    if ((edge.phase == Phase::update) == update)
      sum += runs_per_step(request_, edge.phase) * flow.count *
             edge_seconds(stage_, edge, static_cast<std::size_t>(choice[edge.from]),
                          mesh_costs_)[choice[edge.to]];
  return sum;
}

int ChoiceReader::layer_of(const StageVariable& v) const {
  return scope_.canonical_layer(v.node >= 0 ? scope_.node(v.node).layer : scope_.home_layer(v.value));
}

std::vector<LayerCosts> ChoiceReader::layer_costs(const std::vector<int>& choice) const {
  const int layers = request_.end_layer - request_.first_layer;
  std::vector<LayerCosts> of_all(static_cast<std::size_t>(layers));  // of equal layers, at the first
  const auto place = [&](const StageVariable& v) -> LayerCosts& {
    return of_all[layer_of(v) - request_.first_layer];
  };
  for (std::size_t i = 0; i < stage_.variables.size(); ++i) {
    const StageVariable& v = stage_.variables[i];
    const auto c = static_cast<std::size_t>(choice[i]);
    LayerCosts& costs = place(v);
    const double once = cost_once(v, c);
    costs.update_s += once;
    costs.micro_batch_s += (v.cost[c] - once) / request_.micro_batches;
    costs.resident_bytes += v.resident[c];
    costs.micro_batch_bytes += v.per_micro_batch[c];
  }
  for (const auto& [edge, flow] : stage_.edges) {
    LayerCosts& costs = place(variable(edge.to));
    const double seconds =
        flow.count *
        edge_seconds(stage_, edge, static_cast<std::size_t>(choice[edge.from]), mesh_costs_)[choice[edge.to]];
    (edge.phase == Phase::update ? costs.update_s : costs.micro_batch_s) += seconds;
  }
  return shared_by_copies(of_all);
}

StageSolution ChoiceReader::solution_of(const std::vector<NodeIndex>& nodes,
                                        const std::vector<ValueIndex>& values,
                                        const std::vector<int>& choice) const {
  StageSolution solution;
  solution.feasible = true;
  for (const NodeIndex n : nodes) {
    const int index = stage_.of_node.at(scope_.canonical_node(n));
    solution.node_strategy[n] =
        option_of(variable(index), static_cast<std::size_t>(choice[index]), mesh_costs_).strategy;
  }
  for (const ValueIndex v : values) {
    const Value& value = scope_.value(v);
    if (v == scope_.graph().gradient_square_sum) continue;
    solution.segment_layouts[v] = segment_layouts(v, choice);
    if (value.kind == ValueKind::input) continue;
    const bool rests_here = scope_.makes(v) || (value.kind == ValueKind::state && scope_.updates(v));
    (rests_here ? solution.value_layout : solution.received_layout)[v] = resting_layout(v, choice);
  }
  return solution;
}

StageSolution ChoiceReader::folded_solution_of(const std::vector<int>& choice) const {
  std::vector<ValueIndex> values = scope_.values();
  std::erase_if(values, [&](ValueIndex v) { return scope_.canonical_value(v) != v; });
  return solution_of(scope_.canonical_nodes(), values, choice);
}

StageSolution ChoiceReader::solution_of(const std::vector<int>& choice) const {
  StageSolution solution = solution_of(scope_.nodes(), scope_.values(), choice);
  solution.update_s = seconds(choice, true);
  const double running = seconds(choice, false);
  solution.micro_batch_s = running / request_.micro_batches;
  solution.step_s = running + solution.update_s;
  return solution;
}

}  // namespace alpa
