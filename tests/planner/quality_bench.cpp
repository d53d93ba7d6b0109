#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/log.h"
#include "libalpa/model/model.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/planner/search/plan_search.h"
#include "libalpa/sharding/strategy.h"
#include "tests/planner/planning_bench.h"

namespace alpa {
namespace {

const std::string kSource = ALPA_SOURCE_DIR;

constexpr double kSlack = 1 + 1e-9;  ///< the same plan may be summed in another order

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The plans of a row.
class RowPlanner {
 public:
  RowPlanner(const PublishedFamily& family, const PublishedRow& row, const CostModel& costs)
      : model_(read(family, row)), costs_(costs) {
    options_.devices = row.devices;
    published_s_ = (row.pflop > 0 ? row.pflop * 1e15 : paper_flops(model_).value_or(0)) /
                   (row.devices * row.tflops * 1e12);
    for (const std::string& system : family.systems) {
      PlannerOptions options = options_;
      options.method = system;
      if (const std::optional<Plan> plan = make(options)) systems_s_[system] = plan->prediction.step_s;
    }
    PlannerOptions pinned;
    pinned.pin = read_pin(kSource + "/configs/pins/published/" + row.model + ".toml");
    replayed_ = make(pinned);
    own_ = make(options_);
    if (!own_ || !replayed_)
      throw Error(ErrorKind::infeasible, row.model + ": no plan fits", "a pin that fits");
  }

  const Plan& own() const { return *own_; }
  const Plan& replayed() const { return *replayed_; }
  double published_s() const { return published_s_; }
  const std::map<std::string, double>& systems_s() const { return systems_s_; }
  Graph graph() const { return training_step_graph(model_, own_->micro_batch_samples); }

 private:
  static ModelDefinition read(const PublishedFamily& family, const PublishedRow& row) {
    const std::string path = kSource + "/configs/models/" + row.model + ".toml";
    if (family.blocks.empty()) return read_model(path, {kSource + "/share/blocks"});
    return parse_model(fmt::format("base = \"{}\"\nname = \"{}\"\n", path, row.model) +
                           text_of(kSource + "/tests/planner/" + family.blocks),
                       family.blocks, {kSource + "/share/blocks"});
  }

  /// None where none fits; what would fit then is not asked.
  std::optional<Plan> make(const PlannerOptions& options) const {
    const PlanningModel planning{model_.name, model_.expanded_toml, model_.training.batch,
                                 [&](std::int64_t samples) { return training_step_graph(model_, samples); },
                                 model_.training.group_samples};
    Log quiet("bench_planning", LogLevel::off);
    try {
      return search_plan(planning, costs_, options, quiet);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::infeasible) throw;
      return std::nullopt;
    }
  }

  ModelDefinition model_;
  const CostModel& costs_;
  PlannerOptions options_;
  double published_s_ = 0;
  std::map<std::string, double> systems_s_;
  std::optional<Plan> own_, replayed_;
};

/// Whether convolutions are split by samples at first and some later by channels too.
bool goes_from_batch_to_channels(const Plan& plan, const Graph& graph) {
  bool by_batch_at_first = false, by_channels = false, is_first = true;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    if (node.op->name != "conv2d" || node.phase != Phase::forward) continue;
    const std::string text =
        strategy_text(*node.op, {operand_types(graph, node), node.attributes}, plan.node_strategy[n]);
    const bool has_channels = text.find("c:") != std::string::npos || text.find("f:") != std::string::npos;
    if (std::exchange(is_first, false))
      by_batch_at_first = text.find("n:") != std::string::npos && !has_channels;
    by_channels = by_channels || has_channels;
  }
  return by_batch_at_first && by_channels;
}

/// Of the stage that transfers longest, for each micro-batch.
double crossing_ms(const Plan& plan) {
  double most_s = 0;
  for (const MeshPrediction& mesh : plan.prediction.meshes) most_s = std::max(most_s, mesh.transfer_s);
  return 1e3 * most_s / plan.micro_batches;
}

std::string seconds_of(const std::map<std::string, double>& systems_s, const std::string& system) {
  const auto found = systems_s.find(system);
  return found == systems_s.end() ? "-" : fmt::format("{:.2f}", found->second);
}

