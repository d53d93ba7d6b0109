#include "libalpa/planner/search/shared_mesh_proposals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "libalpa/base/infinity.h"
#include "libalpa/planner/search/least_slowest.h"
#include "libalpa/schedule/schedule.h"

namespace alpa {
namespace {

/// How the layers of a pipeline are run, all alike: by templates, a part of them recomputed.
struct LayerMix {
  int recomputing = -1, keeping = -1;  ///< as of TemplateMix
  double recomputed = 0;               ///< 0 to 1
};

/// What stages on meshes of one shape take, by estimates: a part of their layers recomputed, a part not.
class SpanSeconds {
 public:
  SpanSeconds(const StageSpans& spans, const StageModes& modes, const MeshShape& mesh, LayerMix mix)
      : spans_(spans), modes_(modes), mesh_(mesh), mix_(mix) {}

  int units() const { return spans_.units(); }
  int devices() const { return device_count(mesh_); }

  /// Infinite: they cannot be run so.
  StageSeconds of(int first, int end, const StageSides& sides) {
    const Ways& ways = ways_of(first, end);
    const StageSeconds keeping = ways.keeping.seconds, recomputing = ways.recomputing.seconds;
    if (mixed(keeping.first, recomputing.first) == infinity) return {};
    return StageSeconds{mixed(keeping.first, recomputing.first), mixed(keeping.others, recomputing.others),
                        mixed(keeping.update, recomputing.update)} +
           modes_.arrivals({first, end, devices()}, sides);
  }

  /// What they hold all the time with so many micro-batches in flight.
  std::int64_t lasting_bytes(int first, int end, int in_flight) {
    const Ways& ways = ways_of(first, end);
    const StageSpan span{first, end, devices()};
    const auto bytes = [&](const StageWay& way) {
      return modes_.estimates().lasting_bytes(way.id, spans_.first_layer(span), spans_.end_layer(span),
                                              in_flight);
    };
    return std::llround(mixed(mix_.recomputed < 1 ? bytes(ways.keeping) : 0,
                              mix_.recomputed > 0 ? bytes(ways.recomputing) : 0));
  }

 private:
  /// All layers run so.
  struct Ways {
    StageWay keeping, recomputing;
  };

  /// What is in no part of the layers does not count.
  double mixed(double keeping, double recomputing) const {
    return (mix_.recomputed < 1 ? (1 - mix_.recomputed) * keeping : 0) +
           (mix_.recomputed > 0 ? mix_.recomputed * recomputing : 0);
  }

  const Ways& ways_of(int first, int end) {
    const StageSpan span{first, end, devices()};
    const auto [found, is_new] = known_.try_emplace({first, end});
    if (!is_new || !spans_.has(span)) return found->second;
    modes_.estimates().for_each_way(mesh_, spans_.first_layer(span), spans_.end_layer(span),
                                    [&](const StageWay& way) {
                                      const TemplateMix of = modes_.estimates().mix_of(way.id);
                                      if (of.recomputing < 0 && of.keeping == mix_.keeping)
                                        found->second.keeping = way;
                                      if (of.keeping < 0 && of.recomputing == mix_.recomputing)
                                        found->second.recomputing = way;
                                    });
    return found->second;
  }

