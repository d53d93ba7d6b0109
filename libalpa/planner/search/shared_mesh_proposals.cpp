#include "libalpa/planner/search/shared_mesh_proposals.h"

#include <algorithm>
#include <map>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/schedule_choice.h"

namespace alpa {
namespace {

/// What stages on meshes of one shape take, by estimates.
class SpanSeconds {
 public:
  SpanSeconds(const StageSpans& spans, const StageModes& modes, MeshShape mesh)
      : spans_(spans), modes_(modes), mesh_(std::move(mesh)) {}

  /// The fastest way; infinite: there is none.
  StageSeconds of(int first, int end) {
    const auto [found, is_new] = known_.try_emplace({first, end});
    if (!is_new) return found->second;
    const StageSpan span{first, end, device_count(mesh_)};
    if (!spans_.has(span)) return found->second;
    modes_.for_each_way(span, [&](const StageWay& way) {
      if (way.seconds.first < found->second.first && modes_.mode_of(way.id).mesh == mesh_)
        found->second = way.seconds;
    });
    if (found->second.first < infinity)
      found->second = found->second + modes_.arrivals(span, {first > 0, end < spans_.units()});
    return found->second;
  }

 private:
  const StageSpans& spans_;
  const StageModes& modes_;
  const MeshShape mesh_;
  std::map<std::pair<int, int>, StageSeconds> known_;
};

/// Cuts layers into so many stages.
class EvenCut {
 public:
  EvenCut(SpanSeconds& seconds, int units, int meshes, int stages_per_mesh, int micro_batches)
      : seconds_(seconds),
        units_(units),
        stages_(meshes * stages_per_mesh),
        stages_per_mesh_(stages_per_mesh),
        micro_batches_(micro_batches) {}

  /// [stage] its end. The slowest stage is as fast as can be; then ends move while that makes the busiest mesh
  /// faster. Empty: there is none.
  std::vector<int> ends() {
    std::vector<int> ends = least_slowest();
    if (ends.empty()) return ends;
    double best_s = total_s(ends);
    for (bool moves = true; moves;) {
      moves = false;
      for (int s = 0; s + 1 < stages_; ++s)
        for (const int step : {-1, 1}) {
          std::vector<int> other = ends;
          other[s] += step;
          if (other[s] <= (s > 0 ? other[s - 1] : 0) || other[s] >= other[s + 1]) continue;
          if (const double other_s = total_s(other); other_s < best_s * (1 - 1e-9)) {
            best_s = other_s;
            ends = std::move(other);
            moves = true;
          }
        }
    }
    return ends;
  }

  double total_s(const std::vector<int>& ends) {
    std::vector<StageSeconds> stages;
    int first = 0;
    for (const int end : ends) {
      stages.push_back(seconds_.of(first, end));
      first = end;
    }
    return shared_pipeline_seconds(stages, stages_per_mesh_, micro_batches_);
  }

 private:
  std::vector<int> least_slowest() {
    struct Way {
      double slowest_s = infinity;
      int begin = 0;  ///< of the last stage
    };
    // Stages of more than twice their share are in no cut that is even.
    const int most = 2 * (units_ + stages_ - 1) / stages_;
    std::vector<std::vector<Way>> ways(stages_ + 1, std::vector<Way>(units_ + 1));  // [stages done][unit]
    ways[0][0].slowest_s = 0;
    for (int s = 0; s < stages_; ++s)
      for (int end = s + 1; end <= units_ - (stages_ - 1 - s); ++end)
        for (int begin = std::max(s, end - most); begin < end; ++begin) {
          if (ways[s][begin].slowest_s == infinity) continue;
          const double slowest_s = std::max(ways[s][begin].slowest_s, seconds_.of(begin, end).first);
          if (slowest_s < ways[s + 1][end].slowest_s) ways[s + 1][end] = {slowest_s, begin};
        }
    if (ways[stages_][units_].slowest_s == infinity) return {};
    std::vector<int> ends(stages_);
    for (int s = stages_, end = units_; s > 0; --s) {
      ends[s - 1] = end;
      end = ways[s][end].begin;
    }
    return ends;
  }

  SpanSeconds& seconds_;
  const int units_, stages_, stages_per_mesh_, micro_batches_;
};

Proposal proposal_of(const std::vector<int>& ends, const StageSpans& spans, const MeshShape& mesh,
                     const SearchSpace& space, int stages_per_mesh) {
  Proposal proposal;
  proposal.stages_per_mesh = stages_per_mesh;
  int first = 0;
  for (const int end : ends) {
    const StageSpan span{first, end, device_count(mesh)};
    proposal.requests.push_back({.first_layer = spans.first_layer(span),
                                 .end_layer = spans.end_layer(span),
                                 .mesh = mesh,
                                 .micro_batches = space.micro_batches});
    first = end;
  }
  return proposal;
}

}  // namespace

std::vector<Proposal> shared_mesh_proposals(const SearchSpace& space, const StageSpans& spans,
                                            const StageModes& modes, const std::vector<int>& sizes,
                                            double most_s) {
  std::vector<Proposal> proposals;
  for (const StageTemplate& of : modes.estimates().templates()) {
    const int devices = device_count(of.mesh), meshes = space.devices / devices;
    const bool is_known = std::ranges::any_of(
        proposals, [&](const Proposal& other) { return other.requests.front().mesh == of.mesh; });
    const auto is_apart = [&](const std::pair<int, int>& pair) {
      return pair.first / devices != pair.second / devices;
    };
    if (is_known || meshes < 2 || meshes * devices != space.devices ||
        std::ranges::find(sizes, devices) == sizes.end() || !std::ranges::all_of(space.apart, is_apart))
      continue;
    SpanSeconds seconds(spans, modes, of.mesh);
    for (int per_mesh = 2; per_mesh * meshes <= std::min(spans.units(), space.most_stages); per_mesh *= 2) {
      if (!may_have(space.schedule, per_mesh) || per_mesh * meshes < space.least_stages) continue;
      EvenCut cut(seconds, spans.units(), meshes, per_mesh, space.micro_batches);
      const std::vector<int> ends = cut.ends();
      if (ends.empty()) break;
      Proposal proposal = proposal_of(ends, spans, of.mesh, space, per_mesh);
      proposal.estimate_s = cut.total_s(ends);
      if (proposal.estimate_s < most_s) proposals.push_back(std::move(proposal));
    }
  }
  std::ranges::stable_sort(proposals, {}, &Proposal::estimate_s);
  return proposals;
}

}  // namespace alpa
