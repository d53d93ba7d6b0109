#include "libalpa/planner/planner_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/options.h"
#include "libalpa/base/words.h"
#include "libalpa/plan/states_at_servers.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

std::vector<Word<std::string>> method_words() {
  std::vector<Word<std::string>> words;
  for (const PlannerMethod& method : planner_methods())
    words.push_back({method.name, method.name, method.described});
  return words;
}

/// The word of the fastest of each, and those of a list.
template <class Value>
std::vector<Word<std::string>> choices(const Word<std::string>& fastest, std::span<const Word<Value>> list) {
  std::vector<Word<std::string>> words{fastest};
  for (const Word<Value>& word : list) words.push_back({word.name, std::string(word.name), word.sentence});
  return words;
}

/// None for the word of the fastest of each.
std::optional<TransferStrategy> transfer_strategy(const std::string& word) {
  if (word == kFastestTransfers) return std::nullopt;
  return find_transfer_strategy(word);
}

/// "": left as it is.
struct Preset {
  const char *name, *described, *method;
  const char *sync = "", *sync_order = "", *updates = "", *owners = "";
  bool needs_servers = false;
};

// Each overlaps all that can be.
constexpr Preset kPresets[] = {
    {"ddp", "PyTorch's DistributedDataParallel: data parallelism, sums in its buckets alongside the backward",
     "data-parallel", "ddp", "ready"},
    {"horovod", "likewise, in Horovod's buckets", "data-parallel", "horovod", "ready"},
    {"bytescheduler",
     "data parallelism without a barrier between steps, what is used first is added up first (SOSP'19, "
     "without preemption and credits)",
     "data-parallel", "each", "first-use", "next-forward"},
    {"poseidon",
     "data parallelism, gradients added up alongside the backward or made of gathered factors (ATC'17)",
     "poseidon", "each", "ready"},
    {"parallax",
     "data parallelism, gradients added up alongside the backward, those of tables made of gathered rows "
     "(EuroSys'19)",
     "parallax", "each", "ready"},
    {"byteps",
     "data parallelism without a barrier between steps, what is used first is added up first, with the help "
     "of --servers (OSDI'20)",
     "data-parallel", "each", "first-use", "next-forward", "", true},
    {"zero-1", "data parallelism, optimizer states and updates sharded (SC'20), sums alongside the backward",
     "zero-1"},
    {"zero-2", "likewise, gradients too", "zero-2"},
    {"all-reduce", "AutoDist's AllReduce: data parallelism, sums 128 at a time alongside the backward",
     "data-parallel", "count", "ready"},
    {"partitioned-all-reduce",
     "AutoDist's PartitionedAR: likewise each sum in the fewest equal parts of its rows", "data-parallel",
     "parts", "ready"},
    {"random-axis-all-reduce", "AutoDist's RandomAxisPartitionAR: likewise in parts of an axis that is drawn",
     "data-parallel", "drawn-parts", "ready"},
    {"ps", "AutoDist's PS: data parallelism, the first device updates everything for all", "data-parallel",
     "one", "ready", "after-norm", "first"},
    {"ps-balanced", "AutoDist's PSLoadBalancing: each parameter at the device with the fewest bytes so far",
     "data-parallel", "one", "ready", "after-norm", "balanced"},
    {"partitioned-ps", "AutoDist's PartitionedPS: likewise each in the fewest equal parts", "data-parallel",
     "one", "ready", "after-norm", "parts"},
    {"uneven-partitioned-ps",
     "AutoDist's UnevenPartitionedPS: likewise in the fewest parts that are not equal", "data-parallel",
     "one", "ready", "after-norm", "uneven"},
};

}  // namespace

std::vector<Word<std::string>> schedule_choices() {
  std::vector<Word<std::string>> words{
      {kAnySchedule, kAnySchedule, "whichever of them is fastest on the stages of the plan"}};
  for (const PipelineSchedule& schedule : schedules())
    words.push_back({schedule.name, schedule.name, schedule.described});
  return words;
}

std::vector<Word<std::string>> overlap_choices() {
  return choices({kFastestOverlap, kFastestOverlap, "what is fastest for the stages that are found without"},
                 overlap_words());
}

std::vector<Word<std::string>> transfer_choices() {
  return choices({kFastestTransfers, kFastestTransfers, "each as is fastest"}, transfer_strategy_words());
}

