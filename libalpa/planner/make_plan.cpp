#include "libalpa/planner/make_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/planner/search/constrained_space.h"
#include "libalpa/planner/search/constraint_prices.h"
#include "libalpa/planner/search/feasible_options.h"
#include "libalpa/planner/search/pin.h"
#include "libalpa/planner/search/plan_search.h"
#include "libalpa/planner/states_at_servers.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/text.h"
#include "libalpa/solver/selection/selection_cache.h"

namespace alpa {
namespace {

/// Throws Error(usage) for what a pin says itself.
void check_beside_pin(const PlannerOptions& options) {
  const PlannerOptions unsaid;
  const auto refuse = [](const std::string& given, const std::string& why, const std::string& hint) {
    throw Error(ErrorKind::usage, fmt::format("{} together with --pin: {}", given, why), hint);
  };
  if (options.method != unsaid.method)
    refuse("--method " + options.method, "a pinned plan is not looked for",
           "one of the two without the other");
  if (options.micro_batches != unsaid.micro_batches)
    refuse(fmt::format("--micro-batches {}", options.micro_batches),
           fmt::format("the pinned plan has {}", options.pin->micro_batches),
           "without --micro-batches; 'micro_batches' in the pin says how many");
  const auto check_word = [&](const char* name, const std::string& given, const std::string& if_unsaid,
                              const std::string& pinned) {
    if (given != if_unsaid && !pinned.empty())
      refuse(fmt::format("--{} {}", name, given), fmt::format("the pinned plan has {} '{}'", name, pinned),
             fmt::format("without --{0}; '{0}' in the pin says which", name));
  };
  check_word("schedule", options.schedule, unsaid.schedule,
             options.pin->schedule == kAnySchedule ? "" : options.pin->schedule);
  check_word("overlap", options.overlap, unsaid.overlap, options.pin->overlap);
  check_word("transfers", options.transfers, unsaid.transfers, options.pin->transfers);
  check_word("updates", options.updates, unsaid.updates, options.pin->updates);
  check_word("sync", options.sync, unsaid.sync, options.pin->sync);
  check_word("sync-order", options.sync_order, unsaid.sync_order, options.pin->sync_order);
  check_word("owners", options.owners, unsaid.owners, options.pin->owners);
  check_word("offload", options.offload, unsaid.offload, options.pin->offload);
  const int devices = device_count(*options.pin);
  if (options.devices != unsaid.devices && options.devices != devices)
    refuse(fmt::format("--devices {}", options.devices), fmt::format("the pinned plan takes {}", devices),
           "without --devices; the meshes in the pin say how many");
}

/// None where none fits, or none was found in time.
std::optional<Plan> plan_alone(const PlanningModel& model, const CostModel& costs, PlannerOptions options) {
  Log quiet("alpa-plan", LogLevel::off);
  options.compare_with_search = false;
  try {
    return search_plan(model, costs, options, quiet);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::infeasible && error.kind() != ErrorKind::stopped_early) throw;
    return std::nullopt;
  }
}

bool is_to_recompute(Rematerialize asked) {
  return asked == Rematerialize::always || asked == Rematerialize::selective;
}

/// Those that are to be recomputed are none that may be offloaded.
bool may_offload_activations(const PlannerOptions& options) {
  bool may = !is_to_recompute(options.rematerialize);
  options.constraints.for_each<Recomputation>(
      [&](const Recomputation& of, const PlanConstraint&) { may = may && !of.of_all; });
  return may;
}

void check_offload(const PlannerOptions& options, const Cluster& cluster) {
  const bool is_pinned =
      options.pin && std::ranges::any_of(options.pin->stages, [](const StageRequest& stage) {
        return stage.recomputed_layers > 0 && stage.recompute_form == RecomputeForm::offload;
      });
  if (options.offload == kNoOffload && !is_pinned) return;
  const std::string given = is_pinned ? "recompute_form = \"offload\"" : "--offload " + options.offload;
  if (cluster.host_bytes_per_s <= 0)
    throw Error(ErrorKind::usage,
                fmt::format("{}: nothing is known of moves between the memories of a device and of its host "
                            "on cluster '{}'",
                            given, cluster.name),
                "'host_gb_per_s' in the cluster file, or a profile of this release; or --offload none");
  if (offloads_activations(options) && is_to_recompute(options.rematerialize))
    throw Error(ErrorKind::usage,
                given + " together with --rematerialize that asks for layers to be recomputed",
                "one of the two without the other; --offload auto has the faster of both");
  if (options.offload != kNoOffload && options.offload != kOffloadedActivations &&
      options.updates == update_order_name(UpdateOrder::before_norm))
    throw Error(ErrorKind::usage,
                given + " together with --updates before-norm: these may have to be made again",
                "one of the two without the other");
}

/// It was on plans that move all, of which some comes back, or that move it in turn; or on plans of which
/// every device makes all of the updates.
Plan without_bound(Plan plan) {
  plan.prediction.lower_bound_s = 0;
  plan.prediction.bound_covers = "";
  return plan;
}

void check_owners(const PlannerOptions& options) {
  if (options.owner_parts > 0 && owner_rule(options) != OwnerRule::searched)
    throw Error(
        ErrorKind::usage,
        fmt::format("--owner-parts {} without --owners searched, which alone has a number of parts to say",
                    options.owner_parts),
        "--owners searched");
  if (owner_rule(options).value_or(OwnerRule::none) == OwnerRule::none ||
      update_order(options) == UpdateOrder::after_norm)
    return;
  throw Error(ErrorKind::usage,
              fmt::format("--owners {} together with --updates {}: owners update after the norm is known",
                          options.owners, options.updates),
              "one of the two without the other");
}

/// Of plans that offload and one that does not the fastest, where any is allowed.
Plan plan_offloading(const PlanningModel& model, const CostModel& costs, const PlannerOptions& given,
                     const Deadline& deadline, Log& log) {
  const auto options_with = [&](const char* offload, double time_limit_s) {
    PlannerOptions options = given;
    options.offload = offload;
    options.time_limit_s = std::max(1.0, time_limit_s);
    return options;
  };
  if (given.offload == kNoOffload) return search_plan(model, costs, given, log);
  if (given.offload != kFastestOffload) return without_bound(search_plan(model, costs, given, log));
  std::vector<const char*> ways{kOffloadedOptimizer};
  if (may_offload_activations(given)) ways.push_back(kOffloadedActivations);
  const std::size_t some = ways.size();  // others only fit where these do not, or move more than they
  ways.push_back(kOffloadedStates);
  if (may_offload_activations(given)) ways.insert(ways.end(), {kOffloadedBoth, kOffloadedAll});
  std::optional<Plan> best;
  try {
    best = search_plan(model, costs, options_with(kNoOffload, given.time_limit_s / 2), log);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::infeasible) throw;
  }
  for (std::size_t w = 0; w < (best ? some : ways.size()); ++w) {
    const auto left = static_cast<double>((best ? some : ways.size()) - w);
    const PlannerOptions offloading = options_with(ways[w], deadline.seconds_left() / left);
    if (!best && w + 1 == ways.size()) return without_bound(search_plan(model, costs, offloading, log));
    std::optional<Plan> plan = plan_alone(model, costs, offloading);
    if (plan && (!best || plan->prediction.step_s < best->prediction.step_s)) best = without_bound(*plan);
  }
  return *best;
}