class QualityBench {
 public:
  QualityBench(const QualityTargets& targets, TargetCount& count)
      : targets_(targets),
        count_(count),
        costs_(read_cluster(kSource + "/configs/clusters/" + targets.cluster + ".toml")) {}

  void run() {
    for (const PublishedFamily& family : targets_.families) look_at(family);
    fmt::print("{} of {} excuses taken{}\n", excuses_, targets_.most_excuses,
               count_.mark(excuses_ <= targets_.most_excuses));
  }

 private:
  void look_at(const PublishedFamily& family) {
    fmt::print("{}: seconds a step\n{:<18}{:>5}{:>9}{:>9}{:>11}{:>8}", family.name, "", "GPUs", "ours",
               "Alpa's", "published", "ratio");
    for (const std::string& system : family.systems) fmt::print("{:>15}", system);
    fmt::print("\n");
    double factor = 0, flops_per_s_of_one = 0;
    for (const PublishedRow& row : family.rows) {
      const RowPlanner planned(family, row, costs_);
      const double own_s = planned.own().prediction.step_s, replayed_s = planned.replayed().prediction.step_s;
      if (row.devices == 1) factor = planned.published_s() / replayed_s;
      const double ratio = factor * replayed_s / planned.published_s();
      const double gap = planned.own().prediction.gap().value_or(infinity);
      fmt::print("{:<18}{:>5}{:>9.2f}{:>7.1f}%{:>9.2f}{:>11.2f}{:>8.3f}", row.model, row.devices, own_s,
                 100 * gap, replayed_s, planned.published_s(), ratio);
      for (const std::string& system : family.systems)
        fmt::print("{:>15}", seconds_of(planned.systems_s(), system));
      fmt::print("\n");
      require("ours is slower than Alpa's plan", own_s <= kSlack * replayed_s);
      for (const auto& [system, system_s] : planned.systems_s())
        require("ours is slower than " + system, own_s <= kSlack * system_s);
      require("the bound is far below", gap <= targets_.largest_gap);
      if (row.devices > 1) hold_to_published(row, ratio);
      look_for_effects(row, planned, own_s);
      const double rate = row.tflops * planned.published_s() / own_s;
      if (row.devices == 1) flops_per_s_of_one = rate;
      if (family.name == "GPT" && row.devices > 1)
        require("no faster per device than on one", rate >= flops_per_s_of_one);
      std::fflush(stdout);
    }
    fmt::print("one factor of {:.3f} brings the replayed row of one device to the published one\n\n", factor);
  }

  void hold_to_published(const PublishedRow& row, double ratio) {
    const bool is_near = std::abs(ratio - 1) <= targets_.largest_deviation;
    if (is_near || row.excuse.empty())
      return require("the replayed plan is off the published seconds", is_near);
    ++excuses_;
    fmt::print("    excused: {}\n", row.excuse);
  }

  void look_for_effects(const PublishedRow& row, const RowPlanner& planned, double own_s) {
    const bool several_nodes = row.devices > costs_.cluster().devices_per_node;
    const auto& systems_s = planned.systems_s();
    if (const auto deepspeed = systems_s.find("deepspeed-moe"); several_nodes && deepspeed != systems_s.end())
      require("the gain over deepspeed-moe is small",
              deepspeed->second >= targets_.least_gain_over_deepspeed * own_s);
    if (row.model == "wide-resnet-4b")
      require("convolutions are not split by batch at first and by channels later",
              goes_from_batch_to_channels(planned.own(), planned.graph()));
    if (row.model == "gpt-39b") {
      const double ms = crossing_ms(planned.replayed());
      fmt::print("    crossings take at most {:.1f} ms a micro-batch\n", ms);
      require("crossings are not split over the devices that receive them", ms <= targets_.most_crossing_ms);
    }
  }

  /// Counts a target; prints what is wrong where it is missed.
  void require(const std::string& fault, bool is_reached) {
    const std::string mark = count_.mark(is_reached);
    if (!mark.empty()) fmt::print("    {}{}\n", fault, mark);
  }

  const QualityTargets& targets_;
  TargetCount& count_;
  const CostModel costs_;
  std::int64_t excuses_ = 0;
};

}  // namespace

void bench_quality(const QualityTargets& targets, TargetCount& count) { QualityBench(targets, count).run(); }

}  // namespace alpa
