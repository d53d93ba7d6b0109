// What proposals leave open, once their stages are solved.
#include <algorithm>
#include <functional>
#include <utility>

#include "libalpa/plan/update_timing.h"
#include "libalpa/planner/best_parts.h"
#include "libalpa/planner/offloaded_layers.h"
#include "libalpa/planner/predict.h"
#include "libalpa/planner/returned_states.h"
#include "libalpa/planner/search/proposal_trials.h"
#include "libalpa/planner/transfer_ways.h"
#include "libalpa/program/program.h"

namespace alpa {

void ProposalTrials::set_buckets(Plan& plan, const SumsForBuckets& sums) const {
  plan.sync = buckets(options_) ? sums.in_buckets(*buckets(options_)) : sums.in_soonest_buckets(plan, costs_);
  if (sum_order(options_) == SumOrder::first_use) plan.sync = sums.in_turns(plan, costs_);
  give_owners(plan, sums.uses());
}

void ProposalTrials::give_owners(Plan& plan, const GraphUses& uses) const {
  const OwnerRule rule = owner_rule(options_).value_or(OwnerRule::none);
  if (rule != OwnerRule::none) plan.sync = with_owners(plan, uses, rule, options_.owner_parts);
}

/// Of what the options leave open. The stages were solved without: what arrives early takes memory, as copies
/// of states do, which may not be there. Buckets that are added up the soonest are there already.
void ProposalTrials::take_what_pays(Plan& plan, const PricedGraph& priced, const StageTransfers& transfers,
                                    const SumsForBuckets& sums, const Patience& patience) const {
  const auto fits = [&](const Plan& other) {
    const bool has_room = std::ranges::all_of(other.meshes.indices(), [&](MeshIndex m) {
      return other.prediction.meshes[m].memory.total <= costs_.on(other.meshes[m]).cluster().memory_bytes;
    });
    return has_room && host_shortfall(other) <= host_shortfall(plan);
  };
  const bool is_said =
      options_.pin && std::ranges::any_of(options_.pin->stages, [](const StageRequest& stage) {
        return stage.recomputed_layers > 0;
      });
  const auto choose_layers = [&](Plan& of) {
    if (!is_said) choose_offloaded_layers(of, priced.graph, costs_, fits);
  };
  choose_layers(plan);
  const auto offer = [&](Plan other) {
    predict_steady(other, priced.graph, costs_);
    choose_layers(other);
    if (fits(other) && other.prediction.step_s < plan.prediction.step_s) plan = std::move(other);
  };
  const auto offer_in_other_order = [&](Plan other) {
    choose_transfer_ways(other, priced.graph, costs_, transfers);
    set_buckets(other, sums);
    offer(std::move(other));
  };
  if (!overlap(options_))
    for (const Overlap each : {Overlap::transfers, Overlap::all}) {
      Plan other = plan;
      other.overlap = each;
      offer_in_other_order(std::move(other));
    }
  const auto offer_updates = [&] {
    for (const Word<UpdateOrder>& word : update_order_words()) {
      Plan other = plan;
      other.updates = order_in_effect(priced.planning.uses, plan, word.value);
      if (other.updates != plan.updates) offer_in_other_order(std::move(other));
    }
  };
  if (!update_order(options_)) offer_updates();
  const std::vector<ValueIndex> on_host = plan.on_host;
  return_states(plan, priced.graph, costs_, fits);
  if (plan.on_host != on_host) {  // updates whose states came back can have owners
    give_owners(plan, sums.uses());
    predict_steady(plan, priced.graph, costs_);
  }
  // What is on a host decides when updates may be.
  const std::optional<UpdateOrder> asked = update_order(options_);
  if (!asked && plan.on_host != on_host) offer_updates();
  if (asked && order_in_effect(priced.planning.uses, plan, *asked) != plan.updates) {
    Plan other = plan;
    other.updates = order_in_effect(priced.planning.uses, plan, *asked);
    choose_transfer_ways(other, priced.graph, costs_, transfers);
    set_buckets(other, sums);
    predict_steady(other, priced.graph, costs_);
    if (fits(other)) plan = std::move(other);
  }
  offer_syncs(plan, sums, offer, patience);
  offer_owners(plan, priced, sums, offer);
}

void ProposalTrials::offer_owners(const Plan& plan, const PricedGraph& priced, const SumsForBuckets& sums,
                                  const std::function<void(Plan)>& offer) const {
  const std::optional<OwnerRule> rule = owner_rule(options_);
  const auto with = [&](const Plan& than, OwnerRule other_rule, int parts) {
    Plan other = than;
    other.sync = with_owners(than, sums.uses(), other_rule, parts);
    return other;
  };
  if (!rule)
    for (const Word<OwnerRule>& word : owner_words())
      if (Plan other = with(plan, word.value, 0);
          word.value != OwnerRule::searched && other.sync != plan.sync)
        offer(std::move(other));
  if (rule.value_or(OwnerRule::searched) != OwnerRule::searched || options_.owner_parts > 0) return;
  const Plan base = plan;  // a better one may take its place
  if (!with(base, OwnerRule::searched, 0).has_owners()) return;
  int places = 1;
  for (const DeviceMesh& mesh : base.meshes) places = std::max(places, device_count(mesh.shape));
  const int parts = best_parts(places, std::min(8 * places, kMostOwnerParts), [&](int tried) {
    Plan other = with(base, OwnerRule::searched, tried);
    predict_steady(other, priced.graph, costs_);
    return other.prediction.step_s;
  });
  offer(with(base, OwnerRule::searched, parts));
}

/// Other buckets, in other turns.
void ProposalTrials::offer_syncs(Plan& plan, const SumsForBuckets& sums,
                                 const std::function<void(Plan)>& offer, const Patience& patience) const {
  if (is_in_turn(LaneKind::collective, plan.overlap)) return;
  std::vector<std::vector<GradientSync>> tried{plan.sync};
  const auto offer_sync = [&](std::vector<GradientSync> sync) {
    if (std::ranges::find(tried, sync) != tried.end()) return;
    Plan other = plan;
    other.sync = tried.emplace_back(std::move(sync));
    give_owners(other, sums.uses());
    offer(std::move(other));
  };
  // Where steps do not overlap each other, the next forward waits for all sums.
  const auto in_turns = [&](std::vector<GradientSync> sync) {
    Plan other = plan;
    other.sync = std::move(sync);
    return sums.in_turns(std::move(other), costs_);
  };
  const std::optional<SumOrder> order = sum_order(options_);
  if (!order && plan.updates == UpdateOrder::next_forward) offer_sync(in_turns(plan.sync));
  // By so much buckets of other sizes are no faster than those that are added up the soonest.
  constexpr double kNear = 1.1;
  if (buckets(options_) || plan.prediction.step_s >= kNear * patience.stage_s) return;
  for (const Word<BucketSizes>& word : bucket_words()) {
    if (word.value.parts != BucketSizes::Parts::none)
      continue;  // one after another they take what the whole does
    const std::vector<GradientSync> sync = sums.in_buckets(word.value);
    if (order != SumOrder::first_use) offer_sync(sync);
    if (order ? order == SumOrder::first_use : plan.updates == UpdateOrder::next_forward)
      offer_sync(in_turns(sync));
  }
}

}  // namespace alpa
