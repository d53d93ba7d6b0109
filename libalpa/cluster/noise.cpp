#include "libalpa/cluster/noise.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace alpa {
namespace {

double typical_spread(const Profile& profile) {
  std::vector<double> spreads;
  for (const auto& [signature, sample] : profile.operators)
    if (sample.median_s > 0) spreads.push_back(sample.sample_spread_s / sample.median_s);
  if (spreads.empty()) return 0;
  const auto middle = spreads.begin() + std::ssize(spreads) / 2;
  std::nth_element(spreads.begin(), middle, spreads.end());
  return *middle;
}

double drift(const std::vector<ReferenceSample>& reference) {
  std::map<int, std::pair<double, double>> ends;  // by run: fastest, slowest
  for (const ReferenceSample& sample : reference) {
    auto& [fastest, slowest] = ends.try_emplace(sample.run, sample.median_s, sample.median_s).first->second;
    fastest = std::min(fastest, sample.median_s);
    slowest = std::max(slowest, sample.median_s);
  }
  double most = 0;
  for (const auto& [run, of_run] : ends)
    if (of_run.first > 0) most = std::max(most, of_run.second / of_run.first - 1);
  return most;
}

}  // namespace

Noise noise_of(const Profile& profile) { return {typical_spread(profile), drift(profile.reference)}; }

std::string noise_warning(const Noise& noise) {
  if (!noise.is_busy()) return "";
  std::string what;
  if (noise.typical_spread > Noise::most)
    what = fmt::format("repetitions of an operator typically differ by {:.0f} %", 100 * noise.typical_spread);
  if (noise.drift > Noise::most)
    what += fmt::format("{}one operator took up to {:.0f} % longer at one time than at another",
                        what.empty() ? "" : ", ", 100 * noise.drift);
  return fmt::format(
      "the machines were busy while they were measured: {} (at most {:.0f} % where nothing else runs), and "
      "predictions are no better. Try: measure into a new file while nothing else runs there (srun "
      "--exclusive), or with more --repetitions",
      what, 100 * Noise::most);
}

}  // namespace alpa
