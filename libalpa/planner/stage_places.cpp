#include "libalpa/planner/stage_places.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace alpa {
namespace {

/// Devices first to end - 1 that no stage has yet.
struct Gap {
  int first = 0, end = 0;
};

/// Gives stages the first devices of gaps, as they ask for them.
class FreeDevices {
 public:
  FreeDevices(int devices, int devices_per_node) : devices_(devices), devices_per_node_(devices_per_node) {}

  /// Nothing: there is no room.
  std::optional<int> take(int size) {
    const Gap* best = nullptr;
    for (const Gap& gap : gaps_)
      if (begin_in(gap, size) + size <= gap.end && (!best || gap.end - gap.first < best->end - best->first))
        best = &gap;
    if (!best) {
      const int nodes = (size + devices_per_node_ - 1) / devices_per_node_;
      if (next_node_ + size > devices_) return {};
      gaps_.push_back({next_node_, std::min(devices_, next_node_ + nodes * devices_per_node_)});
      next_node_ += nodes * devices_per_node_;
      best = &gaps_.back();
    }
    const Gap taken = *best;
    gaps_.erase(gaps_.begin() + (best - gaps_.data()));
    const int begin = begin_in(taken, size);
    for (const Gap& left : {Gap{taken.first, begin}, Gap{begin + size, taken.end}})
      if (left.first < left.end) gaps_.push_back(left);
    return begin;
  }

 private:
  int begin_in(const Gap& gap, int size) const {
    const int step = std::min(size, devices_per_node_);
    return (gap.first + step - 1) / step * step;
  }

  int devices_, devices_per_node_;
  int next_node_ = 0;      ///< the first device of which no stage has any
  std::vector<Gap> gaps_;  ///< on earlier nodes
};

/// Puts stages that are smaller than a node on as many nodes as they fill, one way of those after which the
/// fewest neighbours are apart.
class FewestApart {
 public:
  FewestApart(std::span<StageRequest* const> stages, int nodes, int devices_per_node, int most_apart)
      : stages_(stages),
        least_(nodes),
        devices_per_node_(devices_per_node),
        free_(static_cast<std::size_t>(nodes), devices_per_node),
        node_(stages.size()),
        fewest_(most_apart) {
    extend(0, 0);
  }

  /// [stage] Its node; empty: there is no way with fewer than that.
  const std::vector<int>& nodes() const { return best_; }

 private:
  static constexpr int kMostVisits = 20'000;

  /// No fewer are possible where no number of first stages fills nodes.
  bool is_done() const { return fewest_ <= least_ || visits_ >= kMostVisits; }

  void extend(std::size_t stage, int apart) {
    ++visits_;
    if (apart >= fewest_) return;
    if (stage == stages_.size()) {
      fewest_ = apart;
      best_ = node_;
      return;
    }
    const int before = stage > 0 ? node_[stage - 1] : -1;
    if (before >= 0) put(stage, before, apart);
    bool is_new = true;  // which of those that are empty makes no difference
    for (int node = 0; node < std::ssize(free_) && !is_done(); ++node) {
      if (node == before || (free_[node] == devices_per_node_ && !std::exchange(is_new, false))) continue;
      put(stage, node, apart + (before >= 0 ? 1 : 0));
    }
  }

  void put(std::size_t stage, int node, int apart) {
    const int size = device_count(stages_[stage]->mesh);
    if (free_[node] < size) return;
    free_[node] -= size;
    node_[stage] = node;
    extend(stage + 1, apart);
    free_[node] += size;
  }

