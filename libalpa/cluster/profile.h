#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "libalpa/base/collective_traffic.h"
#include "libalpa/cluster/cluster.h"
#include "libalpa/cluster/mesh.h"

namespace alpa {

const char* collective_name(CollectiveKind);

enum class SampleStatus { measured, failed };

/// What one thing took on one node: the median of its ranks' medians, and the largest interquartile range of
/// their repetitions. Zeros: it was not timed there.
struct NodeTime {
  double median_s = 0, spread_s = 0;
  bool operator==(const NodeTime&) const = default;
};

/// Timings of one thing: median over repetitions and ranks, the spread between the fastest and slowest rank,
/// and that between repetitions.
struct OperatorSample {
  double median_s = 0;
  double spread_s = 0;         ///< slowest rank's median minus the fastest one's
  double sample_spread_s = 0;  ///< interquartile range of a rank's repetitions, of the rank with the largest
  double flops = 0;
  double bytes = 0;
  bool low_precision = false;  ///< bf16 or f16 arithmetic (the peak it is compared with)
  SampleStatus status = SampleStatus::measured;
  std::vector<NodeTime> on_nodes = {};  ///< by Profile::nodes, zeros at the end left out
  bool operator==(const OperatorSample&) const = default;
};

/// A collective over groups of that shape, all groups of the mesh at once; of sends, one pair of devices at a
/// time on the same nodes. `bytes` is the whole tensor
/// handled by the group: the result of an all-gather, the operand of a reduce-scatter, the local tensor of an
/// all-reduce or all-to-all, what each device passes on in a shift (from each to the next, from the last to
/// the first).
struct CollectiveSample {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupShape group;
  std::int64_t bytes = 0;
  double median_s = 0;
  double spread_s = 0, sample_spread_s = 0;  ///< as of operators
  std::vector<NodeTime> on_nodes = {};       ///< as of operators
  auto key() const { return std::tuple(kind, group, bytes); }
  bool operator==(const CollectiveSample&) const = default;
};

/// What the devices of one node did together in large matrix products and in streaming operators.
struct NodeSample {
  std::string name;
  double f32_flops_per_s = 0, bf16_flops_per_s = 0, memory_bytes_per_s = 0;
  bool operator==(const NodeSample&) const = default;
};

/// One operator that alpa-profile times again and again while it measures: where it takes longer at one time
/// than at another, the machines had something else to do.
struct ReferenceSample {
  std::string signature;
  int run = 0;                        ///< of alpa-profile, among those that measured into the file, from 0
  double at_s = 0;                    ///< after the run began to measure
  double median_s = 0, spread_s = 0;  ///< over ranks; largest interquartile range of a rank's repetitions
  bool operator==(const ReferenceSample&) const = default;
};

/// What alpa-plan calibrate did to measurements of one kind (cluster/cost_kind.h): they were multiplied by
/// `factor`, and `added_s` was added to each call of an operator.
struct Correction {
  std::string run;  ///< the folder of the run that it was learned from
  std::string kind;
  double factor = 1, added_s = 0;
  bool operator==(const Correction&) const = default;
};

/// What alpa-profile measured on a cluster. Jobs on different nodes of it may have added to it, so `nodes`
/// can be more than `cluster` has. Planning takes medians over all ranks; nodes are for people to look at.
struct Profile {
  Cluster cluster;
  std::vector<NodeSample> nodes;
  std::map<std::string, OperatorSample> operators;  ///< by signature_of(op, local call)
  std::vector<CollectiveSample> collectives;        ///< sorted by key()
  std::vector<ReferenceSample> reference = {};      ///< in the order of time; none in older files
  std::vector<Correction> corrections = {};         ///< in their order; none: all is as it was measured
};

/// Puts nodes into the profile: one of the same name is replaced, others are added.
void put_nodes(Profile&, const std::vector<NodeSample>&);

/// Where these nodes are in `Profile::nodes`; -1: nowhere.
std::vector<int> places_of(const std::vector<std::string>& names, const Profile&);

/// A digest of all that planning depends on.
std::string profile_fingerprint(const Profile&);

}  // namespace alpa
