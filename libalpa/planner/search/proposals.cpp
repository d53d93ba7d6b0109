#include "libalpa/planner/search/proposals.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace alpa {

double pipeline_seconds(const Proposal& proposal) {
  const int micro_batches = proposal.requests.front().micro_batches;
  std::vector<StageSeconds> seconds;
  for (const StageSolution& solution : proposal.solutions)
    seconds.push_back(seconds_of(solution, micro_batches));
  return proposal.stages_per_mesh == 1 ? pipeline_seconds(seconds)
                                       : shared_pipeline_seconds(seconds, find_schedule(proposal.schedule),
                                                                 proposal.stages_per_mesh, micro_batches);
}

double shared_pipeline_seconds(const std::vector<StageSeconds>& stages, const PipelineSchedule& schedule,
                               int stages_per_mesh, int micro_batches) {
  const std::vector<int> mesh = meshes_of_stages(schedule, static_cast<int>(stages.size()), stages_per_mesh);
  const std::size_t meshes = stages.size() / static_cast<std::size_t>(stages_per_mesh);
  std::vector<double> busy_s(meshes), update_s(meshes);
  double slowest_s = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    busy_s[mesh[s]] += micro_batches * stages[s].first;
    update_s[mesh[s]] += stages[s].update;
    slowest_s = std::max(slowest_s, stages[s].first);
  }
  return std::ranges::max(busy_s) + static_cast<double>(meshes - 1) * schedule.bubble * slowest_s +
         std::ranges::max(update_s);
}

Proposal Proposals::of(const Partition& partition) const {
  Proposal proposal;
  const std::vector<PlacedSpan> stages = placed_spans(partition, form_, places_);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    auto [request, solution] = solution_of(stages[s], partition.stages[s].way);
    proposal.requests.push_back(std::move(request));
    proposal.solutions.push_back(std::move(solution));
  }
  place_stages(proposal.requests, cluster_);
  std::vector<StageSeconds> seconds;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageRequest& request = proposal.requests[s];
    // It was solved between other neighbours, and is no more than a start.
    if (request.sides != stages[s].sides) proposal.solutions[s].is_solved = false;
    const StageSeconds taken = modes_.arrivals(stages[s].span, stages[s].sides),
                       takes = modes_.arrivals(stages[s].span, request.sides);
    seconds.push_back(partition.stages[s].seconds);
    seconds.back().first += takes.first - taken.first;
    seconds.back().others += takes.others - taken.others;
  }
  proposal.estimate_s = pipeline_seconds(seconds);
  return proposal;
}

std::pair<StageRequest, StageSolution> Proposals::solution_of(PlacedSpan stage, int way) const {
  if (way >= 0) return {solver_.request_of(stage, modes_.mode_of(way)), modes_.part(way, stage.span)};
  const SolvedStage& solved = solved_.of_way(way);
  stage.update_weight = solved.update_weight;
  const StageRequest request = solver_.request_of(stage, solved.mode);
  if (stage.span == solved.span) return {request, solved.best};
  // Of an equal stage elsewhere the nodes are others: it starts from the same template.
  const std::optional<StageWay> start = modes_.way_of(solved.mode, stage.span, stage.in_flight);
  return {request, start ? modes_.part(start->id, stage.span) : StageSolution{}};
}

}  // namespace alpa
