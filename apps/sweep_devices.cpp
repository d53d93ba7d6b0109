#include "apps/sweep_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>

#include "apps/described_settings.h"
#include "apps/models.h"
#include "apps/page_skeleton.h"
#include "apps/plan_costs.h"
#include "apps/planning_model.h"
#include "libalpa/base/error.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/options.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/base/units.h"
#include "libalpa/h5/atomic_file.h"
#include "libalpa/plan/facts/plan_facts.h"
#include "libalpa/report/scaling.h"

namespace alpa {
namespace {

[[noreturn]] void refuse_devices(const std::string& text) {
  refuse_text("--devices",
              fmt::format("numbers of devices from 1 to {}: FIRST..LAST to double from the first to at most "
                          "the last, or N,N,... from few to many",
                          kMostDevices),
              text, "8..1024, or 8,16,24");
}

int device_count_of(const std::string& all, std::size_t begin, std::size_t end) {
  int count = 0;
  const char *from = all.data() + begin, *to = all.data() + end;
  const auto [stop, code] = std::from_chars(from, to, count);
  if (code != std::errc{} || stop != to || count < 1 || count > kMostDevices) refuse_devices(all);
  return count;
}

/// As many nodes as the devices take.
Cluster cluster_for(Cluster cluster, int devices) {
  if (!cluster.parts.empty())
    throw Error(
        ErrorKind::usage,
        fmt::format("the nodes of cluster '{}' differ: a sweep is over numbers of equal nodes", cluster.name),
        "a cluster file of one of its parts");
  cluster.nodes = (devices + cluster.devices_per_node - 1) / cluster.devices_per_node;
  if (cluster.nodes > kMostNodes)
    throw Error(
        ErrorKind::usage,
        fmt::format("--devices: {} devices of cluster '{}' are {} nodes, at most {} can be planned for",
                    devices, cluster.name, cluster.nodes, kMostNodes),
        "fewer devices");
  return cluster;
}

double target_step_s(const SweepOptions& o) {
  if (o.target_step_s > 0 && o.target_hours > 0)
    throw Error(ErrorKind::usage, "--target-step and --target-hours are two targets", "one of the two");
  if (o.target_hours == 0) return o.target_step_s;
  if (o.steps == 0)
    throw Error(ErrorKind::usage, "--target-hours without --steps: it is not known how long a training is",
                "--steps N, or --target-step for one step");
  return o.target_hours * 3600 / static_cast<double>(o.steps);
}

bool has_tokens(const Graph& graph) {
  return std::ranges::any_of(graph.inputs,
                             [](const Input& input) { return input.kind == InputKind::tokens; });
}

/// "TP4 · PP16"; where stages differ, how most of them are split too: "PP8 (TP2 on 5 of 8 stages)".
std::string split_text(const PlanFacts& facts) {
  std::map<std::string, int> stages;
  for (const StageFacts& s : facts.stages) ++stages[s.split.text()];
  if (stages.size() <= 1) return facts.split;
  const auto most = std::ranges::max_element(stages, {}, [](const auto& s) { return s.second; });
  return fmt::format("{} ({} on {} of {} stages)", facts.split, most->first, most->second,
                     facts.stages.size());
}

/// Of each cluster file; where there is none, of the profile's machines. Refuses those of which nobody knows
/// what so many devices would be like.
std::vector<PlanningCosts> read_machines(const SweepOptions& options, const std::optional<Profile>& profile,
                                         int most_devices, Log& log) {
  std::vector<PlanningCosts> machines;
  for (const std::filesystem::path& cluster : options.clusters)
    machines.push_back(planning_costs(profile, cluster, log));
  if (machines.empty()) machines.push_back(planning_costs(profile, "", log));
  if (const std::size_t prices = options.prices.size(); prices > 0 && prices != machines.size())
    throw Error(ErrorKind::usage,
                fmt::format("--price-per-hour is given {} times for {}", prices,
                            count_text(std::ssize(machines), "cluster")),
                "one for each cluster in their order, or none");
  for (const PlanningCosts& each : machines)
    if (const Cluster most = cluster_for(each.costs.cluster(), most_devices);
        options.clusters.empty() && each.costs.cluster().nodes == 1 && most.nodes > 1)
      throw Error(
          ErrorKind::usage,
          fmt::format("--devices: {} devices are {} nodes, and '{}' was measured on one: nothing is known "
                      "of links between nodes",
                      most_devices, most.nodes, options.profile.string()),
          "--cluster FILE.toml that says between_nodes, or fewer devices");
  return machines;
}

/// Of as many of the machines as the devices take.
PlanningCosts costs_for(const PlanningCosts& machines, int devices) {
  return {machines.costs.extrapolated(cluster_for(machines.costs.cluster(), devices)),
          machines.profile_fingerprint, machines.measured, machines.are_other_machines};
}

/// nullopt: a stop was asked for before there was a plan.
std::optional<ScalingRow> planned_row(ModelDefinition model, const PlanningCosts& costs,
                                      PlannerOptions options, int devices, Log& log) {
  options.devices = devices;
  ScalingRow row{.devices = devices};
  try {
    Plan plan = plan_with_padding(model, costs.costs, options, log);
    costs.state_origin(plan);
    const PlanFacts facts = plan_facts(plan, training_step_graph(model, plan.micro_batch_samples));
    const Prediction& p = plan.prediction;
    row.step_s = p.step_s;
    row.costs = facts.costs();
    row.estimated_operators = p.estimated_operators;
    row.split = split_text(facts);
    row.micro_batches = plan.micro_batches;
    row.cut_short = p.hit_time_limit;
    for (const MeshPrediction& mesh : p.meshes)
      row.memory_bytes = std::max(row.memory_bytes, mesh.memory.total);
    row.gap = p.gap();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::stopped_early) return std::nullopt;
    if (error.kind() != ErrorKind::infeasible) throw;
    row.lacks = error.happened();
  }
  return row;
}

std::string progress_text(const ScalingRow& row) {
  return row.fits() ? fmt::format("{} a step, {}", seconds_text(row.step_s), row.split) : row.lacks;
}

}  // namespace

