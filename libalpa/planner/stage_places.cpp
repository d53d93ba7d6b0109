#include "libalpa/planner/stage_places.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

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
  if (is_first) return {sides(size, devices_)};
  if (is_last) return {sides(size, size)};
  if (!has_nodes()) return {{}};
  if (whole_nodes_[size]) return {{true, true}};
  return {{true, false}, {false, false}, {false, true}};
}

}  // namespace alpa
