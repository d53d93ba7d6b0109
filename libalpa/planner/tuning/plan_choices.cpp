#include "libalpa/planner/tuning/plan_choices.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/plan/reduced_gradients.h"
#include "libalpa/plan/update_timing.h"
#include "libalpa/planner/predict.h"
#include "libalpa/program/lower/lower.h"

namespace alpa {
namespace {

/// Beside owner_words() and bucket_words(), and of these alone.
constexpr const char *kAsPlanned = "as-planned", *kSoonestBuckets = "soonest";

/// "block.12.mlp.up" is of the kind "block.#.mlp.up".
std::string without_numbers(const std::string& name) {
  std::string kind;
  for (const char c : name) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit)
      kind += c;
    else if (kind.empty() || kind.back() != '#')
      kind += '#';
  }
  return kind;
}

template <class Value>
int place_in(const std::vector<Value>& values, const Value& value) {
  const auto at = std::ranges::find(values, value);
  return at == values.end() ? 0 : static_cast<int>(at - values.begin());
}

Fingerprint identity_of(const Plan& plan) {
  RunningFingerprint digest;
  for (const Strategy& strategy : plan.node_strategy) digest.add(strategy);
  const auto add_layout = [&digest](const ShardingSpec& spec) {
    for (const std::vector<int>& axes : spec.axes) digest.add(axes);
    digest.add(spec.partial_sum), digest.add(spec.partial_max);
  };
  for (const ShardingSpec& layout : plan.value_layout) add_layout(layout);
  for (const SegmentLayouts& layouts : plan.segment_layouts)
    add_layout(layouts.forward), add_layout(layouts.backward);
  for (const GradientSync& sync : plan.sync) {
    digest.add(static_cast<int>(sync.sum)), digest.add(sync.bucket), digest.add(sync.turn),
        digest.add(sync.parts);
    for (const OwnedRows& part : sync.owners)
      digest.add(part.owner), digest.add(static_cast<double>(part.rows));
  }
  digest.add(static_cast<int>(plan.overlap));
  digest.add(static_cast<int>(plan.updates));
  return digest.value();
}

/// Buckets of one sum are none, and the others are numbered from 0; nothing has owners.
std::vector<GradientSync> tidied(std::vector<GradientSync> sync) {
  std::map<int, int> count, number;
  for (const GradientSync& each : sync) ++count[each.bucket];
  for (GradientSync& each : sync) {
    each.owners.clear();
    if (each.bucket < 0) continue;
    if (count[each.bucket] < 2)
      each.bucket = -1;
    else
      each.bucket = number.try_emplace(each.bucket, static_cast<int>(number.size())).first->second;
  }
  std::erase_if(sync, [](const GradientSync& each) { return each.is_by_itself_when_ready(); });
  return sync;
}

}  // namespace

template <class Value>
void PlanChoices::add_gene(const char* name, std::vector<std::pair<std::string, Value>> choices,
                           std::vector<Value>& values) {
  Gene gene{name, {}};
  for (auto& [word, value] : choices) {
    gene.words.push_back(word);
    values.push_back(value);
  }
  genes_.push_back(std::move(gene));
}

PlanChoices::PlanChoices(const Plan& plan, const Graph& graph, const CostModel& costs)
    : plan_(plan), graph_(graph), costs_(costs), uses_(graph), ways_(plan, uses_) {
  plan_.prediction = {};
  for (const SyncVariable& variable : ways_.variables()) {
    Gene gene{graph_.states[variable.parameter].name, {}};
    for (const SyncWay way : variable.ways) gene.words.push_back(sync_way_name(way));
    gene.kind = without_numbers(gene.name);
    genes_.push_back(std::move(gene));
  }
  std::vector<std::pair<std::string, std::string>> sizes;
  if (!plan_.sync.empty()) sizes.emplace_back(kAsPlanned, kAsPlanned);
  for (const Word<BucketSizes>& word : bucket_words())
    // So many at a time are all of most models, and parts one after another take what the whole does.
    if (word.value.sums == 0 && word.value.parts == BucketSizes::Parts::none)
      sizes.emplace_back(std::string(word.name), std::string(word.name));
  sizes.emplace_back(kSoonestBuckets, kSoonestBuckets);
  add_gene("buckets", std::move(sizes), buckets_);
  const auto all_words = [](const auto& words) {
    std::vector<std::pair<std::string, std::remove_cvref_t<decltype(words.front().value)>>> all;
    for (const auto& word : words) all.emplace_back(std::string(word.name), word.value);
    return all;
  };
  add_gene("order", all_words(sum_order_words()), orders_);
  std::vector<std::pair<std::string, std::optional<OwnerRule>>> rules;
  if (plan_.has_owners()) rules.emplace_back(kAsPlanned, std::nullopt);
  for (const Word<OwnerRule>& word : owner_words())
    if (word.value != OwnerRule::searched &&  // as even, where parts are as many as devices
        (word.value == OwnerRule::none || can_have_owners()))
      rules.emplace_back(word.name, word.value);
  add_gene("owners", std::move(rules), owners_);
  add_gene("overlap", all_words(overlap_words()), overlaps_);
  auto times = all_words(update_order_words());
  std::erase_if(times,
                [&](const auto& time) { return order_in_effect(uses_, plan_, time.second) != time.second; });
  add_gene("updates", std::move(times), updates_);

  const Program program = lower(graph_, plan_);
  const Timeline timeline = simulate(program, costs_);
  units_.seconds = 1e-9;  // of a plan that computes nothing
  for (const MeshTime& mesh : timeline.meshes) units_.seconds = std::max(units_.seconds, mesh.compute_s);
  units_.bytes = 4.0 * static_cast<double>(parameter_count(graph_));
}

