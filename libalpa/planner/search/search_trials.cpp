#include "libalpa/planner/search/search_trials.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/parallel_tasks.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/search/even_stages.h"
#include "libalpa/planner/search/schedule_choice.h"

namespace alpa {

void SearchTrials::try_all(std::vector<Proposal> proposals, const PricedGraph& graph,
                           const SearchSpace& space, const std::string& method) {
  clock_.begin(space.name + ": plans lowered", static_cast<int>(proposals.size()));
  const bool is_uniform = costs_.cluster().parts.empty();
  const bool leaves_selective_out =
      offered_.leaves_selective_out() &&
      std::ranges::find(space.rematerialize, RecomputeForm::selective) == space.rematerialize.end();
  // Where nodes differ, what they are worth where they lie is not known before.
  int wanted = stage_effort(options_.effort).simulated * (is_uniform ? 1 : 4);
  for (std::span<Proposal> left = proposals; wanted > 0 && !left.empty();) {
    const std::span<Proposal> next = left.first(std::min(left.size(), static_cast<std::size_t>(wanted)));
    left = left.subspan(next.size());
    for (Trial& trial : try_out(graph, next, method)) {
      const Proposal entered = enter(graph, std::move(trial));
      if (!entered.requests.empty()) --wanted;  // others may fit where this one did not
      if (!is_uniform) even_out(graph, space, entered, method);
      if (leaves_selective_out && entered.estimate_s <= selection_.best_estimate_s())
        try_selective(graph, entered, method);
      clock_.one_done();
    }
  }
}

void SearchTrials::try_shared(std::vector<Proposal> proposals, const PricedGraph& graph,
                              const std::string& method) {
  int wanted = stage_effort(options_.effort).simulated;
  for (Proposal& proposal : proposals) {
    log_.debug(fmt::format("  {} stages, {} on each mesh {}, {}: estimated {}", proposal.requests.size(),
                           proposal.stages_per_mesh, mesh_text(proposal.requests.front().mesh),
                           proposal.schedule, seconds_text(proposal.estimate_s)));
    if (wanted == 0 || !selection_.has_time() || proposal.estimate_s >= selection_.best_step_s()) return;
    if (!try_one(graph, std::move(proposal), method).requests.empty()) --wanted;
  }
}

double SearchTrials::best_estimate_s(int micro_batches) const {
  const auto found = found_.find(micro_batches);
  return found == found_.end() ? infinity : found->second.estimate_s;
}

double SearchTrials::selective_gain(int micro_batches) const {
  const auto found = found_.find(micro_batches);
  return found == found_.end() ? 0 : found->second.selective_gain;
}

std::vector<SearchTrials::Trial> SearchTrials::try_out(const PricedGraph& graph,
                                                       std::span<Proposal> proposals,
                                                       const std::string& method) const {
  const int count = static_cast<int>(proposals.size());
  const int threads = thread_count(options_.threads);
  std::vector<Trial> trials(proposals.size());
  run_tasks(count, threads, [&](int i) {
    trials[i].proposed_s = proposals[i].estimate_s;
    const std::string schedule =
        proposals[i].schedule.empty() ? first_schedule(options_.schedule) : proposals[i].schedule;
    trials[i].outcome = selection_.try_out(graph, std::move(proposals[i]), method, schedule, infinity,
                                           std::max(1, threads / count));
  });
  return trials;
}

Proposal SearchTrials::enter(const PricedGraph& graph, Trial trial) {
  Proposal entered =
      selection_.enter(graph, std::move(trial.outcome), {options_.schedule}, thread_count(options_.threads));
  if (!entered.requests.empty() && entered.stages_per_mesh == 1) {
    double& least_s = found_[entered.requests.front().micro_batches].estimate_s;
    least_s = std::min(least_s, entered.estimate_s);
  }
  log_.debug(fmt::format("  {} stages: estimated {}, then {}", entered.requests.size(),
                         seconds_text(trial.proposed_s), seconds_text(entered.estimate_s)));
  return entered;
}

Proposal SearchTrials::try_one(const PricedGraph& graph, Proposal proposal, const std::string& method) {
  return enter(graph, std::move(try_out(graph, {&proposal, 1}, method).front()));
}

/// All layers of the stages that recompute some fully: where that suffices it may be faster.
void SearchTrials::try_selective(const PricedGraph& graph, Proposal entered, const std::string& method) {
  bool recomputes = false;
  for (std::size_t s = 0; s < entered.requests.size(); ++s) {
    StageRequest& request = entered.requests[s];
    if (request.recomputed_layers == 0) continue;
    recomputes = true;
    request.recomputed_layers = request.end_layer - request.first_layer;
    request.recompute_form = RecomputeForm::selective;
    entered.solutions[s] = {};
  }
  if (!recomputes || !selection_.has_time()) return;
  const double fully_s = entered.estimate_s;
  const Proposal tried = try_one(graph, std::move(entered), method);
  if (tried.requests.empty()) return;
  double& gain = found_[tried.requests.front().micro_batches].selective_gain;
  gain = std::max(gain, 1 - tried.estimate_s / fully_s);
}

/// By what the stages took where they lie, until they are as even as can be.
void SearchTrials::even_out(const PricedGraph& graph, const SearchSpace& space, Proposal entered,
                            const std::string& method) {
  constexpr int rounds = 3;
  for (int round = 0; round < rounds && !entered.requests.empty() && selection_.has_time(); ++round) {
    Proposal evened{evened_out(graph.planning, graph.book, space, entered), {}, 0};
    if (std::ranges::equal(evened.requests, entered.requests, {}, &StageRequest::first_layer,
                           &StageRequest::first_layer))
      return;
    entered = try_one(graph, std::move(evened), method);
  }
}

}  // namespace alpa
