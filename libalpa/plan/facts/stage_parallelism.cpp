#include "libalpa/plan/facts/stage_parallelism.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "libalpa/plan/facts/training_state.h"

namespace alpa {
namespace {

constexpr std::size_t kParallelisms = 6;
using ParallelWork = std::array<double, kParallelisms>;  ///< [Parallelism]

double& work_of(ParallelWork& work, Parallelism kind) { return work[static_cast<std::size_t>(kind)]; }

Parallelism parallelism_of(const ShardingRule& rule, const std::vector<FactorRole>& roles, int choice) {
  if (choice < 0) return Parallelism::none;
  if (rule.factors[choice].ring >= 0) return Parallelism::context;
  switch (roles[choice]) {
    case FactorRole::sample:
      return Parallelism::data;
    case FactorRole::sequence:
      return Parallelism::sequence;
    case FactorRole::expert:
      return Parallelism::expert;
    case FactorRole::other:
      return Parallelism::tensor;
  }
  return Parallelism::none;
}

bool splits_along_any(const ShardingSpec& layout, const std::vector<int>& axes) {
  return std::ranges::any_of(axes, [&](int axis) { return splits_along(layout, axis); });
}

/// What each axis does for the work of the forward.
class ForwardWork {
 public:
  ForwardWork(const Placement& placement, StageIndex stage, const std::vector<ShardingRule>& rules,
              const std::vector<std::vector<FactorRole>>& roles)
      : mesh_(placement.plan().mesh_of(stage).shape), flops_(mesh_.size()), results_(mesh_.size()) {
    const Graph& graph = placement.graph();
    for (const NodeIndex n : graph.nodes.indices()) {
      const Node& node = graph.nodes[n];
      if (node.phase != Phase::forward || placement.stage_of_node(n) != stage) continue;
      const std::vector<TensorType> types = operand_types(graph, node);
      const double flops = flops_of(*node.op, {types, node.attributes});
      double made = 0;
      for (const ValueIndex v : node.results)
        made += static_cast<double>(element_count(graph.values[v].type.shape));
      for (std::size_t axis = 0; axis < mesh_.size(); ++axis) {
        const Parallelism kind = parallelism_of(rules[n], roles[n], placement.plan().node_strategy[n][axis]);
        work_of(flops_[axis], kind) += flops;
        work_of(results_[axis], kind) += made;
      }
    }
  }

  AxisUse use_of(std::size_t axis) {
    constexpr double least_share = 0.1;
    AxisUse use{.devices = mesh_[axis]};
    // Where blocks of keys and values go round, the sequence is split for that.
    if (work_of(flops_[axis], Parallelism::context) > 0)
      work_of(flops_[axis], Parallelism::context) +=
          std::exchange(work_of(flops_[axis], Parallelism::sequence), 0);
    double all = 0, all_made = 0;
    for (const double flops : flops_[axis]) all += flops;
    for (const double made : results_[axis]) all_made += made;
    for (std::size_t kind = 0; kind < kParallelisms; ++kind)
      if (all > 0 && flops_[axis][kind] >= least_share * all)
        use.shares.emplace_back(static_cast<Parallelism>(kind), flops_[axis][kind] / all);
    if (use.shares.empty()) use.shares.emplace_back(Parallelism::none, 1.0);
    std::ranges::stable_sort(use.shares, [](const auto& a, const auto& b) { return a.second > b.second; });
    const double by_sequence = results_[axis][static_cast<std::size_t>(Parallelism::sequence)];
    use.splits_sequence_between =
        use.shares[0].first == Parallelism::tensor && by_sequence >= least_share * all_made;
    return use;
  }

 private:
  const MeshShape& mesh_;
  std::vector<ParallelWork> flops_, results_;  ///< [axis], by FLOPs and by elements that are made
};

/// Which states are split over the data axes although the work that takes them is not split along these.
class StateSplits {
 public:
  StateSplits(const Placement& placement, StageIndex stage, const std::vector<int>& data_axes)
      : placement_(placement), stage_(stage) {
    const Graph& graph = placement.graph();
    for (const State& state : graph.states) {
      if (!state.is_parameter || placement.stage_of_value(state.value) != stage) continue;
      if (const std::vector<int> axes = axes_without_use(state, data_axes); !axes.empty())
        add(parameters_, layout(state.value), axes, value_of(graph, state.value));
    }
    for_each_training_state(placement, stage, [&](const State& parameter, ValueIndex value, bool is_state) {
      if (const std::vector<int> axes = axes_without_use(parameter, data_axes); !axes.empty())
        add(is_state ? optimizer_ : gradients_, layout(value), axes, value_of(graph, value));
    });
  }

