#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/cluster/cluster.h"
#include "libalpa/cluster/mesh.h"
#include "libalpa/graph/graph.h"
#include "libalpa/schedule/overlap.h"
#include "libalpa/schedule/stage_run.h"
#include "libalpa/schedule/update_order.h"
#include "libalpa/semantics/recompute_form.h"
#include "libalpa/sharding/strategy.h"
#include "libalpa/sharding/transfer/transfer.h"

namespace alpa {

/// Consecutive layers on one mesh, which may have other stages too. Stages follow each other.
struct StagePlan {
  int first_layer = 0;
  int end_layer = 0;  ///< one past the last
  MeshIndex mesh{0};
  /// Its first ones, of which the device does not keep for the backward what the form says.
  int recomputed_layers = 0;
  RecomputeForm recompute_form = RecomputeForm::full;
  /// What these layers make waits in the host's memory.
  bool offloads() const { return recomputed_layers > 0 && recompute_form == RecomputeForm::offload; }
  bool operator==(const StagePlan&) const = default;
};

/// The layouts into which a value is brought in a segment, once, for all of its users to start from there,
/// each for itself. So what several users share is in the plan and interacts in pairs only. (A choice for
/// every layout of every value would let users share more than one; it would make the planner's problem many
/// times larger for what is rarely worth a slice.)
struct SegmentLayouts {
  ShardingSpec forward, backward;
  bool operator==(const SegmentLayouts&) const = default;
};

/// A value that a stage of mesh `to_mesh` uses although a stage of another mesh makes it, the layout it
/// arrives in, and how it gets there.
struct PlannedTransfer {
  ValueIndex value{0};
  MeshIndex to_mesh{0};
  ShardingSpec layout;
  SegmentLayouts in_segments = {};
  TransferWay way = {};
  bool operator==(const PlannedTransfer&) const = default;
};

/// An input that stages of a mesh use: it is loaded whole.
struct InputLayouts {
  ValueIndex value{0};
  MeshIndex mesh{0};
  SegmentLayouts in_segments;
  bool operator==(const InputLayouts&) const = default;
};

/// So many rows of a parameter, as a device's tile has it, that one device along an axis updates for all.
struct OwnedRows {
  std::int64_t rows = 0;
  int owner = 0;  ///< its place along the axis, or that of a server (Plan::staleness)
  bool operator==(const OwnedRows&) const = default;
};

/// How a sum of gradients that devices add up gets to its update, where not by itself and as soon as the
/// backward is done with it.
struct GradientSync {
  ValueIndex sum{0};  ///< or what a node of the update makes of terms of several (tied weights): owners alone
  /// Sums of one bucket, which stay where they lie, lie side by side and are added up over each axis by one
  /// collective; -1: it is by itself.
  int bucket = -1;
  /// From 1 on: sums of a mesh go in the order of their turns; those without (0) go before, in the order in
  /// which the backward is done with them. A bucket has one turn.
  int turn = 0;
  /// The devices that would all make the update share it out, rows after rows (plan/owned_updates.h): each
  /// row is summed up at its owner, which alone has the optimizer's states of it, and hands the parameter's
  /// to all. A bucket is one collective in both directions, wherever its sums lie. Empty: all update all of
  /// it. Where servers hold the states, they are the owners.
  std::vector<OwnedRows> owners = {};
  /// Of a sum by itself without owners: it is added up in so many equal parts, one after another.
  int parts = 1;
  bool operator==(const GradientSync&) const = default;