void describe(SweepOptions& o, OptionsVisitor& visit) {
  visit.field("target_step", o.target_step_s, "seconds that a step may take; 0: no target", at_least(0));
  visit.field("target_hours", o.target_hours, "hours that the training of --steps may take; 0: no target",
              at_least(0));
  visit.field("steps", o.steps, "steps of the whole training; 0: not known", between(0, kMostSteps));
  describe_search(o.planner, visit);
}

std::vector<int> device_counts(const std::string& text) {
  std::vector<int> counts;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const int first = device_count_of(text, 0, dots), last = device_count_of(text, dots + 2, text.size());
    for (int count = first; count <= last; count *= 2) counts.push_back(count);
  } else {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      counts.push_back(device_count_of(text, begin, end));
      begin = end + 1;
    }
  }
  if (counts.empty() || std::ranges::adjacent_find(counts, std::ranges::greater_equal()) != counts.end())
    refuse_devices(text);
  return counts;
}

int sweep_devices(const std::filesystem::path& model, const SweepOptions& options,
                  const std::filesystem::path& page, bool as_json, Log& log) {
  const StopRequest stop;
  const std::vector<int> counts = device_counts(options.devices);
  Scaling scaling{.target_step_s = target_step_s(options), .steps = options.steps};
  std::string skeleton;
  if (!page.empty()) {
    AtomicFile{page};  // a folder that cannot be written is noticed before the work
    skeleton = page_skeleton({"sweep.js"});
  }
  const ModelDefinition definition = load_model(model);
  scaling.model = definition.name;
  scaling.batch = definition.training.batch;
  scaling.tokens = has_tokens(training_step_graph(definition, definition.training.group_samples))
                       ? scaling.batch * definition.training.sequence
                       : 0;
  const std::optional<Profile> profile = read_planning_profile(options.profile, log);
  if (profile) scaling.measured_on = machines_text(profile->cluster);
  const std::vector<PlanningCosts> machines = read_machines(options, profile, counts.back(), log);
  for (std::size_t c = 0; c < machines.size(); ++c)
    scaling.clusters.push_back({machines[c].costs.cluster(), options.prices.empty() ? 0 : options.prices[c]});
  PlannerOptions planner = with_preset(options.planner);
  planner.stop = &stop;
  for (std::size_t c = 0; c < machines.size(); ++c)
    for (const int devices : counts) {
      if (stop.is_asked()) break;
      const std::optional<ScalingRow> row =
          planned_row(definition, costs_for(machines[c], devices), planner, devices, log);
      if (!row) break;
      ClusterScaling& of = scaling.clusters[c];
      log.info(
          fmt::format("'{}', {}: {}", of.cluster.name, count_text(devices, "device"), progress_text(*row)));
      of.rows.push_back(*row);
    }
  if (!page.empty()) publish_text(page, scaling_page(skeleton, scaling));
  std::fputs((as_json ? scaling_json(scaling).text() + "\n" : scaling_text(scaling)).c_str(), stdout);
  if (stop.is_asked()) {
    log.warning("the sweep was stopped: what is shown is what was planned by then");
    return static_cast<int>(ErrorKind::stopped_early);
  }
  const bool any_fits = std::ranges::any_of(scaling.clusters, [](const ClusterScaling& c) {
    return std::ranges::any_of(c.rows, &ScalingRow::fits);
  });
  if (!any_fits)
    throw Error(ErrorKind::infeasible, "no plan fits on any of these numbers of devices", "more --devices");
  return 0;
}

}  // namespace alpa