  /// The level, and the share of the elements that have it.
  std::pair<int, double> level() const {
    constexpr double least_share = 0.5;
    std::pair<int, double> level{0, 0.0};
    for (const auto& [zero, part] : {std::pair{1, optimizer_}, {2, gradients_}, {3, parameters_}}) {
      if (part.all == 0 || part.split < least_share * part.all) break;
      level = {zero, part.split / part.all};
    }
    return level;
  }

 private:
  struct Part {
    double split = 0, all = 0;  ///< elements
  };

  const ShardingSpec& layout(ValueIndex value) const { return placement_.plan().value_layout[value]; }

  static void add(Part& part, const ShardingSpec& layout, const std::vector<int>& axes, const Value& value) {
    const auto elements = static_cast<double>(element_count(value.type.shape));
    part.all += elements;
    if (splits_along_any(layout, axes)) part.split += elements;
  }

  /// The data axes along which nobody in the forward takes a tile of the parameter. (Experts that live apart
  /// are no ZeRO.)
  std::vector<int> axes_without_use(const State& parameter, std::vector<int> axes) const {
    const Graph& graph = placement_.graph();
    for (const NodeIndex n : placement_.uses().users_of(parameter.value)) {
      const Node& node = graph.nodes[n];
      if (node.phase != Phase::forward || placement_.stage_of_node(n) != stage_) continue;
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        if (node.operands[i] == parameter.value)
          std::erase_if(axes,
                        [&](int axis) { return splits_along(placement_.node_layout(n).operands[i], axis); });
    }
    return axes;
  }

  const Placement& placement_;
  StageIndex stage_;
  Part optimizer_, gradients_, parameters_;
};

/// "DP4|TP4 (70|30 %)"
std::string mixed_text(const AxisUse& use) {
  std::vector<std::string> words, shares;
  for (const auto& [kind, share] : use.shares) {
    words.push_back(fmt::format("{}{}", parallelism_word(kind), use.devices));
    shares.push_back(fmt::format("{:.0f}", 100 * share));
  }
  return fmt::format("{} ({} %)", fmt::join(words, "|"), fmt::join(shares, "|"));
}

/// Experts live on the devices that share out the data: that axis has two names, and no shares.
bool is_data_and_experts(const AxisUse& use) {
  return std::ranges::all_of(use.shares, [](const auto& part) {
    return part.first == Parallelism::data || part.first == Parallelism::expert;
  });
}

}  // namespace

const char* parallelism_word(Parallelism kind) {
  constexpr std::array<const char*, kParallelisms> words{"DP", "EP", "TP", "SP", "CP", "copies"};
  return words[static_cast<std::size_t>(kind)];
}

std::string StageParallelism::text() const {
  std::map<Parallelism, int> degrees;
  std::vector<std::string> words;
  bool sequence_between = false;
  for (const AxisUse& use : axes) {
    sequence_between = sequence_between || use.splits_sequence_between;
    if (use.shares.size() > 1 && !is_data_and_experts(use)) {
      words.push_back(mixed_text(use));
      continue;
    }
    for (const auto& [kind, share] : use.shares) {
      const auto [degree, added] = degrees.try_emplace(kind, 1);
      degree->second *= use.devices;
    }
  }
  std::vector<std::string> text;
  for (const auto& [kind, degree] : degrees)
    text.push_back(fmt::format("{}{}", parallelism_word(kind), degree));
  text.insert(text.end(), words.begin(), words.end());
  if (sequence_between) text.emplace_back("SP");
  constexpr double nearly_all = 0.9;
  if (zero > 0)
    text.push_back(zero_share >= nearly_all ? fmt::format("ZeRO-{}", zero)
                                            : fmt::format("ZeRO-{} ({:.0f} %)", zero, 100 * zero_share));
  return text.empty() ? "1 device" : fmt::format("{}", fmt::join(text, " · "));
}

StageParallelism stage_parallelism(const Placement& placement, StageIndex stage,
                                   const std::vector<ShardingRule>& rules,
                                   const std::vector<std::vector<FactorRole>>& roles) {
  const MeshShape& mesh = placement.plan().mesh_of(stage).shape;
  ForwardWork work(placement, stage, rules, roles);
  StageParallelism found;
  std::vector<int> data_axes;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
    if (mesh[axis] < 2) continue;
    found.axes.push_back(work.use_of(axis));
    const auto splits_data = [](const auto& part) { return part.first == Parallelism::data; };
    if (std::ranges::any_of(found.axes.back().shares, splits_data))
      data_axes.push_back(static_cast<int>(axis));
  }
  if (!data_axes.empty())
    std::tie(found.zero, found.zero_share) = StateSplits(placement, stage, data_axes).level();
  return found;
}

}  // namespace alpa