std::vector<Word<std::string>> update_choices() {
  return choices(
      {kFastestUpdates, kFastestUpdates,
       "what is fastest for the stages that are found with after-norm, in steps whose norm does not bind"},
      update_order_words());
}

std::vector<Word<std::string>> sync_choices() {
  return choices({kFastestSync, kFastestSync, "what is fastest for the stages that are found"},
                 bucket_words());
}

std::vector<Word<std::string>> sync_order_choices() {
  return choices({kFastestOrder, kFastestOrder, "what is fastest"}, sum_order_words());
}

std::vector<Word<std::string>> owner_choices() {
  return choices({kFastestOwners, kFastestOwners, "what is fastest for the stages that are found"},
                 owner_words());
}

std::vector<Word<std::string>> offload_choices() {
  return {
      {kNoOffload, kNoOffload, "nothing"},
      {kOffloadedOptimizer, kOffloadedOptimizer,
       "of what updates alone take (the optimizer's states, master weights) all that the device has no "
       "room for"},
      {kOffloadedStates, kOffloadedStates,
       "these and parameters, which each forward and backward fetches; what there is room for stays"},
      {kOffloadedActivations, kOffloadedActivations,
       "what layers save for their backward, of as many as the device has no room for; none is recomputed"},
      {kOffloadedBoth, kOffloadedBoth, "optimizer and activations"},
      {kOffloadedAll, kOffloadedAll, "states and activations"},
      {kFastestOffload, kFastestOffload,
       "whichever of none, optimizer, activations and recomputing is fastest, else the first of the "
       "others that fits; takes several searches"}};
}

std::vector<SyncOption> sync_options() {
  return {{"overlap", "overlap", &PlannerOptions::overlap, overlap_choices()},
          {"updates", "updates", &PlannerOptions::updates, update_choices()},
          {"sync", "sync", &PlannerOptions::sync, sync_choices()},
          {"sync-order", "sync_order", &PlannerOptions::sync_order, sync_order_choices()},
          {"owners", "owners", &PlannerOptions::owners, owner_choices()}};
}

StageEffort stage_effort(PlannerEffort effort) {
  switch (effort) {
    case PlannerEffort::quick:
      return {.solved_cells = 0,
              .bounded_cells = 0,
              .effort = 500,
              .most_cbc_cells = 2'000,
              .doubling_sizes = true,
              .count_margin = 1.05,
              .selective_gain = infinity};
    case PlannerEffort::normal:
      return {.solved_cells = 12'000'000,
              .bounded_cells = 8'000'000,
              .proved_gap = 0.04,
              .effort = 2'000,
              .most_cbc_cells = 10'000,
              .most_in_vain = 6,
              .doubling_sizes = true,
              .count_margin = 1.1,
              .simulated = 2,
              .selective_gain = 0.02};
    case PlannerEffort::thorough:
      return {.mesh_axes = 3, .simulated = 32, .proposals = 64, .near = 1.1};
  }
  return {};
}

int mesh_axes(const PlannerOptions& options) {
  return options.mesh_axes > 0 ? options.mesh_axes : stage_effort(options.effort).mesh_axes;
}

std::optional<Overlap> overlap(const PlannerOptions& options) {
  if (options.overlap == kFastestOverlap) return std::nullopt;
  return find_overlap(options.overlap);
}

std::optional<UpdateOrder> update_order(const PlannerOptions& options) {
  if (options.updates == kFastestUpdates) {
    if (owner_rule(options).value_or(OwnerRule::none) != OwnerRule::none) return UpdateOrder::after_norm;
    return std::nullopt;
  }
  return find_update_order(options.updates);
}

bool may_defer_updates(const PlannerOptions& options) {
  return update_order(options).value_or(UpdateOrder::next_forward) == UpdateOrder::next_forward;
}

std::optional<BucketSizes> buckets(const PlannerOptions& options) {
  if (options.sync == kFastestSync) return std::nullopt;
  return find_buckets(options.sync);
}

std::optional<SumOrder> sum_order(const PlannerOptions& options) {
  if (options.sync_order == kFastestOrder) return std::nullopt;
  return value_named(options.sync_order, sum_order_words(), "order of sums");
}

std::optional<OwnerRule> owner_rule(const PlannerOptions& options) {
  if (options.owners == kFastestOwners) return std::nullopt;
  return find_owner_rule(options.owners);
}

