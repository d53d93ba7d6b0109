#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "libalpa/graph/graph.h"
#include "libalpa/sharding/conversion.h"
#include "libalpa/sharding/strategy.h"

namespace alpa {

/// The layouts that one type of tensor, sent in one way, can have on a mesh, numbered, and what it costs to
/// turn one into another.
class LayoutTable {
 public:
  LayoutTable(const Value& any, MeshShape mesh) : whole_(any.type), wire_(any.wire), mesh_(std::move(mesh)) {}

  int add(const ShardingSpec&);         ///< its number, old or new
  int find(const ShardingSpec&) const;  ///< -1: not there
  int count() const { return static_cast<int>(specs_.size()); }
  const ShardingSpec& spec(int number) const { return specs_[number]; }
  std::int64_t bytes(int number) const { return bytes_[number]; }  ///< of a buffer
  const TensorType& whole() const { return whole_; }

  /// Seconds from this layout to every other, as of Conversions, whose `shared_bytes` are 0 or always the
  /// same; worked out when first asked for.
  const std::vector<double>& seconds_from(int number, double shared_bytes, const Conversions&,
                                          const CostModel&);

  /// Of the terms of a partial one.
  double reduction_seconds(int number, const Conversions&, const CostModel&) const;

  /// Likewise what memory that takes; none where there is no way.
  const std::vector<ConversionBytes>& bytes_from(int number, ConversionEnd, const Conversions&);

 private:
  TensorType whole_;
  WireFormat wire_;
  MeshShape mesh_;
  std::map<ShardingSpec, int> number_;
  std::vector<ShardingSpec> specs_;
  std::vector<std::int64_t> bytes_;
  std::array<std::vector<std::vector<double>>, 2> seconds_;                    ///< [are shared]
  std::array<std::vector<std::vector<ConversionBytes>>, 3> conversion_bytes_;  ///< [ConversionEnd]
};

/// One strategy of a node on a mesh: its layouts by number, and what one run takes of one device.
struct NodeOption {
  Strategy strategy;
  std::vector<int> operands, results;
  double seconds = 0;
  double passing_s = 0;              ///< of these, blocks on their way around a ring
  std::int64_t workspace = 0;        ///< beside operands and results
  std::int64_t later_workspace = 0;  ///< once what `goes_on` has gone on, 0 where nothing does
  std::vector<int> goes_on;          ///< operands that are not held longer than until the first round's end
};

/// What every node of a graph can do on one mesh and what that takes: worked out once for all stages on it.
/// Threads may share one.
class MeshCosts {
 public:
  MeshCosts(const Graph&, MeshShape, const CostModel&);

  const MeshShape& mesh() const { return mesh_; }
  const CostModel& costs() const { return costs_; }
  const std::vector<NodeOption>& options(NodeIndex node) const { return *options_[node]; }
  const LayoutTable& layouts(ValueIndex value) const { return *tables_[value]; }

  /// Layouts in which a state may rest: all that are not partial.
  const std::vector<int>& resting(ValueIndex state_value) const { return *resting_[state_value]; }

  /// `in_bucket`: of a sum that may be added up together with any other gradients.
  const std::vector<double>& conversion_seconds(ValueIndex value, int from, bool in_bucket) const;
  const std::vector<ConversionBytes>& conversion_bytes(ValueIndex value, int from, ConversionEnd) const;

  /// Of an operator whose operand is the value alone, in that layout: of a buffer, 0 where it needs none.
  std::int64_t workspace_of_one(const OpDef&, ValueIndex, int layout) const;

  /// Of the terms of a value that leaves its mesh; 0 where it is not partial.
  double reduction_seconds(ValueIndex value, int layout) const;

  /// Adding up the squares of a gradient's tile, per layout (0 for partial ones); for operands of the global
  /// norm.
  const std::vector<double>& norm_seconds(ValueIndex gradient) const {
    return norm_seconds_.at(tables_[gradient]);
  }

  /// Adding up a device's losses, or those of a metric, at the end of a step; `value`: one of them.
  double sum_seconds(ValueIndex value) const { return sum_seconds_.at(value); }

 private:
  std::vector<NodeOption> price(const Graph&, const Node&);
  double kernel_seconds_of(const OpDef&, const NodeLayout&) const;
  double passing_seconds(const NodeLayout&) const;
  void price_norms(const Graph&);
  void price_sum(const Graph&, ValueIndex value);

  MeshShape mesh_;
  const CostModel& costs_;
  Conversions conversions_;
  double bucket_bytes_ = 0;   ///< of all gradients: no bucket has more
  mutable std::mutex mutex_;  ///< of conversions
  mutable std::map<std::tuple<DType, Shape, WireFormat>, LayoutTable> by_type_;
  std::map<std::pair<DType, Shape>, std::vector<int>> resting_by_type_;
  std::deque<std::vector<NodeOption>> distinct_;         ///< equal nodes share one
  std::vector<const std::vector<NodeOption>*> options_;  ///< [node]
  std::vector<LayoutTable*> tables_;                     ///< [value]
  std::map<const LayoutTable*, std::vector<double>> norm_seconds_;
  std::map<ValueIndex, double> sum_seconds_;
  Indexed<ValueIndex, const std::vector<int>*> resting_;  ///< null but for states
};

/// The prices of one graph on all the meshes that were asked for.
class CostTable {
 public:
  CostTable(const Graph& graph, const CostModel& costs) : graph_(graph), costs_(costs) {}

  /// Not thread-safe where the mesh is new.
  const MeshCosts& on(const MeshShape& mesh) {
    std::unique_ptr<MeshCosts>& known = mesh_costs_[mesh];
    if (!known) known = std::make_unique<MeshCosts>(graph_, mesh, costs_);
    return *known;
  }
  /// Prices those meshes that are new, by several threads, which call `stops` before and `one_done` after
  /// each. False where some were left for that.
  bool price(const std::vector<MeshShape>&, int threads, const std::function<bool()>& stops,
             const std::function<void()>& one_done);
  /// Of a mesh that was asked for before. Wherever it lies: where nodes of the cluster differ, on the
  /// slowest.
  const MeshCosts& known(const MeshShape& mesh) const { return *mesh_costs_.at(mesh); }
  /// Where it lies.
  const MeshCosts& known(const DeviceMesh&) const;
  const CostModel& costs() const { return costs_; }

 private:
  const Graph& graph_;
  const CostModel& costs_;
  std::map<MeshShape, std::unique_ptr<MeshCosts>> mesh_costs_;
  mutable std::mutex mutex_;  ///< of the following
  mutable std::map<std::pair<MeshShape, const CostModel*>, std::unique_ptr<MeshCosts>> on_parts_;
};

}  // namespace alpa
