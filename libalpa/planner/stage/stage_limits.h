#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/limits.h"
#include "libalpa/cluster/mesh.h"
#include "libalpa/planner/stage/layer_classes.h"
#include "libalpa/planner/sync_way.h"
#include "libalpa/semantics/graph_uses.h"
#include "libalpa/sharding/sharding_spec.h"

namespace alpa {

/// How a tensor must lie: split in that dimension and no other; -1: whole. Terms that are yet to be summed
/// do not matter.
struct TensorForm {
  int dimension = -1;
  std::string constraint;  ///< that asks for it, for messages

  bool allows(const ShardingSpec&) const;
};

/// What constraints leave open of how the stages of a graph are split.
struct StageLimits {
  std::int64_t most_tensor_parallel = kMostDevices;       ///< as of MostTensorParallel
  int most_zero = 3;                                      ///< as of MostZero
  std::map<ValueIndex, std::vector<TensorForm>> tensors;  ///< all of which hold
  std::map<ValueIndex, SyncWay> ways;                     ///< of parameters, where they are updated

  const std::vector<TensorForm>& forms_of(ValueIndex) const;
  /// The one that a layout is against; null: it is allowed.
  const TensorForm* against(ValueIndex, const ShardingSpec&) const;
};

/// Layers stay equal where they are limited alike too.
LayerClasses apart_by_limits(LayerClasses, const Graph&, const StageLimits&);

/// What a model file names: its parameters, and of each layer the values of the forward, of those with one
/// name the last.
std::map<std::string, ValueIndex> named_tensors(const Graph&);
bool matches(std::string_view pattern, std::string_view name);  ///< '*' stands for any characters

/// What the update of a parameter is made of.
struct UpdateSources {
  std::vector<NodeIndex> sums;     ///< of gradients over micro-batches
  std::vector<StateIndex> states;  ///< of the optimizer
};
UpdateSources update_sources(const GraphUses&, const State& parameter);

/// Whether one is split over no axis that the other is not split over.
bool is_split_within(const ShardingSpec&, const ShardingSpec& other);

}  // namespace alpa
