#include "libalpa/profiler/workload.h"

#include <algorithm>
#include <map>
#include <set>

#include "libalpa/sharding/strategy.h"

namespace alpa {
namespace {

/// Groups along the axes of meshes with more are of the same shapes; tiles that only these have are
/// estimated.
constexpr int kProfiledMeshAxes = 2;

constexpr std::int64_t kSmallestMessage = 1 << 10, kLargestMessage = 64 << 20;

/// Shapes of the meshes that plans for this cluster, or for an even share of it, are made of.
std::vector<MeshShape> meshes(const Cluster& cluster) {
  std::set<int> sizes;
  for (const int size : submesh_sizes(cluster.devices(), cluster.devices_per_node)) sizes.insert(size);
  for (int size = 1; size <= cluster.devices(); ++size)
    if (cluster.devices() % size == 0) sizes.insert(size);
  std::set<MeshShape> shapes;
  for (const int size : sizes)
    for (MeshShape& shape : mesh_shapes(size, cluster.devices_per_node, kProfiledMeshAxes))
      shapes.insert(std::move(shape));
  return {shapes.begin(), shapes.end()};
}

std::vector<int> last_coordinate(const MeshShape& mesh) {
  std::vector<int> last;
  for (const int extent : mesh) last.push_back(extent - 1);
  return last;
}

class CaseCollector {
 public:
  explicit CaseCollector(const Cluster& cluster) : cluster_(cluster), meshes_(meshes(cluster)) {}

  void add_graph(const Graph& graph) {
    std::map<std::string, std::pair<const Node*, int>> distinct;  // layers repeat
    for (const Node& node : graph.nodes) {
      if (node.op->reduces_globally) {
        for (const ValueIndex operand : node.operands) add_tile_sums(*node.op, value_of(graph, operand).type);
        continue;
      }
      const std::vector<TensorType> whole = operand_types(graph, node);
      auto& [representative, count] = distinct[signature_of(*node.op, {whole, node.attributes})];
      representative = &node;
      ++count;
    }
    for (const auto& [signature, entry] : distinct) add_strategies(graph, *entry.first, entry.second);
    // The losses of a step are summed by the operator that made them.
    const Node& loss = node_of(graph, value_of(graph, graph.loss).producer);
    add_whole(*loss.op, {value_of(graph, graph.loss).type});
  }

  std::vector<OperatorCase> by_importance() {
    std::vector<OperatorCase> cases;
    for (auto& [signature, each] : cases_) cases.push_back(std::move(each));
    const auto importance = [&](const OperatorCase& each) {
      return each.uses * (cluster_.launch_s + each.least_seconds(cluster_));
    };
    std::stable_sort(cases.begin(), cases.end(), [&](const OperatorCase& a, const OperatorCase& b) {
      return importance(a) > importance(b);
    });
    return cases;
  }

 private:
  void add_strategies(const Graph& graph, const Node& node, int count) {
    const std::vector<TensorType> whole = operand_types(graph, node);
    const OpCall call{whole, node.attributes};
    const std::vector<TensorType> results = result_types(*node.op, call);
    for (const MeshShape& mesh : meshes_) {
      std::set<std::string> seen;
      for (const Strategy& strategy : strategies(*node.op, call, mesh)) {
        const NodeLayout layout = layout_of(*node.op, call, strategy, mesh);
        for (const RingRound& round : layout.ring.rounds())
          if (seen.insert(signature_of(*node.op, layout.call_in(round))).second)
            add_case(*node.op, round, count, whole, results, layout, mesh);
      }
    }
  }

  /// What the last device of the mesh does. Blocks that visit it have come from the first one.
  void add_case(const OpDef& op, const RingRound& round, int uses, const std::vector<TensorType>& whole,
                const std::vector<TensorType>& results, const NodeLayout& layout, const MeshShape& mesh) {
    OperatorCase& each = cases_[signature_of(op, layout.call_in(round))];
    each.uses += uses;
    if (each.op) return;
    uses = each.uses;
    each = OperatorCase::of(op, layout.local_operands, layout.attributes_in(round));
    each.uses = uses;
    const auto place = [&](const std::vector<TensorType>& types, const std::vector<ShardingSpec>& specs,
                           const std::vector<int>& passed, auto& places) {
      for (std::size_t i = 0; i < types.size(); ++i) {
        std::vector<int> coordinate = last_coordinate(mesh);
        if (round.hops > 0 && std::find(passed.begin(), passed.end(), static_cast<int>(i)) != passed.end())
          coordinate[layout.ring.axis] = 0;
        places[i] = {tile_origin(types[i].shape, specs[i], mesh, coordinate), types[i].shape};
      }
    };
    place(whole, layout.operands, layout.ring.operands, each.operand_places);
    place(results, layout.results, layout.ring.results, each.result_places);
  }

