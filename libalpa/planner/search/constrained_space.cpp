#include "libalpa/planner/search/constrained_space.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/stage_places.h"

namespace alpa {
namespace {

int layer_named(const Graph& graph, const std::string& name) {
  return static_cast<int>(std::ranges::find(graph.layers, name) - graph.layers.begin());
}

Rematerialize option_of(const Recomputation& of) {
  return !of.of_all                          ? Rematerialize::never
         : *of.of_all == RecomputeForm::full ? Rematerialize::always
                                             : Rematerialize::selective;
}

/// What model, cluster and other options have of what constraints name.
class ConstraintChecker {
 public:
  ConstraintChecker(const PlannerOptions& options, const PlanningModel& model, const Cluster& cluster)
      : options_(options),
        model_(model),
        graph_(model.graph(model.group_samples)),
        devices_(options.devices > 0 ? options.devices : cluster.devices()),
        devices_per_node_(cluster.devices_per_node) {}

  void check() {
    for (const PlanConstraint& constraint : options_.constraints.all) {
      constraint_ = &constraint;
      std::visit([&](const auto& demand) { check(demand); }, constraint.demand);
    }
    if (!faults_.empty()) throw Error(ErrorKind::input, fmt::format("{}", fmt::join(faults_, "\n")));
  }

 private:
  void fault(const std::string& what) { faults_.push_back(fmt::format("{}: {}", constraint_->where, what)); }

  [[noreturn]] void refuse_option(const std::string& option) const {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} together with {}: {}", option, constraint_->where, constraint_text(*constraint_)),
        "one of the two without the other");
  }

  static std::string near(const std::string& name, const std::vector<std::string>& names,
                          const std::string& otherwise) {
    const std::string nearest = nearest_name(name, names);
    return nearest.empty() ? otherwise : fmt::format("did you mean '{}'?", nearest);
  }

  void check_layer(const std::string& name) {
    if (layer_named(graph_, name) < std::ssize(graph_.layers)) return;
    fault(fmt::format(
        "the model has no layer '{}'; {}", name,
        near(name, graph_.layers,
             fmt::format("its layers are '{}' to '{}'", graph_.layers.front(), graph_.layers.back()))));
  }

  void check(const MostTensorParallel&) {}
  void check(const MostZero&) {}

  void check(const StageCount& count) {
    const auto layers = static_cast<int>(graph_.layers.size());
    std::string asked = options_.schedule;
    options_.constraints.for_each<ScheduleOf>(
        [&](const ScheduleOf& schedule, const PlanConstraint&) { asked = schedule.name; });
    const int per_device = may_have(asked, layers) ? layers : may_have(asked, 2) ? 2 : 1;
    const std::int64_t most = std::min(std::int64_t{per_device} * devices_, std::int64_t{layers});
    if (count.least > most)
      fault(fmt::format("{} asked for, {} and {} allow {}", count_text(count.least, "pipeline stage"),
                        count_text(layers, "layer"), count_text(devices_, "device"), most));
  }

  void check(const MicroBatchCounts& counts) {
    const std::int64_t groups = model_.batch / model_.group_samples;
    for (const int count : counts.allowed)
      if (groups % count != 0)
        fault(fmt::format("a batch of {} does not divide into {} micro-batches{}", model_.batch, count,
                          model_.group_samples > 1 ? " of whole groups of samples" : ""));
    if (options_.micro_batches > 0 && !std::ranges::count(counts.allowed, options_.micro_batches))
      refuse_option(fmt::format("--micro-batches {}", options_.micro_batches));
  }

  void check(const Recomputation& of) {
    constexpr std::array words{"auto", "never", "always", "selective"};
    if (of.of_all && offloads_activations(options_)) refuse_option("--offload " + options_.offload);
    if (options_.rematerialize != Rematerialize::automatic && options_.rematerialize != option_of(of))
      refuse_option(
          fmt::format("--rematerialize {}", words[static_cast<std::size_t>(options_.rematerialize)]));
  }

  void check(const ScheduleOf& schedule) {
    if (options_.schedule != PlannerOptions{}.schedule && options_.schedule != schedule.name)
      refuse_option("--schedule " + options_.schedule);
  }

