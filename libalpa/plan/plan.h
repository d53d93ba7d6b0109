#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "libalpa/cluster/cluster.h"
#include "libalpa/cluster/mesh.h"
#include "libalpa/graph/graph.h"
#include "libalpa/sharding/strategy.h"

namespace alpa {

/// Consecutive layers on one mesh. Stages follow each other; their meshes share no device.
struct StagePlan {
  int first_layer = 0;
  int end_layer = 0;  ///< one past the last
  DeviceMesh mesh;
  bool rematerialize =
      false;  ///< keep only what enters each layer; compute the rest again before its backward
  bool operator==(const StagePlan&) const = default;
};

/// A value that stage `to_stage` uses although another stage makes it, and the layout it arrives in.
struct Crossing {
  int value = 0;
  int to_stage = 0;
  ShardingSpec layout;
  bool operator==(const Crossing&) const = default;
};

/// Where the bytes of a stage's arena go.
struct MemoryUse {
  std::int64_t parameters = 0, optimizer = 0, gradients = 0, activations = 0, workspace = 0;
  std::int64_t total = 0;  ///< the arena
  bool operator==(const MemoryUse&) const = default;
};

/// How a stage spends one step.
struct StageTime {
  double compute_s = 0, collective_s = 0, transfer_s = 0;
  double idle_s = 0;  ///< waiting for other stages: the bubble
  bool operator==(const StageTime&) const = default;
};

/// What the simulator says of one stage in one step.
struct StagePrediction : StageTime {
  MemoryUse memory;
  std::int64_t in_flight = 1;  ///< micro-batches whose activations are held at once
  bool operator==(const StagePrediction&) const = default;
};

/// Another plan that was tried, and what became of it.
struct Candidate {
  std::string method;             ///< "data-parallel", "search: 2 stages, 4 micro-batches"
  double step_s = 0;              ///< 0 where it is not feasible
  std::int64_t memory_bytes = 0;  ///< of the fullest device
  std::string verdict;     ///< "chosen", "slower: collectives +3.1 ms", "layers 0 to 3 need 3.2 GiB at least"
  StageTime busiest = {};  ///< of the stage that works longest
  bool operator==(const Candidate&) const = default;
};

/// What the planner expects and how it came to it.
struct Prediction {
  double step_s = 0;
  double estimate_s = 0;        ///< what the search minimises: sum of stages + (micro-batches - 1) x slowest
  double lower_bound_s = 0;     ///< on the estimate of every plan that the bound covers; 0: not known
  std::string bound_covers;     ///< those plans, in words
  bool hit_time_limit = false;  ///< the search was cut short, by the clock or on request
  std::vector<StagePrediction> stages;
  std::vector<Candidate> candidates;  ///< best first
  int estimated_operators = 0;        ///< costs that no measurement backs
  bool operator==(const Prediction&) const = default;
};

/// The stage that works longest; there must be one.
std::size_t busiest_stage(const Prediction&);

/// Why `lost` is slower than `chosen`: the part of its busiest stage's time that exceeds the other's most.
std::string why_slower(const Candidate& lost, const Candidate& chosen);

/// A way to train a model on a cluster, complete and checkable: with the graph it can be lowered to a
/// program.
///
/// A value is made in the layout its node's strategy gives, turned at once into its resting layout
/// (`value_layout`), and from there into what each user needs.
struct Plan {
  std::string model_name;
  std::string model_toml;         ///< self-contained; the graph is built from it
  std::string graph_fingerprint;  ///< of the training graph for `micro_batch_samples`
  std::int64_t micro_batch_samples = 0;
  int micro_batches = 1;
  std::string schedule = "1f1b";  ///< name of a PipelineSchedule
  Cluster cluster;
  std::string program_fingerprint;  ///< of the program that it is lowered to for training, when it was made
  std::string profile_fingerprint;  ///< what it was priced with; "" for a cluster file alone
  std::string method;               ///< "search", or the name of a baseline
  std::vector<StagePlan> stages;
  std::vector<Strategy> node_strategy;  ///< [node of the training graph], on the mesh of its stage
  std::vector<ShardingSpec>
      value_layout;                 ///< [value of the training graph], on the mesh of the stage that makes it
  std::vector<Crossing> crossings;  ///< sorted by (value, to_stage)
  Prediction prediction;

  bool operator==(const Plan&) const = default;
  int devices() const;
};

/// The stage whose layers include `layer`; asserts that there is one.
int stage_of_layer(const Plan&, int layer);

/// The stage that makes a value: of its producer; for a state that of the node that updates it; for an input
/// -1 (every stage that uses it is fed).
int stage_of_value(const Plan&, const Graph&, int value);

/// The layout in which a value leaves its stage: as it rests, unreduced terms summed first.
ShardingSpec leaving_layout(const Plan&, int value);

/// Values that a stage keeps from the forward of a micro-batch for its backward. Where the stage
/// rematerialises, a layer's own values are made again and only what enters it is kept.
std::vector<int> saved_values(const Plan&, const Graph&, int stage);

/// Checks a plan against its graph: sizes, meshes within the cluster and disjoint, stages covering all layers
/// in order, every strategy one that the operator's rule allows, every layout one that fits, no partial value
/// at rest in a state or across stages, every crossing listed. Throws Error(input) with the first fault.
void check_plan(const Plan&, const Graph&);

}  // namespace alpa
