#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include "libalpa/base/parallel_tasks.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/planner/search/proposal_trials.h"

namespace alpa {

/// The graphs of a model with their prices, by numbers of micro-batches. Keeps references.
class PricedGraphs {
 public:
  PricedGraphs(const PlanningModel& model, const CostModel& costs, const PlannerOptions& options)
      : model_(model), costs_(costs), options_(options) {}

  PricedGraph& of(int micro_batches) {
    auto& known = all_[micro_batches];
    if (!known) known = build(micro_batches, costs_);
    return *known;
  }

  /// That of the first. Unless it is there, the next ones are made beside it, as many as there are threads.
  PricedGraph& first_of(std::span<const int> counts) {
    const int first = counts.front(), threads = thread_count(options_.threads);
    if (all_[first]) return *all_[first];
    counts = counts.first(std::min(static_cast<std::size_t>(threads), counts.size()));
    for (const int count : counts) all_[count];
    run_tasks(static_cast<int>(counts.size()), threads, [&](int i) {
      if (auto& known = all_.at(counts[i]); !known) known = build(counts[i], costs_);
    });
    return *all_[first];
  }

  /// One of its own, under other prices.
  std::unique_ptr<PricedGraph> build(int micro_batches, const CostModel& costs) const {
    return std::make_unique<PricedGraph>(model_.graph(model_.batch / micro_batches), costs, options_);
  }

  /// Prices take the most of what planning holds.
  void erase(int micro_batches) { all_.erase(micro_batches); }

 private:
  const PlanningModel& model_;
  const CostModel& costs_;
  const PlannerOptions& options_;
  std::map<int, std::unique_ptr<PricedGraph>> all_;
};

}  // namespace alpa
