#pragma once
#include <optional>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/planner/gradient_buckets.h"
#include "libalpa/planner/gradient_owners.h"
#include "libalpa/planner/sum_turns.h"
#include "libalpa/planner/tuning/plan_features.h"
#include "libalpa/planner/tuning/sync_ways.h"
#include "libalpa/planner/tuning/tuning_space.h"

namespace alpa {

/// What there is to tune of a plan: for each parameter how its gradient is synchronised (SyncWays), then what
/// sums share collectives, in which order they go, who makes an update that all would make, what overlaps,
/// and when updates are made. All choices train the same model; stages, meshes and how the forward and the
/// backward are split stay as they are.
class PlanChoices {
 public:
  /// Keeps references to the graph and the costs.
  PlanChoices(const Plan&, const Graph&, const CostModel&);
  PlanChoices(const PlanChoices&) = delete;
  PlanChoices& operator=(const PlanChoices&) = delete;

  const std::vector<Gene>& genes() const { return genes_; }
  /// Of the first genes: one for each of their variables.
  const SyncWays& ways() const { return ways_; }

  TuningChoice as_planned() const;

  /// The same with the plan's buckets, as far as they are left, and with such as are added up the soonest;
  /// sums have turns where the plan's have. Without buckets in the plan there are none.
  std::vector<TuningChoice> with_buckets_anew(TuningChoice) const;

  /// Its layouts, buckets and turns; what the plan said of its prediction is left out. It may not fit.
  Plan plan_of(const TuningChoice&) const;

  Assessment assess(const TuningChoice&) const;

  /// What other systems do, where the plan has the parameters for it: "as planned" first.
  std::vector<NamedChoice> presets() const;

  /// Refers to this.
  TuningSpace space() const;

 private:
  enum Global { buckets, order, owners, overlap, updates, kGlobals };
  std::size_t place_of(Global gene) const { return ways_.variables().size() + gene; }
  template <class Value>
  void add_gene(const char* name, std::vector<std::pair<std::string, Value>> choices,
                std::vector<Value>& values);
  TuningChoice uniform(SyncWay, const std::string& buckets, SumOrder, Overlap, UpdateOrder,
                       OwnerRule = OwnerRule::none) const;
  bool can_have_owners() const;
  TuningChoice with_cheaper_factors(TuningChoice, bool of_tables = false) const;
  bool is_table(const SyncVariable&) const;  ///< whose gradient rows at ids add up to
  std::vector<GradientSync> planned_sync(const TuningChoice&) const;
  void set_buckets(Plan&, const TuningChoice&) const;
  void set_sync(Plan&, const TuningChoice&) const;

  Plan plan_;
  const Graph& graph_;
  const CostModel& costs_;
  GraphUses uses_;
  SyncWays ways_;
  std::vector<Gene> genes_;
  std::vector<std::string> buckets_;  ///< [word of the gene] bucket_words(), or one of this file's own
  std::vector<SumOrder> orders_;
  std::vector<std::optional<OwnerRule>> owners_;  ///< none: as planned
  std::vector<Overlap> overlaps_;
  std::vector<UpdateOrder> updates_;
  FeatureUnits units_;
};

}  // namespace alpa
