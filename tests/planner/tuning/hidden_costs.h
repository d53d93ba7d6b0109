#pragma once
#include <cmath>
#include <memory>

#include "libalpa/base/philox.h"
#include "libalpa/planner/tuning/plan_choices.h"
#include "libalpa/planner/tuning/tuning_search.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/simulate.h"
#include "tests/support/small_plans.h"

namespace alpa {

/// A deterministic black box for tuning: it plays plans with costs that the search does not know, those of
/// its own cluster times factors of e^N(0, 0.7), which the seed draws.
class HiddenCosts {
 public:
  HiddenCosts(const PlanChoices& choices, const Graph& graph, const Cluster& cluster, std::uint64_t seed)
      : choices_(choices), graph_(graph), costs_(perturbed(cluster, seed, 0.7)) {}

  /// Of machines much like those: their costs times factors of e^N(0, 0.1).
  HiddenCosts(const HiddenCosts& like, std::uint64_t seed)
      : choices_(like.choices_),
        graph_(like.graph_),
        costs_(perturbed(like.costs_.cluster(), seed + 1000, 0.1)) {}

  double measured_s(const TuningChoice& choice) const {
    return simulate(lower(graph_, choices_.plan_of(choice)), costs_).step_s;
  }

 private:
  static Cluster perturbed(Cluster cluster, std::uint64_t seed, double spread) {
    std::uint64_t drawn = 0;
    const auto factor = [&] { return std::exp(spread * philox_normal_at(seed, 0, drawn++)); };
    for (double* figure : {&cluster.f32_flops_per_s, &cluster.memory_bytes_per_s, &cluster.launch_s,
                           &cluster.within_node.latency_s, &cluster.within_node.bytes_per_s,
                           &cluster.between_nodes.latency_s, &cluster.between_nodes.bytes_per_s})
      *figure *= factor();
    if (cluster.overlap_slowdown == 1) cluster.overlap_slowdown += 0.5 * philox_uniform_at(seed, 1, 0);
    return cluster;
  }

  const PlanChoices& choices_;
  const Graph& graph_;
  CostModel costs_;
};

/// A data-parallel plan with what can be tuned of it.
struct Tunable {
  Cluster cluster;
  Graph graph;
  Plan plan;
  CostModel costs{cluster};
  PlanChoices choices{plan, graph, costs};

  Tunable(const std::function<Graph(std::int64_t)>& graph_of, std::int64_t batch, const Cluster& on,
          int micro_batches = 1)
      : cluster(on),
        graph(graph_of(batch / micro_batches)),
        plan(planned(graph_of, batch, on, micro_batches)) {}

 private:
  static Plan planned(const std::function<Graph(std::int64_t)>& graph_of, std::int64_t batch,
                      const Cluster& on, int micro_batches) {
    PlannerOptions options = testing_models::without_buckets();
    options.method = "data-parallel";
    options.micro_batches = micro_batches;
    return testing_models::plan_quietly({"tunable", "", batch, graph_of}, on, options);
  }
};

/// Runs a search for so many trials, or as long as it finds any.
inline void run_trials(TuningSearch& search, int trials,
                       const std::function<double(const TuningChoice&)>& measured_s) {
  while (std::ssize(search.trials()) < trials) {
    std::optional<TuningTrial> trial = search.next();
    if (!trial) return;
    if (trial->fault.empty()) trial->measured_s = measured_s(trial->choice);
    search.report(std::move(*trial));
  }
}

}  // namespace alpa
