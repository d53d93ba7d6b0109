#pragma once
#include <string>
#include <vector>

#include "libalpa/plan/facts/binding.h"
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

/// Values that reach a stage from another mesh in one way.
struct ArrivalGroup {
  std::vector<std::string> names;
  std::string type, from, to;  ///< layouts: "S0RR" on the sending mesh, and as it arrives
  StageIndex from_stage{0};
  std::string way;  ///< transfer_way_text()
  TransferPrediction each = {};
};

struct StageFacts {
  StageIndex stage{0};
  StagePlan plan;
  std::string first_layer, last_layer;  ///< names
  DeviceMesh mesh;
  std::vector<std::string> parts = {};  ///< that its devices are of; none where the cluster's nodes are equal
  std::int64_t device_memory_bytes = 0;
  StageParallelism split;
  bool has_figures = true;   ///< time and memory of its mesh; false: they stand at `figures_at`
  StageIndex figures_at{0};  ///< the first stage on its mesh
  MeshPrediction figures = {};
  StageTensors tensors;
  std::vector<ArrivalGroup> arrivals;  ///< of the first stage on its mesh: all of the mesh's
  std::vector<WorkGroup> forward_work;

  int layers() const { return plan.end_layer - plan.first_layer; }
  int devices() const { return device_count(mesh.shape); }
};

/// All that is said of a plan: text, JSON and page are made of this.
struct PlanFacts {
  std::string model, method, schedule, overlap, updates;
  int buckets = 0;  ///< of sums of gradients that are added up together
  Cluster cluster;
  int devices = 0, micro_batches = 1;
  std::int64_t micro_batch_samples = 0;
  std::string profile_fingerprint;     ///< "": costs are estimated from the cluster's numbers
  std::string extrapolated_from = {};  ///< as in the plan
  std::string split = {};              ///< "TP4 · PP16", where all stages are split in one way; else "PP16"
  std::vector<StageFacts> stages = {};
  MeshTime mean;  ///< of a step, over all devices
  Binding binding = {};
  Prediction prediction;
  std::string lossy;  ///< lossy_gradients_text()
  std::string stale;  ///< staleness_text()
  /// Of a model over graphs: "the vertices of 32 samples together, by frontier, in 20 rounds".
  std::string vertices = {};

  bool is_measured() const { return !profile_fingerprint.empty(); }
  const char* costs() const;  ///< what they are: "estimated", "measured", "extrapolated"
  bool is_pinned() const { return method.starts_with(kPinnedMethod); }
  /// The best other plan that fits, with other stages; null: none did. Faster only than a plan that was asked
  /// for.
  const Candidate* runner_up() const;
};
PlanFacts plan_facts(const Plan&, const Graph&);

}  // namespace alpa
