#pragma once
#include <string>
#include <vector>

#include "libalpa/plan/facts/stage_parallelism.h"
#include "libalpa/plan/facts/stage_tensors.h"
#include "libalpa/plan/plan.h"

namespace alpa {

/// Nodes of an operator that are split in one way.
struct WorkGroup {
  std::string op;
  std::string how;  ///< strategy_text()
  int count = 0;
};

struct StageFacts {
  StageIndex stage{0};
  StagePlan plan;
  std::string first_layer, last_layer;  ///< names
  DeviceMesh mesh;
  StageParallelism split;
  bool has_figures = true;   ///< time and memory of its mesh; false: they stand at `figures_at`
  StageIndex figures_at{0};  ///< the first stage on its mesh
  MeshPrediction figures = {};
  StageTensors tensors;
  std::vector<WorkGroup> forward_work;

  int layers() const { return plan.end_layer - plan.first_layer; }
  int devices() const { return device_count(mesh.shape); }
};

/// What limits a plan.
struct Binding {
  enum class Part { compute, collectives, transfers, waiting };
  Part part = Part::compute;            ///< the largest of the busiest mesh's time
  std::vector<StageIndex> busiest;      ///< the stages on that mesh
  double busiest_s = 0;                 ///< for which it works in a step
  double mean_busy_s = 0;               ///< for which a device works on average
  bool crosses_nodes = false;           ///< an axis of that mesh lies on several nodes
  std::vector<StageIndex> nearly_full;  ///< whose memory is at least nine tenths full
  double fullest = 0;                   ///< share of the memory that is used, of the fullest mesh
  std::vector<StageIndex> recomputes;   ///< that run their forward again
};

/// All that is said of a plan: text, JSON and page are made of this.
struct PlanFacts {
  std::string model, method, schedule;
  Cluster cluster;
  int devices = 0, micro_batches = 1;
  std::int64_t micro_batch_samples = 0;
  std::string profile_fingerprint;  ///< "": costs are estimated from the cluster's numbers
  std::string split = {};           ///< "TP4 · PP16", where all stages are split in one way; else "PP16"
  std::vector<StageFacts> stages = {};
  MeshTime mean;  ///< of a step, over all devices
  Binding binding = {};
  Prediction prediction;

  bool is_measured() const { return !profile_fingerprint.empty(); }
  /// The best other plan that fits; null: none did.
  const Candidate* runner_up() const;
};
PlanFacts plan_facts(const Plan&, const Graph&);

}  // namespace alpa
