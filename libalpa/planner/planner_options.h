#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/stop_request.h"
#include "libalpa/plan/plan.h"
#include "libalpa/planner/gradient_buckets.h"
#include "libalpa/planner/gradient_owners.h"
#include "libalpa/planner/plan_constraints.h"
#include "libalpa/planner/stage/stage_problem.h"
#include "libalpa/planner/sum_turns.h"
#include "libalpa/planner/transfer_ways.h"

namespace alpa {

class OptionsVisitor;

/// In place of the name of a schedule: whichever of them is fastest.
inline constexpr const char* kAnySchedule = "auto";

/// A way of splitting that is given rather than searched for: one request per stage.
struct PinnedPlan {
  std::string method;  ///< what it is called in explanations
  int micro_batches = 1;
  std::string schedule = kAnySchedule;
  int stages_per_mesh = 1;  ///< that the schedule has
  std::vector<StageRequest>
      stages;  ///< layers, mesh, roles, state_sharding, rematerialisation; in_flight is filled in
  /// As of PlannerOptions; "": what these say.
  std::string overlap = "", transfers = "", updates = "", sync = "", sync_order = "", owners = "",
              offload = "";
  std::vector<std::string> stage_transfers = {};  ///< [stage] of what it sends, likewise; empty: all as above
};

/// Whether activations are computed again in the backward in place of being kept for it.
enum class Rematerialize { automatic, never, always, selective };

/// Whether `automatic` might keep less than this.
inline bool may_keep_less(Rematerialize asked) {
  return asked == Rematerialize::never || asked == Rematerialize::selective;
}

/// Of how tensors get from stage to stage: each as is fastest.
inline constexpr const char* kFastestTransfers = "auto";

/// Of what to overlap, of updates, and of sums of gradients: what is fastest for a plan's own stages.
inline constexpr const char *kFastestOverlap = "auto", *kFastestUpdates = "auto", *kFastestSync = "auto",
                            *kFastestOrder = "auto";

/// Of whose device updates what: every one all of it, and whichever of all rules is fastest.
inline constexpr const char *kNoOwners = "none", *kFastestOwners = "auto";

/// What rests in the host's memory, and is moved to the device's for its use: `offload` of PlannerOptions.
inline constexpr const char *kNoOffload = "none", *kOffloadedOptimizer = "optimizer",
                            *kOffloadedStates = "states", *kOffloadedActivations = "activations",
                            *kOffloadedBoth = "both", *kOffloadedAll = "all", *kFastestOffload = "auto";

/// How much work the search does. The same effort finds the same plan.
enum class PlannerEffort { quick, normal, thorough };

/// What an effort means.
struct StageEffort {
  /// Work on stages that are solved exactly, in place of estimating them: their pairs of strategies, for each
  /// number of micro-batches.
  std::int64_t solved_cells = 1'000'000'000;
  std::int64_t bounded_cells = 1'000'000'000;  ///< likewise, solved or solved harder for their bounds alone
  double proved_gap = 0;  ///< of a step: once bounds are that near the best that is found, no more is done
  std::int64_t effort = 100'000;         ///< on each of them, as of SelectionOptions
  std::int64_t most_cbc_cells = 60'000;  ///< likewise
  int most_in_vain = 1'000'000'000;      ///< turns of work on bounds, one after another, that raise none
  bool doubling_sizes = false;           ///< stages of several nodes have a power of two of them, or all
  int mesh_axes = 2;                     ///< the most that a stage's mesh has
  /// Numbers of micro-batches whose best baseline is that many times the best are left.
  double count_margin = infinity;
  int simulated = 1;   ///< proposals of one number of micro-batches
  int proposals = 0;   ///< as many, or the best for each number of stages
  double near = 1.03;  ///< proposals take no more than that many times the best of them
  /// Where selective recomputation, tried on the best that is found, makes that faster by such a part, it is
  /// searched for too. 0: from the first.
  double selective_gain = 0;
};
StageEffort stage_effort(PlannerEffort);

struct PlannerOptions {
  int devices = 0;              ///< 0: all of the cluster, but those of servers
  int servers = 0;              ///< further nodes, of Cluster::servers, which costs are to be of
  int staleness = -1;           ///< as of Plan
  int micro_batches = 0;        ///< 0: the planner chooses
  std::string method = "auto";  ///< of planner_methods()
  std::string preset;           ///< whose words others are to have (with_preset); "": none
  int layers = 0;  ///< clusters of the model's layers that stages may be cut between; 0: the planner chooses
  std::string schedule = kAnySchedule;                               ///< or one of the table of schedules
  std::string overlap = overlap_name(Overlap::none);                 ///< or kFastestOverlap
  std::string transfers = kFastestTransfers;                         ///< or one strategy for all
  std::string updates = update_order_name(UpdateOrder::after_norm);  ///< or kFastestUpdates
  std::string sync = kFastestSync;                                   ///< or one word of bucket_words()
  std::string sync_order = kFastestOrder;                            ///< or one word of sum_order_words()
  std::string owners = kNoOwners;  ///< or another word of owner_words(), or kFastestOwners
  int owner_parts = 0;             ///< of each parameter, with OwnerRule::searched; 0: the fastest number
  std::string offload = kNoOffload;
  Rematerialize rematerialize = Rematerialize::automatic;
  PlannerEffort effort = PlannerEffort::normal;
  double time_limit_s = 240;  ///< safety cap on the whole search, wall seconds
  int mesh_axes = 0;          ///< as of SearchSpace; 0: what the effort means
  int threads = 0;  ///< that solve stages; 0: as many as the process may run on. The plan is the same.
  /// In place of a search; says method, micro-batches, schedule and devices itself.
  std::optional<PinnedPlan> pin;
  PlanConstraints constraints;        ///< on what is searched for
  bool no_constraint_prices = false;  ///< does not search without each of them too
  /// Where the pin or the method leaves the search no say: its own best joins the candidates, for comparison.
  bool compare_with_search = false;
  /// Ends the search as the time limit does, and at once where there is no plan yet; null: nothing does.
  const StopRequest* stop = nullptr;
  SelectionCache* cache = nullptr;  ///< of what was solved before; null: its searches have one of their own
};

/// The most axes of a stage's mesh, chosen by the options or by their effort.
int mesh_axes(const PlannerOptions&);

/// That of every plan; none: of each the fastest that fits.
std::optional<Overlap> overlap(const PlannerOptions&);

/// That of every plan; none: of each the fastest that fits.
std::optional<UpdateOrder> update_order(const PlannerOptions&);

/// Whether steps may overlap each other (UpdateOrder::next_forward).
bool may_defer_updates(const PlannerOptions&);

/// Those of every plan; none: of each the fastest that fits.
std::optional<BucketSizes> buckets(const PlannerOptions&);

/// In which order the sums of every plan are added up; none: of each as is fastest.
std::optional<SumOrder> sum_order(const PlannerOptions&);

/// Whose devices update what where all would make the same update; none: as is fastest.
std::optional<OwnerRule> owner_rule(const PlannerOptions&);

/// The states of a plan that rest in the host's memory while its stages are solved, as of Plan; those of
/// which there is room on the device come back then (planner/returned_states).
std::vector<ValueIndex> states_on_host(const PlannerOptions&, const GraphUses&);

/// Whether layers whose activations the device has no room for have them in the host's memory, in place of
/// recomputing them.
bool offloads_activations(const PlannerOptions&);

/// Whether more layers may do so, or be recomputed, than was asked for of a stage.
bool may_spare_more(const PlannerOptions&);

/// That of all transfers; none: of each the fastest.
std::optional<TransferStrategy> transfer_strategy(const PlannerOptions&);

/// Of what each stage of a pinned plan sends.
StageTransfers stage_transfers(const PinnedPlan&, const PlannerOptions&);

/// The words of --schedule, --overlap, --transfers, --updates and --sync, and of the keys of pins that are
/// called so.
std::vector<Word<std::string>> schedule_choices();
std::vector<Word<std::string>> overlap_choices();
std::vector<Word<std::string>> transfer_choices();
std::vector<Word<std::string>> update_choices();
std::vector<Word<std::string>> sync_choices();
std::vector<Word<std::string>> sync_order_choices();
std::vector<Word<std::string>> owner_choices();
std::vector<Word<std::string>> offload_choices();
/// An option that says how gradients are synchronised, over all of a plan.
struct SyncOption {
  const char *name, *key;  ///< on the command line, in files
  std::string PlannerOptions::*word;
  std::vector<Word<std::string>> choices;
};
std::vector<SyncOption> sync_options();

/// Those of --preset; "" is none.
std::vector<Word<std::string>> preset_choices();

/// The options as that system has them which options.preset names, in the words of its option; all else as it
/// is. Throws Error(usage) where one of them was given otherwise.
PlannerOptions with_preset(PlannerOptions options);

/// The one list of the options that are numbers or words (libalpa/base/options.h).
void describe(PlannerOptions&, OptionsVisitor&);
/// Those of them that say how to search, whatever for how many devices and micro-batches.
void describe_search(PlannerOptions&, OptionsVisitor&);

/// A way to look for a plan.
struct PlannerMethod {
  const char* name;
  const char* described;
  bool is_baseline = true;  ///< else a search for stages
  bool is_in_auto = true;   ///< part of the method "auto"
};
const std::vector<PlannerMethod>& planner_methods();

/// What is planned: the graph of a training step for any number of samples per micro-batch.
struct PlanningModel {
  std::string name;
  std::string toml;        ///< goes into the plan
  std::int64_t batch = 1;  ///< samples per step
  std::function<Graph(std::int64_t samples)> graph;
  std::int64_t group_samples = 1;  ///< samples that no two micro-batches share out
};

}  // namespace alpa