/// Once planning takes long: which search it is at.
void report_pricing(const PlannerOptions& options, const PlannerOptions& others, const Deadline& deadline,
                    Log& log) {
  constexpr double long_s = 5;
  const double left_s = deadline.seconds_left(), gone_s = options.time_limit_s - left_s;
  if (gone_s > long_s)
    log.info(fmt::format("prices of constraints: search with {} of {}; {} elapsed, at most {} left",
                         others.constraints.all.size(),
                         count_text(std::ssize(options.constraints.all), "constraint"), seconds_text(gone_s),
                         seconds_text(left_s)));
}

/// What to change where no plan fits.
Error infeasible(const Error& error, const PlanningModel& model, const CostModel& costs,
                 PlannerOptions options, const Deadline& deadline) {
  const PlanBy plan_by = [&](const PlannerOptions& o) { return plan_alone(model, costs, o); };
  if (!options.constraints.empty()) {
    const std::string blamed = constraints_to_blame(options, deadline, plan_by);
    if (!blamed.empty()) return Error(ErrorKind::infeasible, blamed, "leave one out, or ask for less");
    options.constraints = {};  // which are not why
  }
  if (options.pin) return error;
  const std::string hint =
      feasible_options(model.batch / model.group_samples, costs.cluster().devices(), options,
                       [&](const PlannerOptions& o) { return plan_by(o).has_value(); });
  return Error(ErrorKind::infeasible, error.happened(), hint.empty() ? error.hint() : hint);
}

