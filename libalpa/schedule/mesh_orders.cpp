#include <algorithm>
#include <cassert>
#include <optional>
#include <tuple>

#include "libalpa/schedule/orders.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

/// Backwards take about twice as long as forwards, their parts as long each.
double duration(SegmentKind kind) { return kind == SegmentKind::backward ? 2 : 1; }

/// List scheduling of the stages' orders with these durations; stages wait for the neighbours' values only.
class Merge {
 public:
  Merge(const PipelineSchedule& schedule, const std::vector<int>& mesh_of_stage, int micro_batches)
      : mesh_(mesh_of_stage), next_(mesh_of_stage.size()) {
    const int stages = static_cast<int>(mesh_of_stage.size());
    for (int s = 0; s < stages; ++s) {
      orders_.push_back(schedule.of_stage(StageIndex(s), stages, micro_batches));
      for (StageRun& run : orders_.back()) run.stage = StageIndex(s);
    }
    const auto micro = static_cast<std::size_t>(micro_batches);
    forward_s_.assign(orders_.size(), std::vector<std::optional<double>>(micro));
    backward_s_ = forward_s_;
    const int meshes = 1 + *std::ranges::max_element(mesh_of_stage);
    free_s_.assign(static_cast<std::size_t>(meshes), 0);
    merged_.resize(static_cast<std::size_t>(meshes));
  }

  std::vector<std::vector<StageRun>> merged() {
    while (const auto run = first_to_start()) start(*run);
    return std::move(merged_);
  }

 private:
  std::size_t mesh(std::size_t stage) const { return static_cast<std::size_t>(mesh_[stage]); }

  /// When what the stage's next run needs of its neighbours is there; nothing: not yet known.
  std::optional<double> ready_s(const StageRun& run) const {
    const auto stage = static_cast<std::size_t>(run.stage), m = static_cast<std::size_t>(run.micro_batch);
    if (run.kind == SegmentKind::backward_weights) return 0;
    if (run.kind == SegmentKind::forward) return stage == 0 ? 0 : forward_s_[stage - 1][m];
    return stage + 1 == orders_.size() ? 0 : backward_s_[stage + 1][m];
  }

  std::optional<std::size_t> first_to_start() const {
    std::optional<std::size_t> best;
    std::tuple<double, bool, int> least;
    for (std::size_t s = 0; s < orders_.size(); ++s) {
      if (next_[s] == orders_[s].size()) continue;
      const StageRun& run = orders_[s][next_[s]];
      const std::optional<double> ready = ready_s(run);
      if (!ready) continue;
      const std::tuple key{std::max(*ready, free_s_[mesh(s)]), run.kind == SegmentKind::forward, -run.stage};
      if (best && key >= least) continue;
      best = s;
      least = key;
    }
    return best;
  }

  void start(std::size_t stage) {
    const StageRun& run = orders_[stage][next_[stage]++];
    double& free = free_s_[mesh(stage)];
    free = std::max(free, *ready_s(run)) + duration(run.kind);
    const auto m = static_cast<std::size_t>(run.micro_batch);
    if (run.kind == SegmentKind::forward) forward_s_[stage][m] = free;
    if (run.kind == SegmentKind::backward || run.kind == SegmentKind::backward_inputs)
      backward_s_[stage][m] = free;
    merged_[mesh(stage)].push_back(run);
  }

  const std::vector<int>& mesh_;
  std::vector<std::vector<StageRun>> orders_;                               ///< [stage]
  std::vector<std::size_t> next_;                                           ///< [stage] in its order
  std::vector<std::vector<std::optional<double>>> forward_s_, backward_s_;  ///< [stage][micro-batch] its end
  std::vector<double> free_s_;                                              ///< [mesh]
  std::vector<std::vector<StageRun>> merged_;                               ///< [mesh]
};

/// The orders of meshes 0, 1, ... are those of the meshes that the stages lie on in turn.
std::vector<std::vector<StageRun>> renumbered(const MeshOrders& orders, const std::vector<int>& places,
                                              const std::vector<int>& mesh_of_stage) {
  std::vector<std::vector<StageRun>> of_mesh(orders.size());
  for (std::size_t stage = 0; stage < places.size(); ++stage)
    of_mesh[mesh_of_stage[stage]] = orders[places[stage]];
  return of_mesh;
}

}  // namespace

std::vector<std::vector<StageRun>> mesh_orders(const PipelineSchedule& schedule,
                                               const std::vector<int>& mesh_of_stage, int micro_batches) {
  if (!schedule.shares_meshes()) return Merge(schedule, mesh_of_stage, micro_batches).merged();
  if (mesh_of_stage.size() == 1) return {one_f_one_b_order(StageIndex(0), 1, micro_batches)};
  assert(runs_on(schedule, mesh_of_stage));
  const int stages = static_cast<int>(mesh_of_stage.size()),
            meshes = 1 + *std::ranges::max_element(mesh_of_stage), per_mesh = stages / meshes;
  return renumbered(schedule.of_meshes(meshes, per_mesh, micro_batches),
                    meshes_of_stages(schedule, stages, per_mesh), mesh_of_stage);
}

}  // namespace alpa