  void check(const TensorSplit& tensor) {
    bool is_found = false;
    std::vector<std::string> names;
    for (const auto& [name, value] : named_tensors(graph_)) {
      names.push_back(name);
      if (!matches(tensor.pattern, name)) continue;
      is_found = true;
      if (const auto rank = std::ssize(value_of(graph_, value).type.shape); tensor.dimension >= rank)
        fault(fmt::format("'{}' has {}, there is no dimension {}", name, count_text(rank, "dimension"),
                          tensor.dimension));
    }
    if (!is_found)
      fault(fmt::format("no parameter or activation of the model is called '{}'; {}", tensor.pattern,
                        near(tensor.pattern, names, "'*' stands for any characters: '*.up', 'block.*.y'")));
  }

  void check(const OptionWord& asked) {
    for (const SyncOption& option : sync_options())
      if (option.name == asked.option && options_.*option.word != PlannerOptions{}.*option.word &&
          options_.*option.word != asked.word)
        refuse_option(fmt::format("--{} {}", option.name, options_.*option.word));
  }

  void check(const GradientWay& gradient) {
    const GraphUses uses(graph_);
    bool is_found = false;
    std::vector<std::string> names;
    for (const State& state : graph_.states) {
      if (!state.is_parameter) continue;
      names.push_back(state.name);
      if (!matches(gradient.pattern, state.name)) continue;
      is_found = true;
      if (const std::string why = why_not(gradient.way, uses, state); !why.empty())
        fault(fmt::format("the gradient of '{}' cannot be synchronised by {}: {}", state.name,
                          sync_way_name(gradient.way), why));
      check_beside(gradient.way, state);
    }
    if (!is_found)
      fault(fmt::format("no parameter of the model is called '{}'; {}", gradient.pattern,
                        near(gradient.pattern, names, "'*' stands for any characters: '*.up'")));
  }

  /// "": it can be on some mesh.
  std::string why_not(SyncWay way, const GraphUses& uses, const State& parameter) const {
    const std::optional<GradientPath> path = gradient_path(uses, parameter);
    if (!path)
      return "it is added to others before the update (tied weights), sent as factors of low rank or used "
             "steps "
             "later ([training] gradient_compression, gradient_delay), or there is none; leave the parameter "
             "out";
    if (way == SyncWay::factors && !path->has_factors(graph_))
      return "it is not a product of two factors; 'all-reduce' takes any";
    const Shape& shape = value_of(graph_, parameter.value).type.shape;
    const auto divides = [&](int extent) {
      return std::ranges::any_of(shape, [&](std::int64_t size) { return size % extent == 0; });
    };
    const std::vector<int> extents = mesh_extents(node_of(graph_, path->update).layer);
    if (zero_level(way) > 0 && !extents.empty() && std::ranges::none_of(extents, divides))
      return fmt::format("none of its dimensions ({}) divides by {} devices; 'all-reduce' takes any",
                         fmt::join(shape, " x "), fmt::join(extents, " or "));
    return "";
  }

  /// Of axes of the mesh that the stage with a layer has, or of those that it may have where it is looked
  /// for.
  std::vector<int> mesh_extents(int layer) const {
    std::vector<int> extents;
    if (options_.pin)
      for (const StageRequest& stage : options_.pin->stages) {
        if (stage.first_layer <= layer && layer < stage.end_layer)
          extents.insert(extents.end(), stage.mesh.begin(), stage.mesh.end());
      }
    else
      for (const int size : submesh_sizes(devices_, devices_per_node_))
        for (const MeshShape& mesh : mesh_shapes(size, devices_per_node_, mesh_axes(options_)))
          extents.insert(extents.end(), mesh.begin(), mesh.end());
    std::ranges::sort(extents);
    extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
    return extents;
  }