/// What the plan says of the sums that still are what they were there.
std::vector<GradientSync> PlanChoices::planned_sync(const TuningChoice& choice) const {
  std::vector<GradientSync> sync = plan_.sync;
  for (std::size_t v = 0; v < ways_.variables().size(); ++v) {
    const ValueIndex sum = ways_.variables()[v].path.sum(graph_);
    if (choice[v] != 0) std::erase_if(sync, [&](const GradientSync& each) { return each.sum == sum; });
  }
  return tidied(std::move(sync));
}

/// Where each device adds up its gradients whole and makes every update at the end of the step, if not as
/// planned.
bool PlanChoices::can_have_owners() const {
  Plan plan = plan_;
  for (const SyncVariable& variable : ways_.variables())
    if (std::ranges::count(variable.ways, SyncWay::all_reduce) > 0)
      ways_.set(plan, variable, SyncWay::all_reduce);
  plan.sync.clear();
  plan.updates = order_in_effect(uses_, plan, UpdateOrder::after_norm);
  plan.sync = with_owners(plan, uses_, OwnerRule::first);
  return plan.has_owners();
}

void PlanChoices::set_sync(Plan& plan, const TuningChoice& choice) const {
  set_buckets(plan, choice);
  const std::optional<OwnerRule>& rule = owners_[choice[place_of(owners)]];
  if (!rule)
    plan.sync = with_owners_of(plan_.sync, plan, uses_);
  else if (rule != OwnerRule::none)
    plan.sync = with_owners(plan, uses_, *rule);
}

void PlanChoices::set_buckets(Plan& plan, const TuningChoice& choice) const {
  const std::string& sizes = buckets_[choice[place_of(buckets)]];
  plan.sync.clear();
  const bool in_turns = orders_[choice[place_of(order)]] == SumOrder::first_use;
  if (sizes == kAsPlanned && !in_turns) {
    plan.sync = planned_sync(choice);
    return;
  }
  const SumsForBuckets sums(plan, uses_);
  plan.sync = sizes == kAsPlanned        ? planned_sync(choice)
              : sizes == kSoonestBuckets ? sums.in_soonest_buckets(plan, costs_)
                                         : sums.in_buckets(find_buckets(sizes));
  if (in_turns) plan.sync = sums.in_turns(plan, costs_);
}

Plan PlanChoices::plan_of(const TuningChoice& choice) const {
  Plan plan = plan_;
  for (std::size_t v = 0; v < ways_.variables().size(); ++v)
    if (choice[v] != 0) ways_.set(plan, ways_.variables()[v], ways_.variables()[v].ways[choice[v]]);
  plan.overlap = overlaps_[choice[place_of(overlap)]];
  plan.updates = updates_[choice[place_of(updates)]];
  set_sync(plan, choice);
  return plan;
}

Assessment PlanChoices::assess(const TuningChoice& choice) const {
  Plan plan = plan_of(choice);
  Assessment found;
  found.identity = identity_of(plan);
  Plan fewer = plan;
  fewer.micro_batches = micro_batches_to_be_steady(plan);
  const Program program = lower(graph_, fewer);
  for (const MeshIndex m : program.meshes.indices()) {
    const std::int64_t bytes = program.meshes[m].memory.total,
                       there = cluster_under(plan.cluster, plan.meshes[m]).memory_bytes;
    found.memory_bytes = std::max(found.memory_bytes, bytes);
    if (bytes > there)
      found.fault = fmt::format("takes {} of a device, which has {}", bytes_text(bytes), bytes_text(there));
  }
  const Timeline timeline = simulate(program, costs_);
  found.predicted_s = timeline.step_s;
  found.features = plan_features(plan, program, timeline, costs_, units_);
  if (fewer.micro_batches < plan.micro_batches) {
    predict_steady(plan, graph_, costs_);
    found.predicted_s = plan.prediction.step_s;
  }
  return found;
}

