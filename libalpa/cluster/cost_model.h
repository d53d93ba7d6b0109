#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "libalpa/cluster/cluster_parts.h"
#include "libalpa/cluster/profile.h"

namespace alpa {

/// What an operator does, for estimates.
struct Work {
  double flops = 0;
  double bytes = 0;
  DType type = DType::f32;
};

/// Answers how long things take, in seconds. Measurements come first; where there is none, the answer is an
/// estimate (roofline, alpha-beta) calibrated by the measurements there are, and the gap is remembered.
/// Threads may share one.
class CostModel {
 public:
  explicit CostModel(Cluster);
  explicit CostModel(const Profile&);

  /// The same for another cluster: what was measured takes longer by as much as its estimate does.
  CostModel extrapolated(const Cluster&) const;

  const Cluster& cluster() const { return cluster_; }

  /// What holds on a mesh: where nodes differ, of the slowest of the parts that its devices are of. What is
  /// asked of the whole is of the slowest of all parts. Lasts as long as the whole.
  const CostModel& on(const DeviceMesh&) const;
  const CostModel& on(DeviceIndex device) const { return on(DeviceMesh{device, {}}); }

  /// Costs come from a profile, and so for shapes that were measured.
  bool is_measured() const { return is_measured_; }

  /// `signature` is signature_of(op, local call); its first word is the operator's name. Throws Error(input)
  /// where it was not measured and the devices do not compute in its type.
  double operator_seconds(const std::string& signature, const Work&) const;
  /// Whether that answer is a measurement.
  bool has_measured(const std::string& signature) const { return operators_.contains(signature); }

  /// Time of one collective, every group of the mesh at once. bytes as in CollectiveSample. 0 for groups of
  /// one. `active`: devices of a node that take part, in this group or another of the mesh; they share its
  /// network interfaces. Where it was not measured: the bytes of the algorithm that runs
  /// (collective_traffic), within and between nodes at the same time. Where the cluster's servers help, it
  /// takes less by as much as its estimate does.
  double collective_seconds(CollectiveKind, GroupShape, double bytes, int active) const;

  /// Of bytes that are added up together with others, in all-reduces of `most` bytes at most: whichever share
  /// one, it takes no less than the sum of this over them. By the size at which a byte takes the least.
  double all_reduce_share_seconds(GroupShape, double bytes, int active, double most) const;

  double send_seconds(bool same_node, double bytes) const;

  /// Of tiles of so many bytes that each of `active` devices of a node gets from other nodes, `different`
  /// ones among them: each comes over the node's interfaces once.
  double arrival_seconds(double bytes, int different, int active) const;

  /// For how long messages between nodes that take so many bytes together keep a network interface busy.
  double nic_seconds(double bytes) const { return bytes / cluster_.between_nodes.bytes_per_s; }

  /// Time to move `bytes` within a device's memory (pack, slice, copy).
  double copy_seconds(double bytes) const;

  /// Between a device's memory and its host's, one way.
  double move_seconds(double bytes) const { return cluster_.launch_s + bytes / cluster_.host_bytes_per_s; }

  /// The same, with all that was measured longer by the standard deviation of its repetitions, which is their
  /// interquartile range over 1.349 (as of a normal distribution). What is not measured stays as it is.
  CostModel longer_by_spread() const;

  /// Signatures that were asked for and not measured, sorted.
  std::set<std::string> missing() const;

 private:
  struct SizePoint;
  /// Piecewise linear in the size; beyond the ends, along the last segment, and never below zero.
  static double interpolated(const std::vector<SizePoint>&, double bytes);
  double estimate(const Work&) const;
  double estimated_collective_seconds(CollectiveKind, GroupShape, double bytes, int active) const;
  double estimated_seconds(const CollectiveTraffic&, int active) const;
  /// Devices that share a network interface where so many of a node are at work.
  int sharing(int active) const { return std::min(active, cluster_.devices_per_nic()); }
  void calibrate(const Profile&);

  /// Calls `make(costs of this, cluster of the other)` for each of the other's models of parts.
  template <class Make>
  void make_parts(CostModel& other, const Make& make) const;

  Cluster cluster_;
  bool is_measured_ = false;
  std::map<std::string, OperatorSample> operators_;
  std::map<std::string, double> slowdown_;  ///< measured / roofline by operator name; "" for all
  struct SizePoint {
    double bytes = 0, seconds = 0, spread_s = 0;
  };
  std::map<std::pair<CollectiveKind, GroupShape>, std::vector<SizePoint>> collectives_;  ///< by size
  struct Missing {
    std::mutex mutex;
    std::set<std::string> signatures;
  };
  std::shared_ptr<Missing> missing_ = std::make_shared<Missing>();  ///< of the parts too
  /// From the first to one past the last of those parts; not of all together, which is this.
  std::map<std::pair<int, int>, std::unique_ptr<CostModel>> of_parts_;
};

}  // namespace alpa
