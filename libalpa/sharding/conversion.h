#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "libalpa/cluster/cost_model.h"
#include "libalpa/graph/wire_format.h"
#include "libalpa/sharding/sharding_spec.h"

namespace alpa {

enum class ConversionKind { slice, all_gather, all_to_all, reduce_scatter, all_reduce };

const char* conversion_name(ConversionKind);
CollectiveKind collective_of(ConversionKind);  ///< of any but a slice, which is none

/// One step on the way from one layout to another, over one mesh axis.
struct ConversionStep {
  ConversionKind kind = ConversionKind::slice;
  int axis = 0;
  int from_dimension = -1;  ///< gathered (all_gather, all_to_all)
  int to_dimension = -1;    ///< split (slice, reduce_scatter, all_to_all)
  bool maximum = false;     ///< reduces by max instead of sum
  ShardingSpec after;
  /// A sum's, in which terms are sent and added up where not in their own: each is packed into it first.
  std::optional<DType> wire_type = {};
  /// An all-gather's of rows that have ids, where those that hold nothing are left out: the share of the
  /// others that is expected.
  std::optional<double> sent_share = {};
  bool operator==(const ConversionStep&) const = default;
};

/// Steps from a known layout; empty where there is nothing to do.
using Conversion = std::vector<ConversionStep>;

/// The chains between layouts on one mesh, found by shortest path over specs and remembered. Which chain is
/// taken depends on the cluster's numbers alone, so that planner and trainer take the same one; what it costs
/// is asked of a CostModel. A partial layout is never made out of one that is not. What is sent in a type of
/// its own takes the chain that it would take in the tensor's, so that sums stay where they lie.
class Conversions {
 public:
  Conversions(const Cluster& cluster, DeviceMesh mesh)
      : routing_(cluster_under(cluster, mesh)), mesh_(std::move(mesh)) {}

  const DeviceMesh& mesh() const { return mesh_; }

  /// nullptr: there is no way. The pointer stays valid. `wire`: Value's.
  const Conversion* between(const TensorType& whole, const ShardingSpec& from, const ShardingSpec& to,
                            const WireFormat& wire = {}) const;

  /// Seconds of between(), infinity where there is no way. `shared_bytes`: of what is nothing but sums the
  /// least, as they may share all-reduces of so many bytes with others; 0: they have their own.
  double seconds(const TensorType& whole, const ShardingSpec& from, const ShardingSpec& to, const CostModel&,
                 double shared_bytes = 0, const WireFormat& wire = {}) const;

 private:
  struct Route {
    Conversion steps;
    double seconds = 0;
  };
  using Key = std::tuple<DType, Shape, ShardingSpec, WireFormat>;
  std::map<ShardingSpec, Route> routes_from(const TensorType& whole, const ShardingSpec& source) const;

  CostModel routing_;
  DeviceMesh mesh_;
  mutable std::map<Key, std::map<ShardingSpec, Route>> known_;
};

/// A tile as a step sends it.
TensorType sent_type(const ConversionStep&, const TensorType& tile);

/// Bytes handled by the group of a step, as in CollectiveSample; of the result for a slice. Of rows that have
/// ids as many as are expected.
double step_bytes(const ConversionStep&, const TensorType& before_tile, const TensorType& after_tile);

/// Time of one step on this mesh, packing included.
double step_seconds(const ConversionStep&, const TensorType& before_tile, const TensorType& after_tile,
                    const DeviceMesh&, const CostModel&);

/// Memory of buffers that a conversion takes while it runs, beside that of what it starts from.
struct ConversionBytes {
  std::int64_t first = 0;  ///< in its first step, the last one to read what it starts from
  std::int64_t later = 0;  ///< in the others, at most
  std::int64_t end = 0;    ///< of what it ends in, where that is fresh
};

/// Where a conversion writes what it ends in.
enum class ConversionEnd {
  fresh,        ///< memory of its own
  in_place,     ///< memory that is there anyway
  over_source,  ///< nobody needs what it starts from any more: sums are written over that (steps_over_source)
};

ConversionBytes conversion_bytes(const Conversion&, const TensorType& whole, const ShardingSpec& from,
                                 const MeshShape&, ConversionEnd);

/// How many of the first steps can write over what they start from: they sum it up (beside it, in a wire type
/// of their own).
std::size_t steps_over_source(const Conversion&);
/// Nothing but sums, so that all of it is done where its start lies.
inline bool is_sum_alone(const Conversion& steps) { return steps_over_source(steps) == steps.size(); }

/// Local bytes to pack before the collective (chunks of the split dimension made contiguous, or what is sent
/// in another type) and to unpack after it; zero where the dimension is outermost. Each is the scratch memory
/// that side needs. What an all-reduce sums in another type is unpacked from where it was packed.
std::int64_t packed_bytes(const ConversionStep&, const TensorType& before_tile);
std::int64_t unpacked_bytes(const ConversionStep&, const TensorType& after_tile);
inline bool is_unpacked_where_packed(const ConversionStep& step) {
  return step.wire_type && step.kind == ConversionKind::all_reduce;
}
double packing_seconds(const ConversionStep&, const TensorType& before_tile, const TensorType& after_tile,
                       const CostModel&);  ///< of both

}  // namespace alpa