std::vector<ValueIndex> states_on_host(const PlannerOptions& options, const GraphUses& uses) {
  const bool is_made_again = corrects_updates(uses, update_order(options).value_or(UpdateOrder::after_norm));
  if (is_made_again) return {};
  if (options.offload == kOffloadedOptimizer || options.offload == kOffloadedBoth)
    return states_of_updates_alone(uses);
  if (options.offload == kOffloadedStates || options.offload == kOffloadedAll)
    return states_that_may_rest_on_host(uses);
  return {};
}

bool offloads_activations(const PlannerOptions& options) {
  return options.offload == kOffloadedActivations || options.offload == kOffloadedBoth ||
         options.offload == kOffloadedAll;
}

bool may_spare_more(const PlannerOptions& options) {
  return options.rematerialize == Rematerialize::automatic || offloads_activations(options);
}

std::optional<TransferStrategy> transfer_strategy(const PlannerOptions& options) {
  return transfer_strategy(options.transfers);
}

StageTransfers stage_transfers(const PinnedPlan& pin, const PlannerOptions& options) {
  const std::string& of_all = pin.transfers.empty() ? options.transfers : pin.transfers;
  StageTransfers strategies(pin.stages.size(), transfer_strategy(of_all));
  for (std::size_t s = 0; s < pin.stage_transfers.size(); ++s)
    if (const std::string& own = pin.stage_transfers[s]; !own.empty())
      strategies[StageIndex(s)] = transfer_strategy(own);
  return strategies;
}

const std::vector<PlannerMethod>& planner_methods() {
  constexpr bool is_search = false, not_in_auto = false;
  static const std::vector<PlannerMethod> methods{
      {"auto", "the search and every baseline", is_search},
      {"search", "no baseline", is_search},
      {"serial", "one device"},
      {"data-parallel", "the batch is split, all else is on every device"},
      {"zero-1", "likewise, and the optimizer's states are split"},
      {"zero-2", "likewise, and gradients are split"},
      {"zero-3", "likewise, and parameters are split"},
      {"poseidon",
       "data-parallel, but where it is cheaper the gradient of a weight is made by every device, of what it "
       "is a product of, for all samples"},
      {"parallax",
       "data-parallel, but where it is cheaper the gradient of a table is made by every device, of the rows "
       "that all of them gather (embedding_gradients = \"sparse\" has these joined by id before)",
       true, not_in_auto},
      {"tensor", "neither batch nor sequence is split, but all else"},
      {"sequence", "the sequence is split; what needs all of it gathers it"},
      {"ring", "likewise, but attention passes keys and values around"},
      {"megatron", "data, tensor and pipeline parallel together, in every ratio"},
      {"deepspeed-moe", "zero-2, but experts are split and tokens sent to them"},
      {"equal-layer", "the search, on stages of equally many layers and equal meshes", true, not_in_auto},
      {"intra-only", "the search, without a pipeline"},
      {"inter-only", "a pipeline of single devices"}};
  return methods;
}

void describe(PlannerOptions& o, OptionsVisitor& visit) {
  visit.field("devices", o.devices, "devices to plan for; 0: all of the cluster but --servers",
              between(0, kMostDevices));
  visit.field(
      "servers", o.servers,
      "nodes of the cluster in addition to these (its last) that do not compute and help to add up what all "
      "devices add up, as BytePS's servers do; not of GPUs",
      kServersRange);
  visit.field(
      "staleness", o.staleness,
      "have --servers hold the optimizer's states and make the updates, and devices compute on parameters "
      "that are so many steps old at most, each at its own pace (SSP): losses differ from run to run; "
      "-1: devices keep step",
      between(-1, kMostStaleness));
  visit.field("micro_batches", o.micro_batches, "micro-batches per step; 0: the planner chooses",
              between(0, kMostMicroBatches));
  describe_search(o, visit);
}