  bool is_by_itself_when_ready() const { return bucket < 0 && turn == 0 && owners.empty() && parts == 1; }
};

/// Where the bytes of a mesh's arenas go, on each device.
struct MemoryUse {
  std::int64_t parameters = 0, optimizer = 0, gradients = 0, activations = 0, workspace = 0;
  std::int64_t total = 0;  ///< the arena in the device's memory, of which the above are parts
  std::int64_t host = 0;   ///< that in the host's
  bool operator==(const MemoryUse&) const = default;
};

/// How a mesh spends one step.
struct MeshTime {
  double compute_s = 0, collective_s = 0;
  double transfer_s = 0;  ///< between meshes, and between memories
  double idle_s = 0;      ///< waiting for other meshes: the bubble
  bool operator==(const MeshTime&) const = default;
};

/// Communication of a mesh in a step that takes it no time of its own.
struct HiddenTime {
  double collective_s = 0;  ///< behind computation
  double transfer_s = 0;    ///< behind computation and collectives
  bool operator==(const HiddenTime&) const = default;
};

/// What the simulator says of one mesh in one step.
struct MeshPrediction : MeshTime {
  HiddenTime hidden;
  MemoryUse memory;
  std::int64_t in_flight = 1;  ///< micro-batches of which activations are held at once, of each stage here
  bool operator==(const MeshPrediction&) const = default;
};

/// What a transfer takes each time.
struct TransferPrediction {
  double seconds = 0;                               ///< alone on the network
  std::int64_t bytes = 0, bytes_between_nodes = 0;  ///< of all its messages
  bool operator==(const TransferPrediction&) const = default;
};

/// Another plan that was tried, and what became of it.
struct Candidate {
  std::string method;             ///< "data-parallel", "search: 2 stages, 4 micro-batches"
  double step_s = 0;              ///< 0 where it is not feasible
  std::int64_t memory_bytes = 0;  ///< of the fullest device
  std::string verdict;    ///< "chosen", "slower: collectives +3.1 ms", "layers 0 to 3 need 3.2 GiB at least"
  MeshTime busiest = {};  ///< of the mesh that works longest
  std::string schedule = {};  ///< that the plan's own stages have in it; "": they were tried under one alone,
                              ///< or it has others
  bool operator==(const Candidate&) const = default;
  bool is_chosen() const { return verdict.starts_with("chosen"); }
};

/// What was asked of a plan beside speed, and what that costs.
struct ConstraintPrice {
  std::string text;           ///< "ZeRO at most 1"
  std::string where;          ///< "limits.toml:3"
  double step_without_s = 0;  ///< of the plan that is found without it alone; 0: not known
  bool operator==(const ConstraintPrice&) const = default;
};

/// What the planner expects and how it came to it.
struct Prediction {
  double step_s = 0;
  double step_error_s = 0;      ///< its standard deviation (program/order/step_error.h); 0: not known
  double estimate_s = 0;        ///< what the search minimises: sum of stages + (micro-batches - 1) x slowest
  double lower_bound_s = 0;     ///< on the step of every plan that the bound covers; 0: not known
  std::string bound_covers;     ///< those plans, in words
  bool hit_time_limit = false;  ///< the search was cut short, by the clock or on request
  Indexed<MeshIndex, MeshPrediction> meshes;
  std::vector<TransferPrediction> transfers;  ///< [transfer of the plan]
  std::vector<Candidate> candidates;          ///< best first
  int estimated_operators = 0;                ///< that were asked for in planning, and no measurement backs
  std::optional<double> estimated_share;      ///< of the time of this plan's operators; nullopt: not known
  std::vector<ConstraintPrice> constraints;   ///< that the plan was found under
  double unconstrained_s = 0;  ///< step of the plan that is found without any of them; 0: not known
  bool operator==(const Prediction&) const = default;