  const std::span<StageRequest* const> stages_;
  const int least_, devices_per_node_;
  std::vector<int> free_;  ///< [node] devices
  std::vector<int> node_;  ///< [stage] of those that lie somewhere
  std::vector<int> best_;
  int fewest_, visits_ = 0;
};

/// Stages that fill nodes from `first` on and lie there already, otherwise if fewer neighbours are apart
/// then.
void lay_together(std::span<StageRequest* const> stages, int first, int nodes, int devices_per_node) {
  const auto node_of = [&](const StageRequest* stage) { return stage->first_device / devices_per_node; };
  int apart = 0;
  for (std::size_t s = 1; s < stages.size(); ++s) apart += node_of(stages[s - 1]) != node_of(stages[s]);
  const FewestApart fewest(stages, nodes, devices_per_node, apart);
  if (fewest.nodes().empty()) return;
  std::vector<std::size_t> largest_first(stages.size());
  std::iota(largest_first.begin(), largest_first.end(), 0);
  std::ranges::stable_sort(largest_first, std::greater(),
                           [&](std::size_t s) { return device_count(stages[s]->mesh); });
  std::vector<int> next(static_cast<std::size_t>(nodes));
  for (int node = 0; node < nodes; ++node) next[node] = first + node * devices_per_node;
  for (const std::size_t s : largest_first) {
    int& at = next[fewest.nodes()[s]];
    stages[s]->first_device = DeviceIndex(at);
    at += device_count(stages[s]->mesh);
  }
}

/// Stages in the order of the pipeline, which have their devices, between borders that are those of nodes
/// too. Sizes are powers of two, so that they leave no gaps.
void lay_straddlers_together(const std::vector<StageRequest*>& order, int devices_per_node) {
  std::size_t begin = 0;
  int first = 0, devices = 0;  // of the stages from `begin` on
  for (std::size_t s = 0; s < order.size(); ++s) {
    devices += device_count(order[s]->mesh);
    if (devices % devices_per_node != 0) continue;
    const std::span stages(order.data() + begin, s + 1 - begin);
    const bool all_are_small = std::ranges::all_of(stages, [&](const StageRequest* stage) {
      const int size = device_count(stage->mesh);
      return size < devices_per_node && std::has_single_bit(static_cast<unsigned>(size)) &&
             devices_per_node % size == 0 && stage->first_device >= first &&
             stage->first_device + size <= first + devices;
    });
    if (all_are_small && devices > devices_per_node)
      lay_together(stages, first, devices / devices_per_node, devices_per_node);
    begin = s + 1;
    first += std::exchange(devices, 0);
  }
}

/// False where a stage finds no room.
bool place(const std::vector<StageRequest*>& order, int devices, int devices_per_node) {
  FreeDevices free(devices, devices_per_node);
  for (StageRequest* request : order) {
    const std::optional<int> first = free.take(device_count(request->mesh));
    if (!first) return false;
    request->first_device = DeviceIndex(*first);
  }
  return true;
}

/// Where nodes differ: each stage on the first part that has room for it. False where one finds none.
bool place_within_parts(const std::vector<StageRequest*>& order, int devices, const Cluster& cluster) {
  struct Part {
    int first;
    FreeDevices free;
  };
  std::vector<Part> parts;
  int first = 0;
  for (const Cluster& part : cluster.parts) {
    const int end = std::min(devices, first + part.devices());
    parts.push_back({first, {std::max(0, end - first), cluster.devices_per_node}});
    first += part.devices();
  }
  for (StageRequest* request : order) {
    std::optional<int> taken;
    for (auto part = parts.begin(); part != parts.end() && !taken; ++part)
      if ((taken = part->free.take(device_count(request->mesh)))) *taken += part->first;
    if (!taken) return false;
    request->first_device = DeviceIndex(*taken);
  }
  return true;
}

void place_one_after_another(const std::vector<StageRequest*>& order) {
  int next = 0;
  for (StageRequest* request : order) {
    request->first_device = DeviceIndex(next);
    next += device_count(request->mesh);
  }
}

}  // namespace

void place_stages(std::vector<StageRequest>& requests, const Cluster& cluster,
                  const std::vector<int>& mesh_of_stage) {
  int devices = 0;
  std::vector<StageRequest*> order;  // of each mesh the first
  std::map<int, StageRequest*> of_mesh;
  const auto mesh_of = [&](std::size_t s) {
    return mesh_of_stage.empty() ? static_cast<int>(s) : mesh_of_stage[s];
  };
  for (std::size_t s = 0; s < requests.size(); ++s) {
    if (!of_mesh.emplace(mesh_of(s), &requests[s]).second) continue;
    devices += device_count(requests[s].mesh);
    order.push_back(&requests[s]);
  }
  const int per_node = cluster.devices_per_node;
  const auto size = [](const StageRequest* request) { return device_count(request->mesh); };
  std::vector<StageRequest*> largest_first = order;
  std::ranges::stable_sort(largest_first, std::greater(), size);
  const bool is_within_parts =
      !cluster.parts.empty() &&
      (place_within_parts(order, devices, cluster) || place_within_parts(largest_first, devices, cluster));
  if (!is_within_parts && !place(order, devices, per_node)) {
    // The last node is not whole, so one of several has to come before it.
    std::ranges::stable_partition(order,
                                  [&](const StageRequest* request) { return size(request) >= per_node; });
    if (!place(order, devices, per_node)) place_one_after_another(largest_first);
  } else if (!is_within_parts) {
    lay_straddlers_together(order, per_node);
  }
  for (std::size_t s = 0; s < requests.size(); ++s)
    requests[s].first_device = of_mesh.at(mesh_of(s))->first_device;
  const auto nodes = [&](const StageRequest& request) {
    const int first = request.first_device, last = first + device_count(request.mesh) - 1;
    return std::pair(first / per_node, last / per_node);
  };
  const auto apart = [&](std::size_t a, std::size_t b) {
    const auto one = nodes(requests[a]), other = nodes(requests[b]);
    return mesh_of(a) != mesh_of(b) && (one != other || one.first != one.second);
  };
  for (std::size_t s = 0; s < requests.size(); ++s)
    requests[s].sides = {s > 0 && apart(s - 1, s), s + 1 < requests.size() && apart(s, s + 1)};
}

std::vector<StageSides> StagePlaces::all_sides(int size, bool is_first, bool is_last) const {
  const auto both = [&](int left) {
    const StageSides known = sides(size, left), expected = likely().sides(size, left);
    return known == expected ? std::vector{known} : std::vector{known, expected};
  };
  if (is_first) return both(devices_);
  if (is_last) return both(size);
  if (!has_nodes()) return {{}};
  if (whole_nodes_[size]) return {{true, true}};
  if (size == 1) return {{true, false}, {false, false}, {false, true}};
  return {kEverySides.begin(), kEverySides.end()};
}

}  // namespace alpa