  /// A global sum is lowered to one call per operand, on the tile that its user wants.
  void add_tile_sums(const OpDef& op, const TensorType& whole) {
    std::set<Shape> tiles;
    for (const MeshShape& mesh : meshes_)
      for (const ShardingSpec& spec : all_specs(whole.shape, mesh))
        tiles.insert(tile_shape(whole.shape, spec, mesh));
    for (const Shape& tile : tiles) add_whole(op, {{whole.dtype, tile}});
  }

  void add_whole(const OpDef& op, std::vector<TensorType> operands) {
    const auto [each, is_new] = cases_.try_emplace(signature_of(op, {operands, {}}));
    if (is_new) each->second = OperatorCase::of(op, std::move(operands), {});
    ++each->second.uses;
  }

  const Cluster& cluster_;
  std::vector<MeshShape> meshes_;
  std::map<std::string, OperatorCase> cases_;
};

/// What one collective may bring together.
struct LargestBytes {
  std::int64_t tensor = 0, gradients = 0;  ///< the gradients all together, in a bucket

  void see(const Graph& graph) {
    for (const Value& value : graph.values) tensor = std::max(tensor, byte_count(value.type));
    std::int64_t all = 0;
    for (const Node& node : graph.nodes)
      if (node.op->sums_micro_batches) all += byte_count(value_of(graph, node.results[0]).type);
    gradients = std::max(gradients, all);
  }
  std::int64_t of(CollectiveKind kind) const {
    return kind == CollectiveKind::all_reduce ? std::max(tensor, gradients) : tensor;
  }
};

std::vector<CollectiveCase> collective_cases(const Cluster& cluster, const LargestBytes& largest) {
  std::set<CollectiveCase> cases;
  const auto add_sizes = [&](CollectiveKind kind, GroupShape group) {
    for (std::int64_t bytes = kSmallestMessage; bytes <= kLargestMessage; bytes *= 4) {
      cases.insert({kind, group, bytes});
      if (bytes >= largest.of(kind)) break;
    }
  };
  for (const MeshShape& mesh : meshes(cluster))
    for (int axis = 0; axis < static_cast<int>(mesh.size()); ++axis) {
      const GroupShape group = group_shape({DeviceIndex(0), mesh}, axis, cluster.devices_per_node);
      for (const CollectiveKind kind :
           {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
            CollectiveKind::all_to_all, CollectiveKind::shift})
        add_sizes(kind, group);
    }
  if (cluster.devices_per_node > 1) add_sizes(CollectiveKind::send, {1, 2});
  if (cluster.nodes > 1) add_sizes(CollectiveKind::send, {2, 1});
  return {cases.begin(), cases.end()};
}

/// The longest, of which short waits and unlucky places in memory are no large part; of those that are long
/// enough for that the one that is used most.
std::optional<OperatorCase> reference(const std::vector<OperatorCase>& operators, const Cluster& cluster) {
  constexpr double long_enough_s = 0.02;
  const auto length_s = [&](const OperatorCase& each) {
    return std::min(each.least_seconds(cluster), long_enough_s);
  };
  const auto longest =
      std::max_element(operators.begin(), operators.end(),
                       [&](const auto& a, const auto& b) { return length_s(a) < length_s(b); });
  return longest == operators.end() ? std::nullopt : std::optional(*longest);
}

}  // namespace

double OperatorCase::least_seconds(const Cluster& cluster) const {
  const double own = cluster.flops_per_s(operands[0].dtype);
  return std::max(flops / (own > 0 ? own : cluster.f32_flops_per_s), bytes / cluster.memory_bytes_per_s);
}

OperatorCase OperatorCase::of(const OpDef& op, std::vector<TensorType> operands, Attributes attributes) {
  OperatorCase each;
  each.op = &op;
  each.operands = std::move(operands);
  each.attributes = std::move(attributes);
  each.signature = signature_of(op, each.call());
  each.results = result_types(op, each.call());
  each.operand_places.resize(each.operands.size());
  each.result_places.resize(each.results.size());
  each.flops = flops_of(op, each.call());
  each.bytes = static_cast<double>(bytes_moved_by(op, each.call()));
  return each;
}

Workload workload(std::span<const Graph> graphs, const Cluster& cluster) {
  CaseCollector collector(cluster);
  LargestBytes largest;
  for (const Graph& graph : graphs) {
    collector.add_graph(graph);
    largest.see(graph);
  }
  Workload work{collector.by_importance(), collective_cases(cluster, largest), {}};
  work.reference = reference(work.operators, cluster);
  return work;
}

}  // namespace alpa