  /// Another constraint that says otherwise of the same parameter.
  void check_beside(SyncWay way, const State& parameter) {
    const auto fault_beside = [&](const PlanConstraint& other) {
      fault(fmt::format("the gradient of '{}' by {} together with {} ({}); one of the two without the other",
                        parameter.name, sync_way_name(way), constraint_text(other), other.where));
    };
    options_.constraints.for_each<GradientWay>([&](const GradientWay& other, const PlanConstraint& from) {
      if (&from < constraint_ && other.way != way && matches(other.pattern, parameter.name))
        fault_beside(from);
    });
    options_.constraints.for_each<MostZero>([&](const MostZero& most, const PlanConstraint& from) {
      if (zero_level(way) > most.level) fault_beside(from);
    });
    options_.constraints.for_each<TensorSplit>([&](const TensorSplit& tensor, const PlanConstraint& from) {
      if (way == SyncWay::sharded_parameter && tensor.dimension == kWholeTensor &&
          matches(tensor.pattern, parameter.name))
        fault_beside(from);
    });
  }

  void check(const StageBoundary& boundary) { check_layer(boundary.layer); }

  void check(const LayersTogether& together) {
    check_layer(together.first);
    check_layer(together.last);
  }

  void check(const DevicesApart& apart) {
    if (apart.other >= devices_)
      fault(fmt::format("there is no device {}, devices are 0 to {}", apart.other, devices_ - 1));
  }

  const PlannerOptions& options_;
  const PlanningModel& model_;
  const Graph graph_;
  const int devices_, devices_per_node_;
  const PlanConstraint* constraint_ = nullptr;  ///< that is being checked
  std::vector<std::string> faults_;
};

constexpr int kLevelOf[] = {0, 0, 1, 2, 3};  ///< [StateSharding] of ZeRO

struct StagesAgainst {
  const PinnedPlan& pin;
  const Graph& graph;
  const Cluster& cluster;

  template <class Holds>
  bool all_stages(const Holds& holds) const {
    return std::ranges::all_of(pin.stages, holds);
  }
  bool has_boundary(int cut) const {
    return cut == 0 || !all_stages([&](const StageRequest& stage) { return stage.end_layer != cut; });
  }

  bool meets(const MostTensorParallel& most) const {
    return all_stages([&](const StageRequest& stage) {
      std::int64_t devices = 1;
      for (std::size_t axis = 0; axis < stage.roles.size(); ++axis)
        if (stage.roles[axis] == AxisRole::tensor) devices *= stage.mesh[axis];
      return devices <= most.devices;
    });
  }
  bool meets(const MostZero& most) const {
    return all_stages([&](const StageRequest& stage) {
      return device_count(stage.mesh) == 1 || kLevelOf[static_cast<int>(stage.state_sharding)] <= most.level;
    });
  }
  bool meets(const StageCount& count) const {
    return std::ssize(pin.stages) >= count.least && std::ssize(pin.stages) <= count.most;
  }
  bool meets(const MicroBatchCounts& counts) const {
    return std::ranges::count(counts.allowed, pin.micro_batches) > 0;
  }
  bool meets(const Recomputation&) const { return true; }  // of options, which baselines go by
  bool meets(const ScheduleOf& schedule) const {
    return pin.schedule == schedule.name || pin.stages.size() == 1;
  }
  bool meets(const TensorSplit&) const { return true; }  // seen once they are split
  bool meets(const GradientWay&) const { return true; }  // likewise
  bool meets(const OptionWord&) const { return true; }   // of options, which baselines go by
  bool meets(const StageBoundary& boundary) const { return has_boundary(cut_of(boundary, graph)); }
  bool meets(const LayersTogether& together) const {
    const auto [first, last] = layers_of(together, graph);
    for (int cut = first + 1; cut <= last; ++cut)
      if (has_boundary(cut)) return false;
    return true;
  }
  bool meets(const DevicesApart& apart) const {
    std::vector<StageRequest> placed = pin.stages;
    place_stages(placed, cluster, meshes_of_stages(pin));
    return std::ranges::none_of(placed, [&](const StageRequest& stage) {
      const int first = stage.first_device, end = first + device_count(stage.mesh);
      return first <= apart.one && apart.other < end;
    });
  }
};

}  // namespace

int cut_of(const StageBoundary& boundary, const Graph& graph) {
  return layer_named(graph, boundary.layer) + (boundary.is_after ? 1 : 0);
}

std::pair<int, int> layers_of(const LayersTogether& together, const Graph& graph) {
  return std::minmax(layer_named(graph, together.first), layer_named(graph, together.last));
}