  const StageSpans& spans_;
  const StageModes& modes_;
  const MeshShape mesh_;
  const LayerMix mix_;
  std::map<std::pair<int, int>, Ways> known_;
};

/// The fastest way to run a mesh's share of the layers, of those in the middle, with so many micro-batches of
/// all of it in flight; nothing: memory does not allow that.
std::optional<LayerMix> fastest_mix(const StageSpans& spans, const StageModes& modes, const MeshShape& mesh,
                                    int meshes, double held) {
  const int share = (spans.units() + meshes - 1) / meshes, first = (spans.units() - share) / 2;
  const StageSpan span{first, first + share, device_count(mesh)};
  // The share is of whole units, and so may be more than it is on average.
  const auto in_flight = static_cast<int>(std::ceil(held * spans.units() / (share * meshes)));
  const int first_layer = spans.first_layer(span), end_layer = spans.end_layer(span);
  std::optional<LayerMix> mix;
  double least_s = infinity;
  modes.estimates().for_each_way(mesh, first_layer, end_layer, [&](const StageWay& way) {
    if (way.most_in_flight < in_flight || way.seconds.first >= least_s) return;
    least_s = way.seconds.first;
    const TemplateMix of = modes.estimates().mix_of(way.id);
    mix = {of.recomputing, of.keeping, static_cast<double>(of.recomputed_layers) / (end_layer - first_layer)};
  });
  return mix;
}

/// Has stages recompute that part of the layers of their mesh, those first that hold the most micro-batches.
void recompute(std::vector<StageRequest>& stages, double part, RecomputeForm form,
               const std::vector<int>& lie, const std::vector<int>& held) {
  std::map<int, double> left;  // of a mesh
  std::vector<std::size_t> most_held(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    left[lie[s]] += part * (stages[s].end_layer - stages[s].first_layer);
    most_held[s] = s;
  }
  std::ranges::stable_sort(most_held, std::ranges::greater(), [&](std::size_t s) { return held[s]; });
  for (const std::size_t s : most_held) {
    StageRequest& stage = stages[s];
    double& of_mesh = left[lie[s]];
    stage.recomputed_layers =
        std::clamp(static_cast<int>(std::ceil(of_mesh - 1e-9)), 0, stage.end_layer - stage.first_layer);
    of_mesh -= stage.recomputed_layers;
    if (stage.recomputed_layers > 0) stage.recompute_form = form;
  }
}

/// Cuts layers into so many stages, which lie on the meshes in turn.
class EvenCut {
 public:
  EvenCut(SpanSeconds& seconds, const PipelineSchedule& schedule, int meshes, int stages_per_mesh,
          int micro_batches, int devices_per_node)
      : seconds_(seconds),
        schedule_(schedule),
        lie_(meshes_of_stages(schedule, meshes * stages_per_mesh, stages_per_mesh)),
        stages_(meshes * stages_per_mesh),
        stages_per_mesh_(stages_per_mesh),
        micro_batches_(micro_batches),
        devices_per_node_(devices_per_node) {}

  /// [stage] its end. The slowest stage is as fast as can be; then ends move while that makes the busiest
  /// mesh faster. Empty: there is none.
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
    for (int s = 0, first = 0; s < stages_; first = ends[s++])
      stages.push_back(seconds_of(s, first, ends[s]));
    return shared_pipeline_seconds(stages, schedule_, stages_per_mesh_, micro_batches_);
  }

 private:
  StageSeconds seconds_of(int stage, int first, int end) {
    return seconds_.of(
        first, end, {stage > 0 && apart(stage - 1, stage), stage + 1 < stages_ && apart(stage, stage + 1)});
  }

  /// Whether two stages are not on one node, nor on one mesh.
  bool apart(int one, int other) const {
    const int devices = seconds_.devices();
    return lie_[one] != lie_[other] &&
           (devices > devices_per_node_ ||
            lie_[one] * devices / devices_per_node_ != lie_[other] * devices / devices_per_node_);
  }

  std::vector<int> least_slowest() {
    // Stages of more than twice their share are in no cut that is even.
    const int units = seconds_.units(), most = 2 * (units + stages_ - 1) / stages_;
    return least_slowest_ends(stages_, units, [&](int stage, int begin, int end) {
      return end - begin > most ? infinity : seconds_of(stage, begin, end).first;
    });
  }

