#include "libalpa/planner/search/constrained_space.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/overloaded.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/assemble.h"

namespace alpa {
namespace {

int layer_named(const Graph& graph, const std::string& name) {
  return static_cast<int>(std::ranges::find(graph.layers, name) - graph.layers.begin());
}

[[noreturn]] void refuse_constraint(const PlanConstraint& constraint, const std::string& what,
                                    const std::string& hint) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", constraint.where, what), hint);
}

[[noreturn]] void refuse_option(const PlanConstraint& constraint, const std::string& option) {
  throw Error(ErrorKind::usage,
              fmt::format("{} beside {}: {}", option, constraint.where, constraint_text(constraint)),
              "one of the two without the other");
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = nearest_name(name, names);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

void check_layer(const PlanConstraint& constraint, const std::string& name, const Graph& graph) {
  if (layer_named(graph, name) < std::ssize(graph.layers)) return;
  const std::string near = did_you_mean(name, graph.layers);
  refuse_constraint(constraint, fmt::format("the model has no layer '{}'", name),
                    near.empty() ? fmt::format("one of '{}' to '{}'; alpa-plan explain --full names all",
                                               graph.layers.front(), graph.layers.back())
                                 : near);
}

void check_tensor(const PlanConstraint& constraint, const TensorSplit& tensor, const Graph& graph) {
  const std::map<std::string, ValueIndex> tensors = named_tensors(graph);
  bool is_found = false;
  std::vector<std::string> names;
  for (const auto& [name, value] : tensors) {
    names.push_back(name);
    if (!matches(tensor.pattern, name)) continue;
    is_found = true;
    const Shape& shape = value_of(graph, value).type.shape;
    if (tensor.dimension >= std::ssize(shape))
      refuse_constraint(
          constraint,
          fmt::format("'{}' has {}, there is no dimension {}", name,
                      count_text(std::ssize(shape), "dimension"), tensor.dimension),
          name == tensor.pattern ? "'split' of fewer, or 'whole = true'" : "a pattern that leaves it out");
  }
  if (is_found) return;
  const std::string near = did_you_mean(tensor.pattern, names);
  refuse_constraint(constraint,
                    fmt::format("no parameter or activation of the model is called '{}'", tensor.pattern),
                    near.empty() ? "a name as in h5dump -d /values/name plan.h5, or a pattern as "
                                   "'block.*.mlp.up'"
                                 : near);
}

void check_micro_batches(const PlanConstraint& constraint, const MicroBatchCounts& counts,
                         const PlannerOptions& options, const PlanningModel& model) {
  const std::int64_t groups = model.batch / model.group_samples;
  for (const int count : counts.allowed)
    if (groups % count != 0)
      refuse_constraint(constraint,
                        fmt::format("a batch of {} does not divide into {} micro-batches{}", model.batch,
                                    count, model.group_samples > 1 ? " of whole groups of samples" : ""),
                        fmt::format("divisors of {}", groups));
  if (options.micro_batches > 0 && !std::ranges::count(counts.allowed, options.micro_batches))
    refuse_option(constraint, fmt::format("--micro-batches {}", options.micro_batches));
}

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
  bool meets(const ScheduleOf& schedule) const { return pin.schedule == schedule.name; }
  bool meets(const TensorSplit&) const { return true; }  // seen once they are split
  bool meets(const StageBoundary& boundary) const { return has_boundary(cut_of(boundary, graph)); }
  bool meets(const LayersTogether& together) const {
    const auto [first, last] = layers_of(together, graph);
    for (int cut = first + 1; cut <= last; ++cut)
      if (has_boundary(cut)) return false;
    return true;
  }
  bool meets(const DevicesApart& apart) const {
    std::vector<StageRequest> placed = pin.stages;
    place_stages(placed, cluster);
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
  if (options.pin)
    throw Error(ErrorKind::usage, "--constraints beside --pin: a pinned plan is not looked for",
                "one of the two without the other");
  const Graph graph = model.graph(model.group_samples);
  const int devices = options.devices > 0 ? options.devices : cluster.devices();
  const PlannerOptions unsaid;
  for (const PlanConstraint& constraint : options.constraints.all)
    std::visit(
        Overloaded{
            [](const MostTensorParallel&) {}, [](const MostZero&) {},
            [&](const StageCount& count) {
              const int most = std::min(devices, static_cast<int>(graph.layers.size()));
              if (count.least > most)
                refuse_constraint(
                    constraint,
                    fmt::format("{} asked for, {} and {} allow {}", count_text(count.least, "pipeline stage"),
                                count_text(std::ssize(graph.layers), "layer"), count_text(devices, "device"),
                                most),
                    fmt::format("'stages' of {} or fewer", most));
            },
            [&](const MicroBatchCounts& counts) { check_micro_batches(constraint, counts, options, model); },
            [&](const Recomputation& of) {
              const Rematerialize wanted = of.is_of_all ? Rematerialize::always : Rematerialize::never;
              if (options.rematerialize != Rematerialize::automatic && options.rematerialize != wanted)
                refuse_option(constraint,
                              fmt::format("--rematerialize {}", of.is_of_all ? "never" : "always"));
            },
            [&](const ScheduleOf& schedule) {
              if (options.schedule != unsaid.schedule && options.schedule != schedule.name)
                refuse_option(constraint, "--schedule " + options.schedule);
            },
            [&](const TensorSplit& tensor) { check_tensor(constraint, tensor, graph); },
            [&](const StageBoundary& boundary) { check_layer(constraint, boundary.layer, graph); },
            [&](const LayersTogether& together) {
              check_layer(constraint, together.first, graph);
              check_layer(constraint, together.last, graph);
            },
            [&](const DevicesApart& apart) {
              if (apart.other >= devices)
                refuse_constraint(
                    constraint,
                    fmt::format("there is no device {}, devices are 0 to {}", apart.other, devices - 1),
                    "devices by their place in the cluster");
            }},
        constraint.demand);
}

PlannerOptions within_constraints(PlannerOptions options) {
  options.constraints.for_each<ScheduleOf>(
      [&](const ScheduleOf& schedule, const PlanConstraint&) { options.schedule = schedule.name; });
  options.constraints.for_each<Recomputation>([&](const Recomputation& of, const PlanConstraint&) {
    options.rematerialize = of.is_of_all ? Rematerialize::always : Rematerialize::never;
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
