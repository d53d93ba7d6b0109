#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libalpa/cluster/profile.h"

namespace alpa {

/// What an operator does, for estimates.
struct Work {
  double flops = 0;
  double bytes = 0;
  DType type = DType::f32;
};

/// Answers how long things take, in seconds. Measurements come first; where there is none, the answer is an
/// estimate (roofline, alpha-beta) calibrated by the measurements there are, and the gap is remembered. Not
/// thread-safe: each planning thread takes a copy.
class CostModel {
 public:
  explicit CostModel(Cluster);
  explicit CostModel(const Profile&);

  const Cluster& cluster() const { return cluster_; }

  /// `signature` is signature_of(op, local call); its first word is the operator's name. Throws Error(input)
  /// where it was not measured and the devices do not compute in its type.
  double operator_seconds(const std::string& signature, const Work&) const;

  /// Time of one collective, every group of the mesh at once. bytes as in CollectiveSample. 0 for groups of
  /// one.
  double collective_seconds(CollectiveKind, GroupShape, double bytes) const;

  double send_seconds(bool same_node, double bytes) const;

  /// Time to move `bytes` within a device's memory (pack, slice, copy).
  double copy_seconds(double bytes) const;

  /// Signatures that were asked for and not measured, sorted.
  const std::set<std::string>& missing() const { return missing_; }

 private:
  double estimate(const Work&) const;
  void calibrate(const Profile&);

  Cluster cluster_;
  std::map<std::string, OperatorSample> operators_;
  std::map<std::string, double> slowdown_;  ///< measured / roofline by operator name; "" for all
  std::map<std::pair<CollectiveKind, GroupShape>, std::vector<std::pair<double, double>>>
      collectives_;  ///< (bytes, s)
  mutable std::set<std::string> missing_;
};

}  // namespace alpa