void check_constraints(const PlannerOptions& options, const PlanningModel& model, const Cluster& cluster) {
  if (options.constraints.empty()) return;
  const auto is_of_gradients = [](const PlanConstraint& constraint) {
    return std::holds_alternative<GradientWay>(constraint.demand);
  };
  if (options.pin && !std::ranges::all_of(options.constraints.all, is_of_gradients))
    throw Error(ErrorKind::usage, "--constraints together with --pin: a pinned plan is not looked for",
                "one of the two without the other; [[gradient]] alone may be given with a pin");
  ConstraintChecker(options, model, cluster).check();
}

PlannerOptions within_constraints(PlannerOptions options) {
  options.constraints.for_each<ScheduleOf>(
      [&](const ScheduleOf& schedule, const PlanConstraint&) { options.schedule = schedule.name; });
  options.constraints.for_each<Recomputation>(
      [&](const Recomputation& of, const PlanConstraint&) { options.rematerialize = option_of(of); });
  options.constraints.for_each<OptionWord>([&](const OptionWord& asked, const PlanConstraint&) {
    for (const SyncOption& option : sync_options())
      if (option.name == asked.option) options.*option.word = asked.word;
  });
  return options;
}

std::vector<int> allowed_micro_batches(const PlanConstraints& constraints) {
  std::vector<int> allowed;
  constraints.for_each<MicroBatchCounts>(
      [&](const MicroBatchCounts& counts, const PlanConstraint&) { allowed = counts.allowed; });
  return allowed;
}

void narrow(SearchSpace& space, const PlanConstraints& constraints, const Graph& graph) {
  constraints.for_each<StageCount>([&](const StageCount& count, const PlanConstraint&) {
    space.least_stages = std::max(space.least_stages, count.least);
    space.most_stages = std::min(space.most_stages, count.most);
  });
  constraints.for_each<StageBoundary>([&](const StageBoundary& boundary, const PlanConstraint&) {
    const int cut = cut_of(boundary, graph);
    space.needed_cuts.push_back(cut);
    if (const auto at = std::ranges::lower_bound(space.cuts, cut); at == space.cuts.end() || *at != cut)
      space.cuts.insert(at, cut);
  });
  constraints.for_each<LayersTogether>([&](const LayersTogether& together, const PlanConstraint&) {
    const auto [first, last] = layers_of(together, graph);
    std::erase_if(space.cuts,
                  [&, first = first, last = last](int cut) { return first < cut && cut <= last; });
  });
  constraints.for_each<DevicesApart>([&](const DevicesApart& apart, const PlanConstraint&) {
    space.apart.push_back({apart.one, apart.other});
  });
}

StageLimits stage_limits(const PlanConstraints& constraints, const Graph& graph) {
  StageLimits limits;
  constraints.for_each<MostTensorParallel>([&](const MostTensorParallel& most, const PlanConstraint&) {
    limits.most_tensor_parallel = most.devices;
  });
  constraints.for_each<MostZero>(
      [&](const MostZero& most, const PlanConstraint&) { limits.most_zero = most.level; });
  constraints.for_each<TensorSplit>([&](const TensorSplit& tensor, const PlanConstraint& constraint) {
    for (const auto& [name, value] : named_tensors(graph))
      if (matches(tensor.pattern, name))
        limits.tensors[value].push_back(
            {tensor.dimension, fmt::format("{} ({})", constraint_text(constraint), constraint.where)});
  });
  constraints.for_each<GradientWay>([&](const GradientWay& gradient, const PlanConstraint&) {
    for (const State& state : graph.states)
      if (state.is_parameter && matches(gradient.pattern, state.name))
        limits.ways[state.value] = gradient.way;
  });
  return limits;
}

const PlanConstraint* against(const PlanConstraints& constraints, const PinnedPlan& pin, const Graph& graph,
                              const Cluster& cluster) {
  const StagesAgainst stages{pin, graph, cluster};
  for (const PlanConstraint& constraint : constraints.all)
    if (!std::visit([&](const auto& demand) { return stages.meets(demand); }, constraint.demand))
      return &constraint;
  return nullptr;
}

}  // namespace alpa
