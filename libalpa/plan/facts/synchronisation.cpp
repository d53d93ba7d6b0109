#include "libalpa/plan/facts/synchronisation.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace alpa {
namespace {

/// Whether a node has all of an operand along the axis that rests split over it.
bool gathers_along(const Placement& placement, NodeIndex n, MeshIndex mesh, int axis) {
  const Node& node = node_of(placement.graph(), n);
  const NodeLayout& layout = placement.node_layout(n);
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    if (!splits_along(layout.operands[i], axis) &&
        splits_along(placement.layout_at_rest(node.operands[i], mesh), axis))
      return true;
  return false;
}

class SynchronisationWords {
 public:
  SynchronisationWords(const Placement& placement, MeshIndex mesh, const Conversions& conversions)
      : placement_(placement),
        graph_(placement.graph()),
        mesh_(mesh),
        shape_(placement.plan().meshes[mesh].shape),
        conversions_(conversions) {}

  std::string of(ValueIndex sum) {
    const NodeIndex summing = value_of(graph_, sum).producer;
    const Node& sums = node_of(graph_, summing);
    for (std::size_t i = 0; i < sums.operands.size(); ++i)
      add_gradient(sums.operands[i], placement_.node_layout(summing).operands[i]);
    add_rest(sum, placement_.layout_at_rest(sum, mesh_));
    const GradientSync sync = placement_.plan().sync_of(sum);
    if (words_.empty()) return "no communication";
    if (sync.bucket >= 0) words_.emplace_back("in a bucket");
    if (sync.parts > 1) words_.push_back(fmt::format("in {} parts", sync.parts));
    if (sync.turn > 0) words_.emplace_back("first used first");
    return fmt::format("{}", fmt::join(words_, ", "));
  }

 private:
  void add_steps(ValueIndex value, const ShardingSpec& from, const ShardingSpec& to, const char* when) {
    const Value& converted = value_of(graph_, value);
    const Conversion* const steps = conversions_.between(converted.type, from, to, converted.wire);
    for (const ConversionStep& step : steps ? *steps : Conversion())
      words_.push_back(fmt::format(
          "{} over {} devices (axis {}){}{}", conversion_name(step.kind), shape_[step.axis], step.axis,
          step.wire_type ? fmt::format(" in {}", dtype_name(*step.wire_type)) : "", when));
  }

  void add_owners(ValueIndex sum, const std::vector<OwnedRows>& parts) {
    std::set<int> owners;
    for (const OwnedRows& part : parts) owners.insert(part.owner);
    if (placement_.plan().has_states_at_servers()) {
      words_.push_back(fmt::format("summed up at {}, which update{} it",
                                   count_text(std::ssize(owners), "server"), owners.size() == 1 ? "s" : ""));
      return;
    }
    const Conversion& steps =
        *conversions_.between(value_of(graph_, sum).type, placement_.layout_at_rest(sum, mesh_),
                              placement_.layout_in_update(sum, mesh_), {});
    const int axis = steps.front().axis, devices = shape_[axis];
    words_.push_back(
        owners.size() == 1
            ? fmt::format("summed up at device {} of {} (axis {}), which updates it for all", *owners.begin(),
                          devices, axis)
            : fmt::format("summed up at {} owners of {} devices (axis {}), which update it for all",
                          owners.size(), devices, axis));
  }

  const char* factor_words(const Node& maker) const {
    return !maker.op->adds_up_rows                                   ? "factors"
           : value_of(graph_, maker.operands[0]).wire.vocabulary > 0 ? "rows of ids that differ"
                                                                     : "rows of ids";
  }

  void add_gradient(ValueIndex gradient, const ShardingSpec& summed) {
    const NodeIndex maker = value_of(graph_, gradient).producer;
    if (maker < 0 || placement_.mesh_of_node(maker) != mesh_) return;
    for (int axis = 0; axis < static_cast<int>(shape_.size()); ++axis)
      if (placement_.plan().node_strategy[maker][axis] == kIdleAxis &&
          gathers_along(placement_, maker, mesh_, axis))
        words_.push_back(fmt::format("made by all {} devices of gathered {} (axis {})", shape_[axis],
                                     factor_words(node_of(graph_, maker)), axis));
    const std::vector<ValueIndex>& made = node_of(graph_, maker).results;
    const auto result = std::ranges::find(made, gradient) - made.begin();
    add_steps(gradient, placement_.node_layout(maker).results[static_cast<std::size_t>(result)], summed,
              ", in each micro-batch");
  }

  /// From the end of the step on: over the mesh, to another, or on into a sum of several, as of tied weights.
  void add_rest(ValueIndex value, const ShardingSpec& lies) {
    const NodeIndex* user_here = nullptr;
    for (const NodeIndex& user : placement_.uses().users_of(value))
      if (placement_.mesh_of_node(user) == mesh_) user_here = &user;
    for (const PlannedTransfer& transfer : placement_.plan().transfers)
      if (transfer.value == value) {
        if (user_here == nullptr) add_steps(value, lies, without_terms(lies), "");
        words_.push_back(fmt::format("sent to mesh {}", transfer.to_mesh));
      }
    if (user_here == nullptr) return;
    if (const std::vector<OwnedRows> owners = placement_.plan().sync_of(value).owners; !owners.empty())
      return add_owners(value, owners);
    add_steps(value, lies, placement_.layout_in_update(value, mesh_), "");
    add_low_rank(value);
    const Node& user = node_of(graph_, *user_here);
    if (holds_gradient_back(user)) {
      const StateIndex state = placement_.uses().state_after_value(user.results[0]);
      const ValueIndex held = graph_.states[state].value;
      words_.emplace_back("a step later");
      return add_rest(held, placement_.layout_at_rest(held, mesh_));
    }
    const bool adds_up = user.op->linear_operands == kAllOperands;
    if (adds_up && user.phase == Phase::update) {
      const auto before = std::ssize(words_);
      add_rest(user.results[0], placement_.node_layout(*user_here).results[0]);
      if (std::ssize(words_) > before) words_.insert(words_.begin() + before, "added to another");
    }
  }

  /// In place of the gradient its factors are sent, whole to who renews them and in terms to what goes on in
  /// these.
  void add_low_rank(ValueIndex gradient) {
    bool said = false;
    for (const NodeIndex n : placement_.uses().users_of(gradient)) {
      const Node& node = node_of(graph_, n);
      if (!node.op->factors_gradient) continue;
      const ValueIndex factor = node.results[0];
      if (!std::exchange(said, true))
        words_.push_back(fmt::format("as factors of rank {}", value_of(graph_, factor).type.shape.back()));
      const ShardingSpec lies = placement_.layout_in_update(factor, mesh_);
      add_steps(factor, placement_.node_layout(n).results[0], lies, "");
      for (const NodeIndex user : placement_.uses().users_of(factor)) {
        const std::vector<ValueIndex>& operands = node_of(graph_, user).operands;
        const auto place = std::ranges::find(operands, factor) - operands.begin();
        add_steps(factor, lies, placement_.node_layout(user).operands[static_cast<std::size_t>(place)], "");
      }
    }
  }

  const Placement& placement_;
  const Graph& graph_;
  MeshIndex mesh_;
  const MeshShape& shape_;
  const Conversions& conversions_;
  std::vector<std::string> words_;
};

}  // namespace

std::string synchronisation_text(const Placement& placement, MeshIndex mesh, const Conversions& conversions,
                                 ValueIndex sum) {
  return SynchronisationWords(placement, mesh, conversions).of(sum);
}

}  // namespace alpa
