#include "libalpa/program/order/straggler.h"

#include <fmt/core.h>

#include "libalpa/base/median.h"
#include "libalpa/base/units.h"

namespace alpa {
namespace {

constexpr double kLeastRatio = 1.05;  // below it is noise

}  // namespace

double computed_s(const std::vector<TimelineRow>& rows) {
  double seconds = 0;
  for (const TimelineRow& row : rows)
    if (row.kind == TimeKind::compute) seconds += row.duration_s;
  return seconds;
}

std::optional<Straggler> slowest_rank(const std::vector<RankWork>& ranks, const Program& program) {
  std::optional<Straggler> slowest;
  for (const RankWork& rank : ranks) {
    std::vector<double> others;
    const MeshIndex mesh = place_of(program, rank.rank).mesh;
    for (const RankWork& other : ranks)
      if (other.rank != rank.rank && place_of(program, other.rank).mesh == mesh)
        others.push_back(other.computed_s);
    if (mesh < 0 || others.empty()) continue;
    const Straggler found{rank, median(std::move(others))};
    if (found.usual_s > 0 && (!slowest || found.ratio() > slowest->ratio())) slowest = found;
  }
  return slowest && slowest->ratio() >= kLeastRatio ? slowest : std::nullopt;
}

std::string straggler_text(const Straggler& s) {
  return fmt::format("rank {}{} computes {} a step, {:.2f} times as long as the other ranks of its mesh",
                     s.work.rank, s.work.host.empty() ? "" : " on " + s.work.host,
                     seconds_text(s.work.computed_s), s.ratio());
}

}  // namespace alpa
