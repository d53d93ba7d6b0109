#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/assemble.h"
#include "libalpa/planner/gradient_buckets.h"
#include "libalpa/planner/planner_options.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/search/schedule_choice.h"
#include "libalpa/planner/search/search_space.h"
#include "libalpa/planner/stage_places.h"
#include "tests/support/cheapest_choices.h"
#include "tests/support/partitions.h"

namespace alpa::testing_models {

/// Plans of a model for all devices of a cluster, of a space that the search has too: for every number of
/// micro-batches that is given, every schedule, every cut of the layers into stages, every submesh, as one
/// axis, two or three; there the choices that StageProblem has, of a strategy for each node and a layout for
/// each value, equal layers apart from each other. Devices are given to stages as the search does, and sums
/// of gradients are in the buckets that take the least.
///
/// Where there are more choices than can be tried, those that come cheapest by their stage's own price are:
/// as many on each stage as there may be plans of a pipeline.
class EveryPlan {
 public:
  struct Limits {
    std::int64_t plans = 1000;
    std::size_t choices = 1000;    ///< of a stage
    std::int64_t cells = 100'000;  ///< of a table in looking for the choices of a stage
    bool recomputes = false;       ///< any number of the first layers of a stage, in either form
    std::function<bool(const Plan&, const Graph&)> wanted = {};  ///< of all plans those; null: all
  };

