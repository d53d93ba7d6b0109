#pragma once
#include <vector>

#include "libalpa/plan/placement.h"
#include "libalpa/planner/sync_way.h"

namespace alpa {

/// A parameter whose synchronisation can be chosen by itself: its gradient is made, added up over
/// micro-batches and used by one node each, all on the mesh on which the parameter is used.
struct SyncVariable {
  StateIndex parameter;
  MeshIndex mesh;
  GradientPath path;
  std::vector<int> axes;           ///< of the mesh, that share out the samples
  int dimension = -1;              ///< of the parameter, that the ways which shard split; -1: none can be
  Strategy partial;                ///< of the maker, so that each device makes a term of its own samples
  bool has_factors = false;        ///< the maker can work on gathered operands
  std::vector<SyncWay> ways = {};  ///< it has, that of the plan first
};

/// What is open of how the gradients of a plan are synchronised. All else about its layouts stays: where
/// stages lie and how the forward and the backward are split. In optimizers of several steps (Adafactor)
/// nothing shards, and parameters that several stages or layers use (tied weights) are left as they are.
class SyncWays {
 public:
  /// Keeps a reference to the uses. `plan` is complete; its buckets and turns are of no account.
  SyncWays(const Plan& plan, const GraphUses&);

  const std::vector<SyncVariable>& variables() const { return variables_; }

  /// Sets layouts and strategies in a plan that has those of the constructor's plan for this variable or has
  /// had another way set; its buckets and turns are to be made anew.
  void set(Plan&, const SyncVariable&, SyncWay) const;

 private:
  Plan plan_;
  const GraphUses& uses_;
  std::vector<SyncVariable> variables_;
};

}  // namespace alpa
