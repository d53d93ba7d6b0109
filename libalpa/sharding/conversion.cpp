#include "libalpa/sharding/conversion.h"

#include <array>
#include <set>

#include "libalpa/base/infinity.h"

namespace alpa {
namespace {

bool outermost(const Shape& tile, int dimension) {
  std::int64_t outer = 1;
  for (int d = 0; d < dimension; ++d) outer *= tile[d];
  return outer == 1;
}

/// Every step that one axis allows from a spec; in a fixed order.
std::vector<ConversionStep> moves(const Shape& whole, const ShardingSpec& spec, const MeshShape& mesh) {
  std::vector<ConversionStep> steps;
  const int rank = static_cast<int>(whole.size());
  const auto propose = [&](ConversionStep step) {
    if (fits(whole, step.after, mesh)) steps.push_back(std::move(step));
  };
  for (int axis = 0; axis < static_cast<int>(mesh.size()); ++axis) {
    const std::uint32_t bit = 1u << axis;
    const bool sum = spec.partial_sum & bit, maximum = spec.partial_max & bit;
    ShardingSpec free = spec;
    free.partial_sum &= ~bit;
    free.partial_max &= ~bit;
    int at = -1;  // the dimension whose innermost split this axis is
    bool buried = false;
    for (int d = 0; d < rank; ++d) {
      auto& axes = free.axes[d];
      for (const int a : axes) buried = buried || (a == axis && axes.back() != axis);
      if (!axes.empty() && axes.back() == axis) {
        at = d;
        axes.pop_back();
      }
    }
    if (buried) continue;
    if (sum || maximum) propose({ConversionKind::all_reduce, axis, -1, -1, maximum, free});
    if (at >= 0) propose({ConversionKind::all_gather, axis, at, -1, false, free});
    for (int d = 0; d < rank; ++d) {
      if (d == at) continue;
      ShardingSpec after = free;
      after.axes[d].push_back(axis);
      const ConversionKind kind = sum || maximum ? ConversionKind::reduce_scatter
                                  : at >= 0      ? ConversionKind::all_to_all
                                                 : ConversionKind::slice;
      propose({kind, axis, at, d, maximum, std::move(after)});
    }
  }
  return steps;
}

bool is_sum(const ConversionStep& step) {
  return !step.maximum &&
         (step.kind == ConversionKind::all_reduce || step.kind == ConversionKind::reduce_scatter);
}

}  // namespace

CollectiveKind collective_of(ConversionKind kind) {
  switch (kind) {
    case ConversionKind::all_gather:
      return CollectiveKind::all_gather;
    case ConversionKind::all_to_all:
      return CollectiveKind::all_to_all;
    case ConversionKind::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    default:
      return CollectiveKind::all_reduce;
  }
}

const char* conversion_name(ConversionKind kind) {
  switch (kind) {
    case ConversionKind::slice:
      return "slice";
    case ConversionKind::all_gather:
      return "all-gather";
    case ConversionKind::all_to_all:
      return "all-to-all";
    case ConversionKind::reduce_scatter:
      return "reduce-scatter";
    case ConversionKind::all_reduce:
      return "all-reduce";
  }
  return "";
}

TensorType sent_type(const ConversionStep& step, const TensorType& tile) {
  return {step.wire_type.value_or(tile.dtype), tile.shape};
}

double step_bytes(const ConversionStep& step, const TensorType& before_tile, const TensorType& after_tile) {
  const bool grows = step.kind == ConversionKind::all_gather || step.kind == ConversionKind::slice;
  return step.sent_share.value_or(1) *
         static_cast<double>(byte_count(sent_type(step, grows ? after_tile : before_tile)));
}

std::int64_t packed_bytes(const ConversionStep& step, const TensorType& before_tile) {
  if (step.wire_type) return byte_count(sent_type(step, before_tile));
  if (step.kind == ConversionKind::slice || step.to_dimension < 0) return 0;
  return outermost(before_tile.shape, step.to_dimension) ? 0 : byte_count(before_tile);
}

std::int64_t unpacked_bytes(const ConversionStep& step, const TensorType& after_tile) {
  if (step.wire_type)
    return step.kind == ConversionKind::all_reduce ? 0 : byte_count(sent_type(step, after_tile));
  if (step.from_dimension < 0) return 0;
  return outermost(after_tile.shape, step.from_dimension) ? 0 : byte_count(after_tile);
}

namespace {

/// What is packed and unpacked, as copies that read as much as they write.
std::array<double, 2> copied_bytes(const ConversionStep& step, const TensorType& before_tile,
                                   const TensorType& after_tile) {
  const auto between = [](const TensorType& tile, std::int64_t sent) {
    return sent > 0 ? static_cast<double>(byte_count(tile) + sent) / 2 : 0;
  };
  const std::int64_t packed = packed_bytes(step, before_tile);
  return {between(before_tile, packed),
          between(after_tile, is_unpacked_where_packed(step) ? packed : unpacked_bytes(step, after_tile))};
}

}  // namespace

double packing_seconds(const ConversionStep& step, const TensorType& before_tile,
                       const TensorType& after_tile, const CostModel& costs) {
  double seconds = 0;
  for (const double bytes : copied_bytes(step, before_tile, after_tile))
    if (bytes > 0) seconds += costs.copy_seconds(bytes);
  return seconds;
}

double step_seconds(const ConversionStep& step, const TensorType& before_tile, const TensorType& after_tile,
                    const DeviceMesh& mesh, const CostModel& costs) {
  const double bytes = step_bytes(step, before_tile, after_tile);
  if (step.kind == ConversionKind::slice) return costs.copy_seconds(bytes);
  const GroupShape group = group_shape(mesh, step.axis, costs.cluster().devices_per_node);
  return costs.collective_seconds(collective_of(step.kind), group, bytes,
                                  devices_on_node(mesh.shape, costs.cluster().devices_per_node)) +
         packing_seconds(step, before_tile, after_tile, costs);
}

std::map<ShardingSpec, Conversions::Route> Conversions::routes_from(const TensorType& whole,
                                                                    const ShardingSpec& source) const {
  // Dijkstra; ties go to fewer steps, then to the smaller spec, so they fall the same way every time.
  std::map<ShardingSpec, Route> settled, open{{source, {}}};
  while (!open.empty()) {
    auto best = open.begin();
    for (auto it = open.begin(); it != open.end(); ++it) {
      const auto rank = [](const Route& r) { return std::pair(r.seconds, r.steps.size()); };
      if (rank(it->second) < rank(best->second)) best = it;
    }
    const auto [spec, route] = *best;
    open.erase(best);
    const TensorType before = tile_type(whole, spec, mesh_.shape);
    for (ConversionStep& step : moves(whole.shape, spec, mesh_.shape)) {
      if (settled.contains(step.after)) continue;
      const TensorType after = tile_type(whole, step.after, mesh_.shape);
      const double seconds = route.seconds + step_seconds(step, before, after, mesh_, routing_);
      const auto known = open.find(step.after);
      if (known != open.end() && known->second.seconds <= seconds) continue;
      Route longer{route.steps, seconds};
      longer.steps.push_back(step);
      open[step.after] = std::move(longer);
    }
    settled[spec] = route;
  }
  return settled;
}

namespace {

/// Rows are left out where those of each device stay one stretch of memory.
void say_what_is_sent(Conversion& steps, const TensorType& whole, const ShardingSpec& source,
                      const WireFormat& wire, const MeshShape& mesh) {
  const double sent_share = wire.sent_share(tile_shape(whole.shape, source, mesh));
  for (ConversionStep& step : steps) {
    if (is_sum(step)) step.wire_type = wire.sum_type;
    const bool leaves_out = wire.vocabulary > 0 && step.kind == ConversionKind::all_gather &&
                            step.from_dimension + 1 < static_cast<int>(whole.shape.size()) &&
                            unpacked_bytes(step, tile_type(whole, step.after, mesh)) == 0;
    if (leaves_out) step.sent_share = sent_share;
  }
}

}  // namespace

const Conversion* Conversions::between(const TensorType& whole, const ShardingSpec& source,
                                       const ShardingSpec& to, const WireFormat& value_wire) const {
  WireFormat wire = value_wire;
  if (wire.sum_type == whole.dtype) wire.sum_type.reset();
  const Key key{whole.dtype, whole.shape, source, wire};
  auto known = known_.find(key);
  if (known == known_.end()) {
    std::map<ShardingSpec, Route> routes = routes_from(whole, source);
    for (auto& [spec, route] : routes) say_what_is_sent(route.steps, whole, source, wire, mesh_.shape);
    known = known_.emplace(key, std::move(routes)).first;
  }
  const auto found = known->second.find(to);
  return found == known->second.end() ? nullptr : &found->second.steps;
}

std::size_t steps_over_source(const Conversion& steps) {
  const auto other = std::ranges::find_if(
      steps, [](const ConversionStep& step) { return step.kind != ConversionKind::all_reduce; });
  return static_cast<std::size_t>(other - steps.begin());
}

ConversionBytes conversion_bytes(const Conversion& steps, const TensorType& whole, const ShardingSpec& from,
                                 const MeshShape& mesh, ConversionEnd end) {
  ConversionBytes bytes;
  TensorType before = tile_type(whole, from, mesh);
  const std::size_t first = end == ConversionEnd::over_source ? steps_over_source(steps) : 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const TensorType after = tile_type(whole, steps[i].after, mesh);
    const bool has_memory = i < first || (i + 1 == steps.size() && end == ConversionEnd::in_place);
    std::int64_t now = has_memory ? 0 : buffer_bytes(after);
    if (i + 1 == steps.size()) bytes.end = now;
    for (const std::int64_t scratch : {packed_bytes(steps[i], before), unpacked_bytes(steps[i], after)})
      if (scratch > 0) now += buffer_bytes(scratch);
    if (i <= first)
      bytes.first = std::max(bytes.first, now);
    else
      bytes.later = std::max(bytes.later, buffer_bytes(before) + now);
    before = after;
  }
  return bytes;
}

double Conversions::seconds(const TensorType& whole, const ShardingSpec& source, const ShardingSpec& to,
                            const CostModel& costs, double shared_bytes, const WireFormat& wire) const {
  if (source == to) return 0;
  const Conversion* conversion = between(whole, source, to, wire);
  if (!conversion) return infinity;
  const bool shares = shared_bytes > 0 && is_sum_alone(*conversion);
  const int per_node = costs.cluster().devices_per_node;
  double seconds = 0;
  TensorType before = tile_type(whole, source, mesh_.shape);
  for (const ConversionStep& step : *conversion) {
    const TensorType after = tile_type(whole, step.after, mesh_.shape);
    if (shares) {
      seconds += costs.all_reduce_share_seconds(group_shape(mesh_, step.axis, per_node),
                                                step_bytes(step, before, after),
                                                devices_on_node(mesh_.shape, per_node), shared_bytes);
      for (const double bytes : copied_bytes(step, before, after))  // all that share are launched once
        seconds += costs.copy_seconds(bytes) - costs.copy_seconds(0);
    } else {
      seconds += step_seconds(step, before, after, mesh_, costs);
    }
    before = after;
  }
  return seconds;
}

}  // namespace alpa