TuningChoice PlanChoices::uniform(SyncWay way, const std::string& sizes, SumOrder in_order,
                                  Overlap overlapped, UpdateOrder time, OwnerRule rule) const {
  TuningChoice choice(genes_.size(), 0);
  for (std::size_t v = 0; v < ways_.variables().size(); ++v) {
    const std::vector<SyncWay>& ways = ways_.variables()[v].ways;
    const bool has_it = std::ranges::count(ways, way) > 0;
    choice[v] = place_in(ways, has_it ? way : SyncWay::all_reduce);
  }
  choice[place_of(buckets)] = place_in(buckets_, sizes);
  choice[place_of(order)] = place_in(orders_, in_order);
  choice[place_of(owners)] = place_in(owners_, std::optional(rule));
  choice[place_of(overlap)] = place_in(overlaps_, overlapped);
  choice[place_of(updates)] = place_in(updates_, time);
  return choice;
}

bool PlanChoices::is_table(const SyncVariable& variable) const {
  return node_of(graph_, variable.path.maker).op->adds_up_rows;
}

/// With factors for every kind of parameters with which the step takes less by them (Poseidon, algorithm 3,
/// by the simulator); of tables alone where it is `of_tables` (Parallax).
TuningChoice PlanChoices::with_cheaper_factors(TuningChoice choice, bool of_tables) const {
  double least_s = assess(choice).predicted_s;
  std::map<std::string, std::vector<std::size_t>> kinds;
  for (std::size_t v = 0; v < ways_.variables().size(); ++v)
    if (std::ranges::count(ways_.variables()[v].ways, SyncWay::factors) > 0 &&
        (!of_tables || is_table(ways_.variables()[v])))
      kinds[genes_[v].kind].push_back(v);
  for (const auto& [kind, members] : kinds) {
    TuningChoice other = choice;
    for (const std::size_t v : members) other[v] = place_in(ways_.variables()[v].ways, SyncWay::factors);
    const double s = assess(other).predicted_s;
    if (s >= least_s) continue;
    least_s = s;
    choice = std::move(other);
  }
  return choice;
}

TuningChoice PlanChoices::as_planned() const {
  TuningChoice choice(genes_.size(), 0);
  choice[place_of(overlap)] = place_in(overlaps_, plan_.overlap);
  choice[place_of(updates)] = place_in(updates_, plan_.updates);
  return choice;
}

std::vector<TuningChoice> PlanChoices::with_buckets_anew(TuningChoice choice) const {
  const auto has_turn = [](const GradientSync& sync) { return sync.turn > 0; };
  const auto has_bucket = [](const GradientSync& sync) { return sync.bucket >= 0; };
  if (std::ranges::any_of(plan_.sync, has_turn))
    choice[place_of(order)] = place_in(orders_, SumOrder::first_use);
  std::vector<TuningChoice> choices{choice};
  if (std::ranges::none_of(plan_.sync, has_bucket)) return choices;
  choice[place_of(buckets)] = place_in(buckets_, std::string(kSoonestBuckets));
  choices.push_back(choice);
  return choices;
}

std::vector<NamedChoice> PlanChoices::presets() const {
  constexpr Overlap all = Overlap::all;
  constexpr SumOrder ready = SumOrder::ready;
  const UpdateOrder time = plan_.updates;
  std::vector<NamedChoice> presets{{"as planned", as_planned()}};
  const auto add = [&](const char* name, TuningChoice choice) {
    if (std::ranges::find(presets, choice, &NamedChoice::choice) == presets.end())
      presets.push_back({name, std::move(choice)});
  };
  add("ddp", uniform(SyncWay::all_reduce, "ddp", ready, all, time));
  add("horovod", uniform(SyncWay::all_reduce, "horovod", ready, all, time));
  add("bytescheduler",
      uniform(SyncWay::all_reduce, "each", SumOrder::first_use, all, UpdateOrder::next_forward));
  add("poseidon", with_cheaper_factors(uniform(SyncWay::all_reduce, "each", ready, all, time)));
  if (std::ranges::any_of(ways_.variables(), [&](const SyncVariable& v) { return is_table(v); }))
    add("parallax", with_cheaper_factors(uniform(SyncWay::all_reduce, "each", ready, all, time), true));
  add("zero-1", uniform(SyncWay::sharded_update, kSoonestBuckets, ready, all, time));
  add("zero-2", uniform(SyncWay::sharded_gradient, kSoonestBuckets, ready, all, time));
  add("zero-3", uniform(SyncWay::sharded_parameter, kSoonestBuckets, ready, all, time));
  if (!std::ranges::count(owners_, OwnerRule::first)) return presets;
  const auto add_owners = [&](const char* name, OwnerRule rule) {
    add(name, uniform(SyncWay::all_reduce, "one", ready, all, UpdateOrder::after_norm, rule));
  };
  add_owners("ps", OwnerRule::first);
  add_owners("ps-balanced", OwnerRule::balanced);
  add_owners("partitioned-ps", OwnerRule::parts);
  add_owners("uneven-partitioned-ps", OwnerRule::uneven);
  return presets;
}

TuningSpace PlanChoices::space() const {
  return {genes_, presets(), plan_feature_names(),
          [this](const TuningChoice& choice) { return assess(choice); }};
}

}  // namespace alpa