  /// By how much of the bound the plan is above it at most: 0.03 for 3 %; nullopt: no bound is known.
  std::optional<double> gap() const;
};

/// "46.90 ms ± 1.20 ms"; without the standard deviation where that is not known (0).
std::string step_time_text(double step_s, double step_error_s);

/// The mesh that works longest; there must be one.
MeshIndex busiest_mesh(const Prediction&);

/// Why `lost` is slower than `chosen`: the part of its busiest mesh's time that exceeds the other's most.
std::string why_slower(const Candidate& lost, const Candidate& chosen);

/// How `bound_covers` begins where the bound is on the plan's own stages alone, which others may be below.
inline constexpr std::string_view kOwnStages = "these stages on these meshes";

/// How the method of a plan that was pinned begins.
inline constexpr std::string_view kPinnedMethod = "pin ";

/// A way to train a model on a cluster, complete and checkable: with the graph it can be lowered to a
/// program.
///
/// A value is made in the layout its node's strategy gives, and turned into the layout of its segment
/// (`segment_layouts`), from which each of its users makes what it needs. What lives on rests in the layout
/// `value_layout`: as it was made where that is the same, else made of the segment's. Another segment turns
/// it from there into a layout of its own.
struct Plan {
  std::string model_name;
  std::string model_toml;         ///< self-contained; the graph is built from it
  std::string graph_fingerprint;  ///< of the training graph for `micro_batch_samples`
  std::int64_t micro_batch_samples = 0;
  int micro_batches = 1;
  std::string schedule = "1f1b";  ///< name of a PipelineSchedule
  Overlap overlap = Overlap::none;
  UpdateOrder updates = UpdateOrder::after_norm;
  Cluster cluster;
  std::string program_fingerprint;  ///< of the program that it is lowered to for training, when it was made
  std::string profile_fingerprint;  ///< what it was priced with; "" for a cluster file alone
  std::string extrapolated_from;    ///< the machines measured, where its own are others or more; else ""
  std::string method;               ///< "search", the name of a baseline, or kPinnedMethod and a file
  Indexed<MeshIndex, DeviceMesh> meshes;  ///< share no device; each has a stage
  Indexed<StageIndex, StagePlan> stages;
  Indexed<NodeIndex, Strategy> node_strategy;           ///< on the mesh of its stage
  Indexed<ValueIndex, ShardingSpec> value_layout;       ///< on the mesh of the stage that makes it
  Indexed<ValueIndex, SegmentLayouts> segment_layouts;  ///< likewise
  std::vector<PlannedTransfer> transfers;               ///< sorted by (value, to_mesh)
  std::vector<InputLayouts> inputs;  ///< each once for each mesh that uses it, in the graph's order
  std::vector<GradientSync> sync;    ///< sorted by sum; buckets are numbered from 0
  /// The states, by their values at the start of a step, that rest in the host's memory (GeePS, EuroSys'16);
  /// sorted. Each is fetched for each forward, backward and update that takes it, and offloaded when its
  /// update has written it.
  std::vector<ValueIndex> on_host;
  /// From 0 on: the cluster's servers hold the optimizer's states and make the updates; a device computes
  /// the gradients of a step on parameters of at most so many steps before, and is at most so many steps
  /// ahead of another (stale synchronous parallel, NIPS'13, with sums of gradients that are complete).
  int staleness = kSynchronous;
  static constexpr int kSynchronous = -1;
  Prediction prediction;

  bool operator==(const Plan&) const = default;
  int devices() const;                         ///< that compute
  int ranks() const;                           ///< with those of the cluster's servers
  GradientSync sync_of(ValueIndex sum) const;  ///< what `sync` says of it, or has nothing to say of
  bool has_owners() const;                     ///< of any sum
  int bucket_of(ValueIndex sum) const { return sync_of(sum).bucket; }
  bool offloads() const;  ///< states or activations
  bool has_states_at_servers() const { return staleness >= 0; }
  bool rests_on_host(ValueIndex value) const { return std::ranges::binary_search(on_host, value); }
  /// Its costs were measured on its cluster's machines.
  bool is_measured() const { return !profile_fingerprint.empty() && extrapolated_from.empty(); }
  const DeviceMesh& mesh_of(StageIndex stage) const { return meshes[stages[stage].mesh]; }
};

/// The stage whose layers include `layer`; asserts that there is one.
StageIndex stage_of_layer(const Plan&, int layer);

/// Of how many of its layers a stage does not keep all on the device, and how that is there again: "none",
/// "full", "3 of 9", "selective, 3 of 9", "offload, 3 of 9".
std::string recomputed_layers_text(const StagePlan&);
/// The same as a clause: "recomputed layers: 3 of 9", "layers with activations on the host: 3 of 9".
std::string spared_layers_text(const StagePlan&);

/// For people: how far devices may be apart where servers hold the states; "" where they keep step.
std::string staleness_text(const Plan&);

std::vector<int> mesh_of_each_stage(const Plan&);

/// The stages on each mesh, in their order.
Indexed<MeshIndex, std::vector<StageIndex>> stages_of_meshes(const Plan&);

}  // namespace alpa