  EveryPlan(const PlanningModel& model, const CostModel& costs, const std::vector<int>& micro_batch_counts,
            const Limits& limits)
      : costs_(costs), limits_(limits) {
    for (const int count : micro_batch_counts) add(model, count);
    const std::int64_t pipelines =
        std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0},
                        [](std::int64_t sum, const auto& part) { return sum + std::ssize(part->pipelines); });
    of_pipeline_ = std::max<std::int64_t>(1, limits.plans / std::max<std::int64_t>(1, pipelines));
  }

  bool is_found() const { return is_found_; }        ///< else there was too much to look at
  bool is_complete() const { return is_complete_; }  ///< once they were tried: all choices of all stages

  struct Best {
    double step_s = infinity;          ///< infinite: none fits
    std::map<int, double> of_count{};  ///< by micro-batches
    Plan plan = {};
    std::vector<StageSolution> solutions = {};  ///< [stage of it]
    std::int64_t plans = 0;                     ///< that were tried
  };
  /// The fastest that fits, each lowered and simulated as PlanSelection does.
  Best best() {
    Best best;
    for (const auto& part : parts_)
      for (const std::vector<StageKey>& pipeline : part->pipelines) try_all(*part, pipeline, best);
    return best;
  }

 private:
  /// First and end layer, mesh, recomputed layers and how they are.
  using StageKey = std::tuple<int, int, MeshShape, int, RecomputeForm>;
  /// Those of one number of micro-batches.
  struct Part {
    Part(Graph made, int count)
        : graph(std::move(made)), planning(prepare(graph, layers_apart(graph))), micro_batches(count) {
      planning.has_buckets = true;
    }
    Graph graph;
    PlanningGraph planning;
    int micro_batches;
    std::map<MeshShape, std::unique_ptr<MeshCosts>> mesh_costs;
    std::map<StageKey, std::vector<StageSolution>> solutions;
    std::vector<std::vector<StageKey>> pipelines;
  };

  void add(const PlanningModel& model, int micro_batches) {
    parts_.push_back(std::make_unique<Part>(model.graph(model.batch / micro_batches), micro_batches));
    Part& part = *parts_.back();
    SearchSpace space;
    space.devices = costs_.cluster().devices();
    space.micro_batches = micro_batches;
    space.mesh_axes = kMostMeshAxes;
    std::map<int, std::vector<MeshShape>> meshes;  // by devices
    for (const MeshShape& mesh : stage_meshes(space, costs_.cluster()))
      meshes[device_count(mesh)].push_back(mesh);
    std::vector<StageKey> pipeline;
    for_each_partition(
        static_cast<int>(part.graph.layers.size()), space.devices, stage_sizes(space, costs_.cluster()),
        [&](const std::vector<PipelinePart>& stages) { add_pipelines(part, meshes, stages, pipeline); });
  }

  void add_pipelines(Part& part, const std::map<int, std::vector<MeshShape>>& meshes,
                     const std::vector<PipelinePart>& stages, std::vector<StageKey>& pipeline) {
    if (!is_found_) return;
    if (pipeline.size() == stages.size()) return part.pipelines.push_back(pipeline);
    const PipelinePart& stage = stages[pipeline.size()];
    const int most_recomputed = limits_.recomputes ? stage.end_layer - stage.first_layer : 0;
    for (const MeshShape& mesh : meshes.at(stage.devices))
      for (const RecomputeForm form : {RecomputeForm::full, RecomputeForm::selective})
        for (int recomputed = form == RecomputeForm::full ? 0 : 1; recomputed <= most_recomputed;
             ++recomputed) {
          pipeline.push_back({stage.first_layer, stage.end_layer, mesh, recomputed, form});
          if (!part.solutions.contains(pipeline.back())) find_solutions(part, pipeline.back());
          add_pipelines(part, meshes, stages, pipeline);
          pipeline.pop_back();
        }
  }

  StageRequest request_of(const Part& part, const StageKey& key) const {
    const auto& [first, end, mesh, recomputed, form] = key;
    return {.first_layer = first,
            .end_layer = end,
            .mesh = mesh,
            .micro_batches = part.micro_batches,
            .recomputed_layers = recomputed,
            .recompute_form = form};
  }

  /// What differs in nothing that a plan says is there once.
  void find_solutions(Part& part, const StageKey& key) {
    std::vector<StageSolution>& solutions = part.solutions[key];
    const StageRequest request = request_of(part, key);
    auto& mesh_costs = part.mesh_costs[request.mesh];
    if (!mesh_costs) mesh_costs = std::make_unique<MeshCosts>(part.graph, request.mesh, costs_);
    const StageProblem problem(part.planning, request, *mesh_costs);
    if (!problem.why_not().empty()) return;
    const CheapestChoices cheapest(problem.selection(), limits_.cells);
    is_found_ = is_found_ && cheapest.has_room();
    if (!is_found_) return;
    const auto choices = cheapest.find(limits_.choices);
    is_complete_ = is_complete_ && choices.size() < limits_.choices;
    std::set<std::tuple<std::map<NodeIndex, Strategy>, std::map<ValueIndex, ShardingSpec>,
                        std::map<ValueIndex, ShardingSpec>, std::vector<ShardingSpec>>>
        known;
    for (const auto& [cost, choice] : choices) {
      StageSolution solution = problem.solution_of(choice);
      std::vector<ShardingSpec> in_segments;
      for (const auto& [value, layouts] : solution.segment_layouts)
        in_segments.insert(in_segments.end(), {layouts.forward, layouts.backward});
      if (known
              .emplace(solution.node_strategy, solution.value_layout, solution.received_layout,
                       std::move(in_segments))
              .second)
        solutions.push_back(std::move(solution));
    }
  }

  void try_all(const Part& part, const std::vector<StageKey>& pipeline, Best& best) {
    std::vector<StageRequest> requests;
    std::vector<std::span<const StageSolution>> ways;
    double open = 0;  // stages that leave something to choose
    for (const StageKey& key : pipeline) {
      requests.push_back(request_of(part, key));
      ways.push_back(part.solutions.at(key));
      if (ways.back().size() > 1) ++open;
    }
    const auto of_stage =
        static_cast<std::size_t>(std::pow(static_cast<double>(of_pipeline_), 1 / std::max(1.0, open)) + 1e-9);
    for (auto& of_this : ways)
      if (of_this.size() > of_stage) {
        of_this = of_this.first(std::max<std::size_t>(1, of_stage));
        is_complete_ = false;
      }
    place_stages(requests, costs_.cluster());
    std::vector<StageSolution> solutions;
    const std::function<void()> extend = [&] {
      if (solutions.size() == ways.size()) return try_schedules(part, requests, solutions, best);
      for (const StageSolution& solution : ways[solutions.size()]) {
        solutions.push_back(solution);
        extend();
        solutions.pop_back();
      }
    };
    extend();
  }

  /// Others than the first where they can be better: whatever the schedule, each mesh has its work to do.
  void try_schedules(const Part& part, const std::vector<StageRequest>& requests,
                     const std::vector<StageSolution>& solutions, Best& best) const {
    double work_s = 0;
    for (const std::string& schedule :
         schedules_of(kAnySchedule, static_cast<int>(requests.size()), 1, part.micro_batches)) {
      const auto known = best.of_count.find(part.micro_batches);
      if (known != best.of_count.end() && work_s >= known->second) return;
      work_s = try_out(part, requests, solutions, schedule, best);
    }
  }

  /// Seconds that the mesh that works longest computes and communicates within itself; 0: not wanted.
  double try_out(const Part& part, const std::vector<StageRequest>& requests,
                 const std::vector<StageSolution>& solutions, const std::string& schedule, Best& best) const {
    Plan plan = assemble(part.planning, requests, solutions, schedule, costs_.cluster());
    if (limits_.wanted && !limits_.wanted(plan, part.graph)) return 0;
    plan.sync = SumsForBuckets(plan, part.planning.uses).in_soonest_buckets(plan, costs_);
    predict_steady(plan, part.graph, costs_);
    ++best.plans;
    double work_s = 0;
    bool fits = true;
    for (const MeshPrediction& mesh : plan.prediction.meshes) {
      work_s = std::max(work_s, mesh.compute_s + mesh.collective_s);
      fits = fits && mesh.memory.total <= costs_.cluster().memory_bytes;
    }
    if (!fits) return work_s;
    double& of_count = best.of_count.try_emplace(part.micro_batches, infinity).first->second;
    of_count = std::min(of_count, plan.prediction.step_s);
    if (plan.prediction.step_s >= best.step_s) return work_s;
    best.step_s = plan.prediction.step_s;
    best.plan = std::move(plan);
    best.solutions = solutions;
    return work_s;
  }

  const CostModel& costs_;
  const Limits limits_;
  std::int64_t of_pipeline_ = 1;
  bool is_found_ = true, is_complete_ = true;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace alpa::testing_models