void describe_search(PlannerOptions& o, OptionsVisitor& visit) {
  visit.field(
      "method", o.method,
      "how to look for a plan; with any but auto and search, the search's own best is shown for comparison",
      method_words());
  visit.field("preset", o.preset,
              "how another system brings gradients together: its --method, --overlap, --sync, --sync-order, "
              "--updates and --owners, which are then not given",
              preset_choices());
  visit.field("schedule", o.schedule, "order of micro-batches on pipeline stages", schedule_choices());
  visit.field("overlap", o.overlap, "communication that goes on while a stage computes", overlap_choices());
  visit.field("transfers", o.transfers, "how tensors get from stage to stage", transfer_choices());
  visit.field("updates", o.updates, "when states are updated", update_choices());
  visit.field("sync", o.sync,
              "how the devices of a stage add up sums of gradients that all of them keep whole",
              sync_choices());
  visit.field("sync_order", o.sync_order, "in which order they do", sync_order_choices());
  visit.field(
      "owners", o.owners,
      "whether devices share out updates that all of them would make alike; each row of a parameter has "
      "one that sums its gradient up, has its optimizer states and hands it to the others",
      owner_choices());
  visit.field("owner_parts", o.owner_parts,
              "with --owners searched: how many parts each parameter is split into, at most its rows; 0: the "
              "fastest number",
              between(0, kMostOwnerParts));
  visit.field("offload", o.offload, "what rests in the host's memory and is moved to the device for its use",
              offload_choices());
  visit.field("rematerialize", o.rematerialize, "recompute activations in the backward",
              {{"auto", Rematerialize::automatic, "where the planner chooses to"},
               {"never", Rematerialize::never, "all of them are kept"},
               {"always", Rematerialize::always, "on every stage all but what enters a layer"},
               {"selective", Rematerialize::selective,
                "on every stage those that are cheap for their bytes: elementwise, norms"}});
  visit.field(
      "effort", o.effort, "how much work the search does; the same finds the same plan",
      {{"quick", PlannerEffort::quick, "stages are estimated, the best plans solved"},
       {"normal", PlannerEffort::normal,
        "the stages of the best plans are solved while that improves them; selective recomputation is "
        "searched for where the best recomputes and is faster with it"},
       {"thorough", PlannerEffort::thorough,
        "likewise, and every stage that a better plan would need, with selective recomputation from the "
        "first"}});
  visit.field("mesh_axes", o.mesh_axes,
              "the most axes of a stage's device mesh; 0: 2, with --effort thorough 3",
              between(0, kMostMeshAxes));
  visit.field("time_limit", o.time_limit_s, "safety cap on planning, in seconds", at_least(1));
  visit.field("layers", o.layers,
              "clusters of layers that stages may be cut between; 0: the model's layers, at most 128",
              between(0, kMostLayers));
  visit.field("threads", o.threads,
              "threads that solve stages; 0: as many as the process may run on. The plan is the same",
              between(0, kMostThreads));
  visit.field("no_constraint_prices", o.no_constraint_prices,
              "do not search again without each of --constraints to say what it costs");
}

std::vector<Word<std::string>> preset_choices() {
  std::vector<Word<std::string>> words{{"none", "", "each option as it is given"}};
  for (const Preset& preset : kPresets) words.push_back({preset.name, preset.name, preset.described});
  return words;
}

PlannerOptions with_preset(PlannerOptions options) {
  if (options.preset.empty()) return options;
  const Preset& preset = *std::ranges::find(kPresets, options.preset, &Preset::name);
  const PlannerOptions unsaid;
  const auto set = [&](const char* name, std::string& option, const std::string& if_unsaid,
                       const char* value) {
    if (*value == '\0') return;
    if (option != if_unsaid && option != value)
      throw Error(
          ErrorKind::usage,
          fmt::format("--{} {} together with --preset {}, which has {}", name, option, preset.name, value),
          "one of the two without the other");
    option = value;
  };
  if (preset.needs_servers && options.servers == 0)
    throw Error(ErrorKind::usage, fmt::format("--preset {} without --servers", preset.name),
                "--servers N of alpa-plan MODEL.toml; without servers it is --preset bytescheduler");
  if (options.pin)
    throw Error(ErrorKind::usage, fmt::format("--preset {} together with --pin", preset.name),
                "one of the two; a pin says 'overlap', 'updates', 'sync', 'sync_order' and 'owners' itself");
  set("method", options.method, unsaid.method, preset.method);
  set("overlap", options.overlap, unsaid.overlap, "all");
  set("sync", options.sync, unsaid.sync, preset.sync);
  set("sync-order", options.sync_order, unsaid.sync_order, preset.sync_order);
  set("updates", options.updates, unsaid.updates, preset.updates);
  set("owners", options.owners, unsaid.owners, preset.owners);
  return options;
}

}  // namespace alpa
