#include "libalpa/cluster/cost_model.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "libalpa/base/error.h"
#include "libalpa/base/infinity.h"
#include "libalpa/base/median.h"

namespace alpa {
namespace {

std::string operator_name(const std::string& signature) { return signature.substr(0, signature.find(' ')); }

DType low_precision_type(const std::string& signature) {
  return signature.find(" bf16[") == std::string::npos ? DType::f16 : DType::bf16;
}

DType type_of(const std::string& signature, const OperatorSample& sample) {
  return sample.low_precision ? low_precision_type(signature) : DType::f32;
}

double ratio(double after, double before) { return before > 0 ? after / before : 1; }

/// The device of the cluster, or those of its parts, that do not compute in the type.
std::string devices_without(const Cluster& cluster, DType type) {
  std::vector<std::string> devices;
  for (const Cluster& part : cluster.parts)
    if (part.flops_per_s(type) == 0) devices.push_back(fmt::format("{}, part '{}'", part.device, part.name));
  return devices.empty() ? cluster.device : fmt::format("{}", fmt::join(devices, "; "));
}

[[noreturn]] void refuse_type(const Cluster& cluster, DType type) {
  std::string others = "\"f32\"";
  for (const DType other : {DType::bf16, DType::f16})
    if (cluster.flops_per_s(other) > 0) others += fmt::format(" or \"{}\"", dtype_name(other));
  throw Error(ErrorKind::input,
              fmt::format("the model computes in {0}, the devices of cluster '{1}' ({2}) do not: it has no "
                          "{0}_tflops",
                          dtype_name(type), cluster.name, devices_without(cluster, type)),
              fmt::format("precision = {} in [training] of the model, or {}_tflops in the cluster's file if "
                          "its devices have it",
                          others, dtype_name(type)));
}

}  // namespace

CostModel::CostModel(Cluster cluster) : cluster_(std::move(cluster)) {
  const int parts = static_cast<int>(cluster_.parts.size());
  for (int first = 0; first < parts; ++first)
    for (int end = first + 1; end <= parts; ++end)
      if (end - first < parts) {
        auto& costs = of_parts_[{first, end}];
        costs = std::make_unique<CostModel>(worst_of_parts(cluster_, first, end));
        costs->missing_ = missing_;
      }
}

const CostModel& CostModel::on(const DeviceMesh& mesh) const {
  if (of_parts_.empty()) return *this;
  const auto found = of_parts_.find(parts_under(cluster_, mesh));
  return found == of_parts_.end() ? *this : *found->second;
}

template <class Make>
void CostModel::make_parts(CostModel& other, const Make& make) const {
  for (auto& [parts, costs] : other.of_parts_) {
    const auto own = of_parts_.find(parts);
    *costs = make(own == of_parts_.end() ? *this : *own->second, costs->cluster_);
    costs->missing_ = other.missing_;
  }
}

double CostModel::interpolated(const std::vector<SizePoint>& points, double bytes) {
  const SizePoint& first = points.front();
  if (points.size() == 1)
    return first.bytes > 0 ? first.seconds * std::max(1.0, bytes / first.bytes) : first.seconds;
  if (bytes <= first.bytes) return first.seconds;
  std::size_t upper = 1;
  while (upper + 1 < points.size() && points[upper].bytes < bytes) ++upper;
  const auto& [x0, y0, s0] = points[upper - 1];
  const auto& [x1, y1, s1] = points[upper];
  return std::max(y0 + (y1 - y0) * (bytes - x0) / (x1 - x0), 0.0);
}

CostModel CostModel::extrapolated(const Cluster& cluster) const {
  CostModel other(cluster);
  other.is_measured_ = is_measured_;
  other.slowdown_ = slowdown_;
  for (const auto& [signature, sample] : operators_) {
    const Work work{sample.flops, sample.bytes, type_of(signature, sample)};
    OperatorSample& scaled = other.operators_[signature] = sample;
    if (cluster_.flops_per_s(work.type) == 0) continue;  // it was measured though no product was
    const double scale = ratio(other.estimate(work), estimate(work));
    scaled.median_s *= scale;
    scaled.sample_spread_s *= scale;
  }
  for (const auto& [of, points] : collectives_) {
    const auto& [kind, group] = of;
    const int active = kind == CollectiveKind::send ? 1 : cluster_.devices_per_node;
    for (SizePoint point : points) {
      const double scale = ratio(other.estimated_collective_seconds(kind, group, point.bytes, active),
                                 estimated_collective_seconds(kind, group, point.bytes, active));
      point.seconds *= scale;
      point.spread_s *= scale;
      other.collectives_[of].push_back(point);
    }
  }
  make_parts(other, [](const CostModel& of, const Cluster& part) { return of.extrapolated(part); });
  return other;
}

CostModel::CostModel(const Profile& profile) : cluster_(profile.cluster), is_measured_(true) {
  calibrate(profile);
}

void CostModel::calibrate(const Profile& profile) {
  std::map<std::string, std::vector<double>> ratios;
  for (const auto& [signature, sample] : profile.operators) {
    if (sample.status != SampleStatus::measured) continue;
    operators_[signature] = sample;
    const DType type = type_of(signature, sample);
    if (cluster_.flops_per_s(type) == 0) continue;  // it was measured though no product was
    const double roofline = estimate({sample.flops, sample.bytes, type});
    if (roofline <= 0) continue;
    ratios[operator_name(signature)].push_back(sample.median_s / roofline);
    ratios[""].push_back(sample.median_s / roofline);
  }
  for (auto& [name, values] : ratios) slowdown_[name] = median(std::move(values));
  for (const CollectiveSample& sample : profile.collectives)
    collectives_[{sample.kind, sample.group}].push_back(
        {static_cast<double>(sample.bytes), sample.median_s, sample.sample_spread_s});
  for (auto& [key, points] : collectives_) std::ranges::sort(points, {}, &SizePoint::bytes);
}

CostModel CostModel::longer_by_spread() const {
  constexpr double deviations_of_range = 1.349;  // from quartile to quartile of a normal distribution
  CostModel longer(cluster_);
  longer.is_measured_ = is_measured_;
  longer.operators_ = operators_;
  longer.slowdown_ = slowdown_;
  longer.collectives_ = collectives_;
  for (auto& [signature, sample] : longer.operators_)
    sample.median_s += sample.sample_spread_s / deviations_of_range;
  for (auto& [key, points] : longer.collectives_)
    for (SizePoint& point : points) point.seconds += point.spread_s / deviations_of_range;
  make_parts(longer, [](const CostModel& of, const Cluster&) { return of.longer_by_spread(); });
  return longer;
}

std::set<std::string> CostModel::missing() const {
  const std::lock_guard lock(missing_->mutex);
  return missing_->signatures;
}

double CostModel::estimate(const Work& work) const {
  if (cluster_.flops_per_s(work.type) == 0) refuse_type(cluster_, work.type);
  const double compute = work.flops / cluster_.flops_per_s(work.type);
  const double memory = work.bytes / cluster_.memory_bytes_per_s;
  return cluster_.launch_s + std::max(compute, memory);
}

double CostModel::operator_seconds(const std::string& signature, const Work& work) const {
  const auto measured = operators_.find(signature);
  if (measured != operators_.end()) return measured->second.median_s;
  {
    const std::lock_guard lock(missing_->mutex);
    missing_->signatures.insert(signature);
  }
  auto factor = slowdown_.find(operator_name(signature));
  if (factor == slowdown_.end()) factor = slowdown_.find("");
  return estimate(work) * (factor == slowdown_.end() ? 1.0 : factor->second);
}

double CostModel::collective_seconds(CollectiveKind kind, GroupShape group, double bytes, int active) const {
  if (group.size() <= 1) return 0;
  const auto measured = collectives_.find({kind, group});
  const double seconds = measured != collectives_.end()
                             ? interpolated(measured->second, bytes)
                             : estimated_collective_seconds(kind, group, bytes, active);
  if (kind != CollectiveKind::all_reduce || !cluster_.serves(group, bytes)) return seconds;
  return seconds * ratio(estimated_seconds(served_traffic(group, cluster_.servers, bytes), active),
                         estimated_collective_seconds(kind, group, bytes, active));
}

double CostModel::all_reduce_share_seconds(GroupShape group, double bytes, int active, double most) const {
  // From one of these sizes to the next a byte takes ever less or ever more.
  const auto gathered = static_cast<double>(kGatheredAllReduceBytes / group.size());
  std::vector<double> sizes{most, gathered};
  if (cluster_.serves(group, most)) sizes.push_back(gathered + 1);
  if (const auto measured = collectives_.find({CollectiveKind::all_reduce, group});
      measured != collectives_.end())
    for (const SizePoint& point : measured->second) sizes.push_back(point.bytes);
  double of_byte_s = infinity;
  for (const double size : sizes)
    if (size > 0 && size <= most)
      of_byte_s =
          std::min(of_byte_s, collective_seconds(CollectiveKind::all_reduce, group, size, active) / size);
  return of_byte_s * bytes;
}

double CostModel::estimated_collective_seconds(CollectiveKind kind, GroupShape group, double bytes,
                                               int active) const {
  return estimated_seconds(collective_traffic(kind, group, bytes), active);
}

double CostModel::estimated_seconds(const CollectiveTraffic& sent, int active) const {
  const Link &within = cluster_.within_node, &between = cluster_.between_nodes;
  return sent.steps_within_node * within.latency_s + sent.steps_between_nodes * between.latency_s +
         std::max(sent.within_node / within.bytes_per_s, nic_seconds(sent.between_nodes * sharing(active)));
}

double CostModel::send_seconds(bool same_node, double bytes) const {
  const GroupShape pair = same_node ? GroupShape{1, 2} : GroupShape{2, 1};
  const auto measured = collectives_.find({CollectiveKind::send, pair});
  if (measured != collectives_.end()) return interpolated(measured->second, bytes);
  const Link& link = same_node ? cluster_.within_node : cluster_.between_nodes;
  return link.latency_s + bytes / link.bytes_per_s;
}

double CostModel::arrival_seconds(double bytes, int different, int active) const {
  const int per_nic = cluster_.devices_per_nic(), nics = (active + per_nic - 1) / per_nic;
  // Tiles, or a part of one; what no device behind another interface gets too comes over the busiest.
  const double of_nic =
      std::max<double>(static_cast<double>(different) / nics, different - active + sharing(active));
  return of_nic < 1 ? send_seconds(false, bytes * of_nic)
                    : send_seconds(false, bytes) + nic_seconds(bytes) * (of_nic - 1);
}

double CostModel::copy_seconds(double bytes) const {
  return cluster_.launch_s + 2 * bytes / cluster_.memory_bytes_per_s;
}

}  // namespace alpa
