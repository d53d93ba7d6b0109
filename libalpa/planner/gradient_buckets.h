#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/cluster/cost_model.h"
#include "libalpa/plan/reduced_gradients.h"
#include "libalpa/semantics/graph_uses.h"

namespace alpa {

/// How sums of gradients that devices add up are put together: in the order in which the backward is done
/// with them, into one bucket until another would make it larger than so many bytes. A larger one is alone.
struct BucketSizes {
  std::int64_t bytes = 0;        ///< 0: every sum by itself
  std::int64_t first_bytes = 0;  ///< of the first bucket of a mesh; 0: as of the others
  bool is_least = false;         ///< a bucket is closed once it has so many, and may have more
  std::size_t sums = 0;          ///< that a bucket has at most; 0: any number
  /// In place of buckets each by itself in the fewest equal parts, as many as devices add it up at most.
  enum class Parts {
    none,
    of_rows,
    of_drawn_axis,  ///< of an axis of its tile, which is drawn
  } parts = Parts::none;
  bool operator==(const BucketSizes&) const = default;
  bool may_be_shared() const { return parts == Parts::none && *this != BucketSizes(); }  ///< by several sums
};

/// As options and pins call them.
std::span<const Word<BucketSizes>> bucket_words();
BucketSizes find_buckets(const std::string& name);  ///< Throws Error(input) that lists them.

/// The sums of gradients that may share buckets: found once, whatever is tried on the plan that does not
/// change its layouts.
class SumsForBuckets {
 public:
  /// Keeps a reference. The plan is complete but for its buckets.
  SumsForBuckets(const Plan&, const GraphUses&);

  const GraphUses& uses() const { return uses_; }

  /// As Plan::sync.
  std::vector<GradientSync> in_buckets(const BucketSizes&) const;

  /// Likewise, those that are added up the soonest, by when the simulator has each sum ready in this plan.
  /// Where its collectives take turns with computation, no others take less.
  std::vector<GradientSync> in_soonest_buckets(Plan, const CostModel&) const;

  /// The plan's buckets, in turns by what the next forward uses first.
  std::vector<GradientSync> in_turns(Plan, const CostModel&) const;

 private:
  std::vector<GradientSync> in_parts(BucketSizes::Parts) const;
  double seconds(const std::vector<const ReducedGradient*>&, const DeviceMesh&, const CostModel&) const;

  const GraphUses& uses_;
  Indexed<MeshIndex, MeshShape> shapes_;
  Indexed<MeshIndex, std::vector<ReducedGradient>> converted_;  ///< those that end up split among them
  Indexed<MeshIndex, std::vector<ReducedGradient>> sums_;
};

/// What waits to be added up.
struct ReadySum {
  double ready_s = 0;  ///< when its gradient is there
  std::int64_t bytes = 0;
};

/// [sum] its bucket: runs of the sums as they are given, added up one after another, a bucket once all of it
/// is there, so that the last is done as early as can be, and likewise the first ones of them. `seconds`:
/// what a bucket of so many bytes takes. Exact: finish(j) = min over i of max(finish(i), ready(j)) +
/// seconds(bytes of i + 1 to j), where ready(j) is of the latest of these.
std::vector<int> soonest_buckets(const std::vector<ReadySum>&,
                                 const std::function<double(std::int64_t)>& seconds);

}  // namespace alpa
