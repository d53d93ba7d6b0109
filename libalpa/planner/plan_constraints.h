#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "libalpa/planner/sync_way.h"
#include "libalpa/semantics/recompute_form.h"

namespace alpa {

/// No operator of the forward or the backward has the dimensions of its tensors (not samples, positions or
/// experts) split over more devices than that.
struct MostTensorParallel {
  int devices = 1;
};

/// State that is split although the work that takes it is not: 0 none, 1 optimizer states, 2 sums of
/// gradients too, 3 parameters too (ZeRO, SC'20). At most that.
struct MostZero {
  int level = 3;
};

struct StageCount {
  int least = 1, most = 1;
};

struct MicroBatchCounts {
  std::vector<int> allowed;
};

struct Recomputation {
  std::optional<RecomputeForm> of_all;  ///< layers of all stages; nullopt: of none
};

struct ScheduleOf {
  std::string name;
};

constexpr int kWholeTensor = -1;  ///< in place of a dimension

/// How parameters rest, and activations are made and kept, whose names match: split in that dimension and no
/// other, or whole.
struct TensorSplit {
  std::string pattern;  ///< '*' stands for any characters
  int dimension = kWholeTensor;
};

/// A stage ends with a layer, or begins with one.
struct StageBoundary {
  std::string layer;
  bool is_after = true;
};

/// These and all layers between them are on one stage.
struct LayersTogether {
  std::string first, last;
};

/// No stage has both devices.
struct DevicesApart {
  int one = 0, other = 1;
};

/// How the gradients of parameters whose names match get to their updates. Where no devices share out the
/// samples of one, nothing is asked.
struct GradientWay {
  std::string pattern;  ///< as of TensorSplit
  SyncWay way = SyncWay::all_reduce;
};

/// An option has this word, where it is one of the whole plan's synchronisation: overlap, updates, sync,
/// sync-order.
struct OptionWord {
  std::string option, word;
};

using Demand =
    std::variant<MostTensorParallel, MostZero, StageCount, MicroBatchCounts, Recomputation, ScheduleOf,
                 TensorSplit, StageBoundary, LayersTogether, DevicesApart, GradientWay, OptionWord>;

/// What a plan must be like.
struct PlanConstraint {
  Demand demand;
  std::string where;  ///< "limits.toml:3"
};

std::string constraint_text(const PlanConstraint&);  ///< in words: "ZeRO at most 1"

/// All that hold at once. A plan is looked for among those that meet them.
struct PlanConstraints {
  std::vector<PlanConstraint> all;

  bool empty() const { return all.empty(); }
  PlanConstraints without(std::size_t) const;

  /// Calls `take(demand, constraint)` for each of that kind.
  template <class Kind, class Take>
  void for_each(const Take& take) const {
    for (const PlanConstraint& constraint : all)
      if (const Kind* demand = std::get_if<Kind>(&constraint.demand)) take(*demand, constraint);
  }
};

}  // namespace alpa
