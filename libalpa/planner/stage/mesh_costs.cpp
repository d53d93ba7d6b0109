#include "libalpa/planner/stage/mesh_costs.h"

#include <algorithm>

#include "libalpa/base/parallel_tasks.h"
#include "libalpa/cluster/device_facts.h"
#include "libalpa/sharding/node_price.h"

namespace alpa {
namespace {

std::int64_t bytes_of(const std::vector<int>& which, const std::vector<TensorType>& tiles) {
  std::int64_t bytes = 0;
  for (const int i : which) bytes += byte_count(tiles[i]);
  return bytes;
}

std::int64_t buffers_of(const std::vector<int>& which, const std::vector<TensorType>& tiles) {
  std::int64_t bytes = 0;
  for (const int i : which) bytes += buffer_bytes(tiles[i]);
  return bytes;
}

/// Of blocks that go round, two are at hand: one is worked on or passed on while the other is there or
/// arrives. A device's own operands are the first of them, unless they are worked on last (with results that
/// go round too, whose own buffers are written last).
void hold_visitors(const NodeLayout& layout, NodeOption& option) {
  const Ring& ring = layout.ring;
  if (!ring.exists() || ring.devices < 2) return;
  const std::int64_t visiting = buffers_of(ring.operands, layout.local_operands);
  const std::int64_t kernel = option.workspace;
  option.workspace += visiting;
  if (ring.devices == 2) return;
  if (ring.results.empty()) {
    option.later_workspace = kernel + 2 * visiting;
    option.goes_on = ring.operands;
  } else {
    option.workspace += visiting + buffers_of(ring.results, layout.local_results);
  }
}

}  // namespace

int LayoutTable::add(const ShardingSpec& spec) {
  const auto [at, is_new] = number_.try_emplace(spec, count());
  if (is_new) {
    specs_.push_back(spec);
    bytes_.push_back(buffer_bytes(tile_type(whole_, spec, mesh_)));
  }
  return at->second;
}

int LayoutTable::find(const ShardingSpec& spec) const {
  const auto at = number_.find(spec);
  return at == number_.end() ? -1 : at->second;
}

const std::vector<double>& LayoutTable::seconds_from(int number, double shared_bytes,
                                                     const Conversions& conversions, const CostModel& costs) {
  auto& rows = seconds_[shared_bytes > 0 ? 1 : 0];
  rows.resize(specs_.size());
  std::vector<double>& row = rows[number];
  if (row.empty())
    for (const ShardingSpec& to : specs_)
      row.push_back(conversions.seconds(whole_, spec(number), to, costs, shared_bytes, wire_));
  return row;
}

double LayoutTable::reduction_seconds(int number, const Conversions& conversions,
                                      const CostModel& costs) const {
  return conversions.seconds(whole_, spec(number), without_terms(spec(number)), costs, 0, wire_);
}

const std::vector<ConversionBytes>& LayoutTable::bytes_from(int number, ConversionEnd end,
                                                            const Conversions& conversions) {
  auto& rows = conversion_bytes_[static_cast<std::size_t>(end)];
  rows.resize(specs_.size());
  std::vector<ConversionBytes>& row = rows[number];
  if (!row.empty()) return row;
  for (const ShardingSpec& to : specs_) {
    const Conversion* steps = conversions.between(whole_, spec(number), to, wire_);
    row.push_back(steps ? conversion_bytes(*steps, whole_, spec(number), mesh_, end) : ConversionBytes{});
  }
  return row;
}

MeshCosts::MeshCosts(const Graph& graph, MeshShape mesh, const CostModel& costs)
    : mesh_(std::move(mesh)),
      costs_(costs),
      conversions_(costs.cluster(), {DeviceIndex(0), mesh_}),
      resting_(graph.values.size(), nullptr) {
  for (const Value& value : graph.values) {
    LayoutTable& table =
        by_type_.try_emplace({value.type.dtype, value.type.shape, value.wire}, value, mesh_).first->second;
    table.add(replicated_spec(value.type.shape.size()));
    tables_.push_back(&table);
  }
  std::map<std::pair<std::string, std::vector<LayoutTable*>>, const std::vector<NodeOption>*> known;
  for (const Node& node : graph.nodes) {
    options_.push_back(nullptr);
    if (node.op->reduces_globally) continue;
    if (node.op->sums_micro_batches) {
      const Value& sum = value_of(graph, node.results[0]);
      bucket_bytes_ +=
          static_cast<double>(buffer_bytes({sum.wire.sum_type.value_or(sum.type.dtype), sum.type.shape}));
    }
    const std::vector<TensorType> types = operand_types(graph, node);
    // Signatures leave out what does not change the time, and no strategy depends on that either.
    std::vector<LayoutTable*> tables;  // which have the numbers of its layouts
    for (const std::vector<ValueIndex>& values : {node.operands, node.results})
      for (const ValueIndex value : values) tables.push_back(tables_[value]);
    const auto [at, is_new] =
        known.try_emplace({signature_of(*node.op, {types, node.attributes}), std::move(tables)});
    if (is_new) at->second = &distinct_.emplace_back(price(graph, node));
    options_.back() = at->second;
  }
  for (const State& state : graph.states) {
    const TensorType& type = value_of(graph, state.value).type;
    const auto [at, is_new] = resting_by_type_.try_emplace({type.dtype, type.shape});
    if (is_new)
      for (const ShardingSpec& spec : all_specs(type.shape, mesh_))
        at->second.push_back(tables_[state.value]->add(spec));
    resting_[state.value] = &at->second;
  }
  price_norms(graph);
  price_sum(graph, graph.loss);
  for (const Metric& metric : graph.metrics)
    for (const ValueIndex v : metric.values) price_sum(graph, v);
}

void MeshCosts::price_sum(const Graph& graph, ValueIndex v) {
  if (v < 0 || value_of(graph, v).producer < 0) return;
  const Value& value = value_of(graph, v);
  const std::vector<TensorType> tile{{value.type.dtype, {}}};
  const OpDef& op = *graph.nodes[value.producer].op;
  sum_seconds_.try_emplace(v, kernel_seconds(op, {tile, {{"weight", 1.0}}}, costs_));
}

void MeshCosts::price_norms(const Graph& graph) {
  for (const Node& norm : graph.nodes) {
    if (!norm.op->reduces_globally) continue;
    for (const ValueIndex gradient : norm.operands) {
      const LayoutTable* table = tables_[gradient];
      const auto [at, is_new] = norm_seconds_.try_emplace(table);
      for (int layout = 0; is_new && layout < table->count(); ++layout) {
        at->second.push_back(0);
        if (table->spec(layout).is_partial()) continue;
        const std::vector<TensorType> tile{tile_type(table->whole(), table->spec(layout), mesh_)};
        const OpCall call{tile, {}};
        at->second.back() = kernel_seconds(*norm.op, call, costs_);
      }
    }
  }
}

std::vector<NodeOption> MeshCosts::price(const Graph& graph, const Node& node) {
  const std::vector<TensorType> types = operand_types(graph, node);
  const OpCall call{types, node.attributes};
  std::vector<NodeOption> options;
  for (Strategy& strategy : strategies(*node.op, call, mesh_)) {
    const NodeLayout layout = layout_of(*node.op, call, strategy, mesh_);
    NodeOption& option = options.emplace_back();
    option.strategy = std::move(strategy);
    for (std::size_t i = 0; i < layout.operands.size(); ++i)
      option.operands.push_back(tables_[node.operands[i]]->add(layout.operands[i]));
    for (std::size_t r = 0; r < layout.results.size(); ++r)
      option.results.push_back(tables_[node.results[r]]->add(layout.results[r]));
    option.passing_s = passing_seconds(layout);
    option.seconds = kernel_seconds_of(*node.op, layout) + option.passing_s;
    const std::int64_t scratch = workspace_of(*node.op, layout.local_call(), costs_.cluster().kind);
    if (scratch > 0) option.workspace = buffer_bytes(scratch);
    hold_visitors(layout, option);
  }
  return options;
}

double MeshCosts::passing_seconds(const NodeLayout& layout) const {
  const Ring& ring = layout.ring;
  double seconds = 0;
  for (const RingRound& round : ring.rounds()) {
    const std::int64_t passed = (round.operands_arrive ? bytes_of(ring.operands, layout.local_operands) : 0) +
                                (round.results_arrive ? bytes_of(ring.results, layout.local_results) : 0);
    if (passed > 0) seconds += shift_seconds(passed, conversions_.mesh(), ring.axis, costs_);
  }
  return seconds;
}

double MeshCosts::kernel_seconds_of(const OpDef& op, const NodeLayout& layout) const {
  double seconds = 0;
  for (const RingRound& round : layout.ring.rounds())
    seconds += kernel_seconds(op, layout.call_in(round), costs_);
  return seconds;
}

const std::vector<double>& MeshCosts::conversion_seconds(ValueIndex value, int from, bool in_bucket) const {
  const std::lock_guard lock(mutex_);
  return tables_[value]->seconds_from(from, in_bucket ? bucket_bytes_ : 0, conversions_, costs_);
}

const std::vector<ConversionBytes>& MeshCosts::conversion_bytes(ValueIndex value, int from,
                                                                ConversionEnd end) const {
  const std::lock_guard lock(mutex_);
  return tables_[value]->bytes_from(from, end, conversions_);
}

std::int64_t MeshCosts::workspace_of_one(const OpDef& op, ValueIndex value, int layout) const {
  const LayoutTable& table = layouts(value);
  const std::vector<TensorType> tile{tile_type(table.whole(), table.spec(layout), mesh_)};
  const Attributes none;
  const std::int64_t bytes = workspace_of(op, {tile, none}, costs_.cluster().kind);
  return bytes > 0 ? buffer_bytes(bytes) : 0;
}

double MeshCosts::reduction_seconds(ValueIndex value, int layout) const {
  const LayoutTable& table = layouts(value);
  if (!table.spec(layout).is_partial()) return 0;
  const std::lock_guard lock(mutex_);
  return table.reduction_seconds(layout, conversions_, costs_);
}

const MeshCosts& CostTable::known(const DeviceMesh& mesh) const {
  const CostModel& costs = costs_.on(mesh);
  if (&costs == &costs_) return known(mesh.shape);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<MeshCosts>& known = on_parts_[{mesh.shape, &costs}];
  if (!known) known = std::make_unique<MeshCosts>(graph_, mesh.shape, costs);
  return *known;
}

bool CostTable::price(const std::vector<MeshShape>& meshes, int threads, const std::function<bool()>& stops,
                      const std::function<void()>& one_done) {
  std::vector<std::unique_ptr<MeshCosts>*> places;
  for (const MeshShape& mesh : meshes) places.push_back(&mesh_costs_[mesh]);
  run_tasks(static_cast<int>(meshes.size()), threads, [&](int i) {
    if (*places[i] || stops()) return;
    *places[i] = std::make_unique<MeshCosts>(graph_, meshes[i], costs_);
    one_done();
  });
  return std::ranges::all_of(places, [](const auto* place) { return *place != nullptr; });
}

}  // namespace alpa
