#pragma once
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/constraint.h"
#include "libalpa/plan/placement.h"

namespace alpa {

/// How the gradient of one parameter gets to its update over the devices that share out the samples.
enum class SyncWay {
  as_planned,         ///< as the plan has it, which is none of the others
  all_reduce,         ///< every device updates the whole parameter
  sharded_update,     ///< reduce-scatter once a step, states of the optimizer split (ZeRO-1)
  sharded_gradient,   ///< likewise in each micro-batch, so that sums of gradients are split too (ZeRO-2)
  sharded_parameter,  ///< and the parameter rests split, gathered where it is used (ZeRO-3)
  factors,            ///< every device makes the whole gradient of what it gathers (Poseidon, ATC'17)
};

/// As files and tables call them.
std::span<const Word<SyncWay>> sync_way_words();
std::string sync_way_name(SyncWay);

/// A parameter whose synchronisation can be chosen by itself: its gradient is made, added up over
/// micro-batches and used by one node each, all on the mesh on which the parameter is used.
struct SyncVariable {
  StateIndex parameter;
  MeshIndex mesh;
  NodeIndex maker, summing, update;  ///< of the gradient, of its sum, of the parameter
  std::vector<int> axes;             ///< of the mesh, that share out the samples
  int dimension = -1;                ///< of the parameter, that the ways which shard split; -1: none can be
  Strategy partial;                  ///< of the maker, so that each device makes a term of its own samples
  bool has_factors = false;          ///< the maker can work on gathered operands
  std::vector<SyncWay> ways = {};    ///< it has, that of the plan first
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
