#include "libalpa/profiler/node_times.h"

#include <fmt/core.h>

#include <algorithm>

#include "libalpa/base/units.h"

namespace alpa {
namespace {

constexpr double kOddRatio = 1.1;

/// Of an even number the lower one: of two nodes the slower one is the odd one.
double lower_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

class Comparison {
 public:
  explicit Comparison(const std::vector<NodeSample>& nodes) : nodes_(nodes.size()), ratios_(nodes.size()) {
    for (std::size_t n = 0; n < nodes.size(); ++n) nodes_[n].node = nodes[n].name;
  }

  void add(const std::string& thing, const std::vector<NodeTime>& times) {
    std::vector<double> timed;
    for (const NodeTime& time : times)
      if (time.median_s > 0) timed.push_back(time.median_s);
    if (timed.size() < 2) return;
    const double usual = lower_median(timed);
    for (std::size_t n = 0; n < times.size(); ++n)
      if (times[n].median_s > 0) add(nodes_[n], ratios_[n], thing, times[n], usual);
  }

  std::vector<NodeComparison> result() {
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (!ratios_[n].empty()) nodes_[n].typical = lower_median(ratios_[n]);
    return std::move(nodes_);
  }

 private:
  static void add(NodeComparison& node, std::vector<double>& ratios, const std::string& thing,
                  const NodeTime& time, double usual) {
    const double ratio = time.median_s / usual;
    ratios.push_back(ratio);
    ++node.compared;
    if (ratio > kOddRatio && time.median_s - usual > time.spread_s) ++node.slow;
    if (ratio <= node.worst) return;
    node.worst = ratio;
    node.worst_thing = thing;
  }

  std::vector<NodeComparison> nodes_;
  std::vector<std::vector<double>> ratios_;
};

}  // namespace

bool NodeComparison::is_odd() const { return typical > kOddRatio; }

std::vector<NodeComparison> compare_nodes(const Profile& profile) {
  Comparison comparison(profile.nodes);
  for (const auto& [signature, sample] : profile.operators) comparison.add(signature, sample.on_nodes);
  for (const CollectiveSample& sample : profile.collectives)
    comparison.add(fmt::format("{} of {} over {} nodes x {}", collective_name(sample.kind),
                               bytes_text(sample.bytes), sample.group.nodes, sample.group.per_node),
                   sample.on_nodes);
  return comparison.result();
}

std::string comparison_table(const std::vector<NodeComparison>& nodes) {
  std::size_t widest = 4;
  for (const NodeComparison& node : nodes) widest = std::max(widest, node.node.size());
  std::string text = "operators and collectives, in times of the median node's:\n";
  text += fmt::format("{:<{}}  {:>8}  {:>8}  {:>7}  {:>7}\n", "node", widest, "compared", "slower", "typical",
                      "worst");
  for (const NodeComparison& node : nodes)
    text += fmt::format("{:<{}}  {:>8}  {:>8}  {:>5.2f} x  {:>5.2f} x{}{}{}\n", node.node, widest,
                        node.compared, node.slow, node.typical, node.worst, node.is_odd() ? "  ODD" : "",
                        node.worst_thing.empty() ? "" : "  ", node.worst_thing);
  return text;
}

}  // namespace alpa