  SpanSeconds& seconds_;
  const PipelineSchedule& schedule_;
  const std::vector<int> lie_;  ///< [stage] its mesh
  const int stages_, stages_per_mesh_, micro_batches_, devices_per_node_;
};

/// Bytes that the other stages of a mesh hold while one of them holds the most micro-batches that it ever
/// does: what is left of the most that all hold at once, in parts like those that each holds at most.
std::int64_t held_by_others(SpanSeconds& seconds, const std::vector<int>& ends, const std::vector<int>& lie,
                            const std::vector<int>& held, int held_at_once, std::size_t stage) {
  int of_others = 0;
  for (std::size_t s = 0; s < ends.size(); ++s)
    if (s != stage && lie[s] == lie[stage]) of_others += held[s];
  std::int64_t bytes = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    if (s == stage || lie[s] != lie[stage]) continue;
    const int left = held_at_once - held[stage];
    bytes += seconds.lasting_bytes(s == 0 ? 0 : ends[s - 1], ends[s],
                                   (left * held[s] + of_others - 1) / of_others);
  }
  return bytes;
}

}  // namespace

std::vector<Proposal> shared_mesh_proposals(const SearchSpace& space, const StageSpans& spans,
                                            const StageModes& modes, const Cluster& cluster, double most_s) {
  const std::vector<StageTemplate>& templates = modes.estimates().templates();
  std::set<MeshShape> shapes;
  for (const StageTemplate& of : templates) shapes.insert(of.mesh);
  std::vector<Proposal> proposals;
  const auto propose = [&](const PipelineSchedule& schedule, const MeshShape& mesh, int meshes,
                           int per_mesh) {
    const std::vector<int> lie = meshes_of_stages(schedule, meshes * per_mesh, per_mesh);
    const int enough = std::min(space.micro_batches, 4 * meshes);  // to be as full as ever
    const std::vector<int> held = held_by_stages(schedule, lie, enough);
    std::vector<int> held_on;  // by all stages of a mesh at once
    for (const std::vector<StageRun>& order : mesh_orders(schedule, lie, enough))
      held_on.push_back(most_in_flight(order));
    const std::optional<LayerMix> mix =
        fastest_mix(spans, modes, mesh, meshes, static_cast<double>(std::ranges::max(held_on)) / per_mesh);
    if (!mix) return;
    SpanSeconds seconds(spans, modes, mesh, *mix);
    EvenCut cut(seconds, schedule, meshes, per_mesh, space.micro_batches, cluster.devices_per_node);
    const std::vector<int> ends = cut.ends();
    if (ends.empty()) return;
    const double estimate_s = cut.total_s(ends);
    if (estimate_s >= most_s) return;
    Proposal& proposal = proposals.emplace_back();
    proposal.estimate_s = estimate_s;
    proposal.stages_per_mesh = per_mesh;
    proposal.schedule = schedule.name;
    for (int s = 0, first = 0; s < meshes * per_mesh; first = ends[s++]) {
      const StageSpan span{first, ends[s], device_count(mesh)};
      proposal.requests.push_back({.first_layer = spans.first_layer(span),
                                   .end_layer = spans.end_layer(span),
                                   .mesh = mesh,
                                   .micro_batches = space.micro_batches});
    }
    if (mix->recomputed > 0)
      recompute(proposal.requests, mix->recomputed, *templates[mix->recomputing].rematerialize, lie, held);
    for (std::size_t s = 0; s < ends.size(); ++s)
      proposal.requests[s].reserve_bytes = held_by_others(seconds, ends, lie, held, held_on[lie[s]], s);
  };
  for (const MeshShape& mesh : shapes) {
    const int devices = device_count(mesh), meshes = space.devices / devices;
    const auto is_apart = [&](const std::pair<int, int>& pair) {
      return pair.first / devices != pair.second / devices;
    };
    if (meshes < 2 || meshes * devices != space.devices || !std::ranges::all_of(space.apart, is_apart))
      continue;
    for (int per_mesh = 2; per_mesh * meshes <= std::min(spans.units(), space.most_stages); per_mesh *= 2)
      for (const std::string& schedule : schedule_names(per_mesh))
        if (per_mesh * meshes >= space.least_stages &&
            (space.schedule == kAnySchedule || space.schedule == schedule))
          propose(find_schedule(schedule), mesh, meshes, per_mesh);
  }
  std::ranges::stable_sort(proposals, {}, &Proposal::estimate_s);
  return proposals;
}

}  // namespace alpa
