#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "libalpa/checkpoint/exchange_weights.h"
#include "libalpa/checkpoint/initial_state.h"
#include "libalpa/h5/file.h"
#include "libalpa/model/model.h"
#include "libalpa/planner/make_plan.h"
#include "libalpa/sampler/decoder.h"
#include "tests/h5/temporary_folder.h"
#include "tests/support/source_folder.h"
#include "tests/support/train_ranks.h"

namespace alpa {

/// A model of tests/reference/weights.py with the weights that it wrote, as a checkpoint, and a plan for one
/// device.
class TrainedElsewhere {
 public:
  explicit TrainedElsewhere(const std::string& family, std::int64_t document_end = -1)
      : family_(family),
        model_(read_model(source_folder() / "tests/data" / ("small_" + family + ".toml"),
                          {source_folder() / "share/blocks"})) {
    model_.training.document_end = document_end;
    Cluster cluster;
    cluster.memory_bytes = 1 << 30;
    cluster.memory_bytes_per_s = 1e10;
    cluster.f32_flops_per_s = cluster.bf16_flops_per_s = 1e9;
    cluster.launch_s = 1e-6;
    cluster.within_node = {1e-6, 1e10};
    const PlanningModel planned{model_.name, "", model_.training.batch, [this](std::int64_t samples) {
                                  return training_step_graph(model_, samples);
                                }};
    PlannerOptions options;
    options.method = "serial";
    plan_ = make_plan(planned, CostModel(cluster), options, log_);
    graph_ = training_step_graph(model_, plan_.micro_batch_samples);
    import_weights(source_folder() / "tests/reference" / (family + ".safetensors"), graph_, model_.training,
                   checkpoint(), NonFinite::refused, {}, log_);
  }

  std::filesystem::path checkpoint() const { return folder_.path() / "weights.h5"; }
  const Plan& plan() const { return plan_; }
  const Graph& graph() const { return graph_; }
  Log& log() { return log_; }

  /// What PyTorch made of these weights: "tokens", "logits" or "greedy".
  std::vector<std::int64_t> integers(const std::string& what) const {
    return reference().int64s("/" + family_ + "/" + what);
  }
  std::vector<double> numbers(const std::string& what) const {
    return reference().doubles("/" + family_ + "/" + what);
  }

 private:
  static H5Reader reference() {
    return H5Reader((source_folder() / "tests/reference/logits.h5").string(), "alpa-reference", "1.0");
  }

  std::string family_;
  ModelDefinition model_;
  Plan plan_;
  Graph graph_;
  TemporaryFolder folder_;
  Log log_{"test", LogLevel::off};
};

}  // namespace alpa