/// With what a pin says itself.
PlannerOptions checked_options(const CostModel& costs, const PlannerOptions& given) {
  PlannerOptions options = for_states_at_servers(given);
  if (options.devices > costs.cluster().devices())
    throw Error(
        ErrorKind::usage,
        fmt::format("{} devices asked for, the cluster has {}", options.devices, costs.cluster().devices()),
        fmt::format("--devices {} or fewer, or another --cluster", costs.cluster().devices()));
  if (options.pin) {
    check_beside_pin(options);
    // Of the search beside it too: steps that overlap are not compared with steps that do not.
    if (!options.pin->overlap.empty()) options.overlap = options.pin->overlap;
    if (!options.pin->updates.empty()) options.updates = options.pin->updates;
    if (!options.pin->sync.empty()) options.sync = options.pin->sync;
    if (!options.pin->sync_order.empty()) options.sync_order = options.pin->sync_order;
    if (!options.pin->owners.empty()) options.owners = options.pin->owners;
    if (!options.pin->offload.empty()) options.offload = options.pin->offload;
  }
  check_offload(within_constraints(options), costs.cluster());
  check_owners(within_constraints(options));
  return options;
}

}  // namespace

void check_options(const CostModel& costs, const PlannerOptions& given) { checked_options(costs, given); }

Plan make_plan(const PlanningModel& model, const CostModel& costs, const PlannerOptions& given, Log& log) {
  SelectionCache own;
  PlannerOptions options = checked_options(costs, given);
  if (options.cache == nullptr) options.cache = &own;
  const Deadline deadline(options.time_limit_s, options.stop);
  bool is_found = false;
  try {
    Plan plan = plan_offloading(model, costs, options, deadline, log);
    is_found = true;
    if (!options.constraints.empty())
      price_constraints(plan, options, deadline, [&](const PlannerOptions& o) {
        report_pricing(options, o, deadline, log);
        return plan_alone(model, costs, o);
      });
    const Graph graph = model.graph(plan.micro_batch_samples);
    if (options.staleness >= 0) hold_states_at_servers(plan, graph, costs, options.staleness);
    if (owner_rule(within_constraints(options)).value_or(OwnerRule::none) != OwnerRule::none &&
        !plan.has_owners())
      log.warning(
          "no update of this plan is shared out between owners: none is made alike by all devices along an "
          "axis of gradients that they add up over it in their own type (ZeRO, Adafactor, gradients that are "
          "compressed, held back, or sent in another type have none)");
    if (update_order(within_constraints(options)) == UpdateOrder::next_forward &&
        plan.updates != UpdateOrder::next_forward)
      log.warning(
          "this plan's updates end the step and do not come in the next forward: the model is in f16, "
          "parameters rest in the host's memory, or stages share weights or meshes");
    const Program program = lower(graph, plan);
    if (program.servers && !program.has_states_at_servers() && !program.servers->has_sums_to_serve())
      log.warning(
          "the servers of this plan have nothing to do: none of its sums is over all devices at once and "
          "longer than messages take to start (ZeRO's are not, nor those of owners, of pipelines, and of "
          "meshes with several axes); --method data-parallel has such sums");
    plan.program_fingerprint = program_fingerprint(program, graph);
    return plan;
  } catch (const OutOfTime&) {
    throw;
  } catch (const Error& error) {
    if (is_found || error.kind() != ErrorKind::infeasible) throw;
    throw infeasible(error, model, costs, options, deadline);
  }
}

}  // namespace alpa
