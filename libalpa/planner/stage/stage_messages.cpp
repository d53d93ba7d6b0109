#include "libalpa/planner/stage/stage_messages.h"

#include <algorithm>

namespace alpa {
namespace {

class Messages {
 public:
  Messages(const StageScope& scope, const StageRequest& request, const MeshCosts& mesh_costs,
           const StageClock& clock, StageVariables& stage)
      : scope_(scope), request_(request), mesh_costs_(mesh_costs), clock_(clock), stage_(stage) {}

  void add() {
    for (const ValueIndex v : scope_.values()) add_messages(v);
  }

 private:
  StageVariable& variable(int index) { return stage_.variables[index]; }
  std::int64_t bytes(ValueIndex v, int layout) const { return mesh_costs_.layouts(v).bytes(layout); }

  /// What leaves has memory of its own, as large as its tile, for each mesh that takes it; what arrives has
  /// that until it is unpacked, or always where it arrives while something else is computed.
  void add_messages(ValueIndex v) {
    const Value& value = scope_.value(v);
    if (v == scope_.graph().gradient_square_sum || value.kind == ValueKind::input) return;
    if (scope_.planning().uses.state_after_value(v) >= 0) return;
    const bool state = value.kind == ValueKind::state, own = state ? scope_.updates(v) : scope_.makes(v);
    const Phase phase = phase_of_transfer(scope_.graph(), v);
    if (own) {
      std::int64_t messages = 0;
      for (const int layer : scope_.layers_it_leaves_for(v)) messages += messages_to(layer, phase);
      if (messages > 0)
        add_message(v, 0, clock_.end(), [&](int layout) { return messages * bytes(v, layout); });
    } else {
      const bool early = scope_.planning().overlap != Overlap::none && phase != Phase::update;
      const int tick = state ? clock_.end() - 1 : clock_.begin(phase);
      add_message(v, early ? 0 : tick, early ? clock_.end() : tick + 1,
                  [&](int layout) { return bytes(v, layout); });
    }
  }

  /// Those on their way at once: one, unless it passes stages by; then no more than there are micro-batches
  /// between the two ends.
  std::int64_t messages_to(int layer, Phase phase) const {
    if (phase == Phase::update || layer == request_.end_layer || layer == request_.first_layer - 1) return 1;
    return request_.pipeline_in_flight;
  }

  void add_message(ValueIndex v, int begin, int end, const auto& bytes_in) {
    const auto at_rest = stage_.of_value.find(scope_.canonical_value(v));
    SelectionProblem::Memory memory{begin, end, {}};
    if (at_rest != stage_.of_value.end()) {
      StageVariable& of = variable(at_rest->second);
      for (const int layout : of.choices) memory.bytes.push_back(bytes_in(layout));
      of.messages.push_back(std::move(memory));
      return;
    }
    // It rests as a node makes it: a sum of gradients, or a state that is no parameter.
    const ValueIndex made = scope_.value(v).kind == ValueKind::state ? scope_.next_of_state(v) : v;
    const Node& maker = scope_.node(scope_.value(made).producer);
    StageVariable& of = variable(stage_.of_node.at(scope_.canonical_node(scope_.value(made).producer)));
    const auto result = static_cast<std::size_t>(place_of(maker.results, made));
    for (std::size_t c = 0; c < of.choices.size(); ++c)
      memory.bytes.push_back(bytes_in(option_of(of, c, mesh_costs_).results[result]));
    of.messages.push_back(std::move(memory));
  }

  const StageScope& scope_;
  const StageRequest& request_;
  const MeshCosts& mesh_costs_;
  const StageClock& clock_;
  StageVariables& stage_;
};

}  // namespace

void add_message_memory(const StageScope& scope, const StageRequest& request, const MeshCosts& mesh_costs,
                        const StageClock& clock, StageVariables& stage) {
  Messages(scope, request, mesh_costs, clock, stage).add();
}

}  // namespace alpa
