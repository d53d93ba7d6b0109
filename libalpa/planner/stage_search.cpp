#include "libalpa/planner/stage_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace alpa {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One way to run a range of layers on a submesh.
struct Configuration {
  MeshShape mesh;
  bool rematerialize = false;
  StageSolution solution;
};

class StageSearch {
 public:
  StageSearch(const PlanningGraph& planning, const SearchSpace& space, const CostModel& costs)
      : planning_(planning), space_(space), costs_(costs), layers_(static_cast<int>(planning.graph->layers.size())) {
    sizes_ = space.single_devices ? std::vector<int>{1} : submesh_sizes(space.devices, costs.cluster().devices_per_node);
  }

  std::vector<Proposal> run(SearchShortfall& shortfall) {
    const int most = std::min({space_.most_stages, layers_, space_.devices});
    most_ = most;
    weigh_layers();
    std::vector<Proposal> best(static_cast<std::size_t>(most) + 1);
    for (Proposal& p : best) p.estimate_s = kInfinity;
    double last = 0;
    for (const double bound : slowest_bounds()) {
      if (bound < last * 1.005) continue;  // costs at most half a percent of the slowest stage
      last = bound;
      double found = kInfinity;
      for (const Proposal& p : best) found = std::min(found, p.estimate_s);
      if (bound * space_.micro_batches >= found) break;
      improve(best, bound);
    }
    std::vector<Proposal> proposals;
    for (Proposal& p : best)
      if (p.estimate_s < kInfinity) proposals.push_back(std::move(p));
    shortfall = shortfall_;
    return proposals;
  }

 private:
  using RangeKey = std::vector<int>;  ///< classes of the layers

  int in_flight(int stages_left) const {
    return space_.schedule == ScheduleKind::gpipe ? space_.micro_batches : std::min(stages_left, space_.micro_batches);
  }

  void weigh_layers() {
    weight_.assign(static_cast<std::size_t>(layers_), 0.0);
    const Graph& graph = *planning_.graph;
    for (const Node& node : graph.nodes) {
      const std::vector<TensorType> types = operand_types(graph, node);
      const double flops = flops_of(*node.op, {types, node.attributes});
      const double bytes = static_cast<double>(bytes_moved_by(*node.op, {types, node.attributes}));
      weight_[static_cast<std::size_t>(node.layer)] +=
          std::max(flops / costs_.cluster().flops_per_s(types[0].dtype), bytes / costs_.cluster().memory_bytes_per_s);
    }
    total_ = 0;
    for (const double w : weight_) total_ += w;
    heaviest_ = *std::max_element(weight_.begin(), weight_.end());
  }

  /// A stage whose share of the work is far from its share of the devices is in no good plan.
  bool balanced(int first, int end, int size) const {
    double work = 0;
    for (int l = first; l < end; ++l) work += weight_[static_cast<std::size_t>(l)];
    const double share = total_ * size / space_.devices;
    return work <= 2 * share + heaviest_ && (work >= 0.4 * share - heaviest_);
  }

  const Configuration* solve(int first, int end, const MeshShape& mesh, bool rematerialize, int flying) {
    RangeKey classes(planning_.classes.of_layer.begin() + first, planning_.classes.of_layer.begin() + end);
    // More in flight never takes less memory.
    const auto shape = std::tuple(classes, first == 0, end == layers_, mesh, rematerialize);
    const auto hopeless = hopeless_from_.find(shape);
    if (hopeless != hopeless_from_.end() && flying >= hopeless->second) flying = hopeless->second;
    // Ends of the model differ from cuts in what crosses.
    const auto key = std::tuple(std::move(classes), first == 0, end == layers_, mesh, rematerialize, flying);
    auto known = solved_.find(key);
    if (known == solved_.end()) {
      const StageRequest request{first, end, mesh, 0, space_.micro_batches, flying, rematerialize, {}, StateSpread::free};
      SelectionOptions options;
      options.gap = 5e-3;  // the plans that come out are solved again, to the end
      options.effort = 20'000;
      options.time_limit_s = 5;
      Configuration configuration{mesh, rematerialize, solve_stage(planning_, request, costs_, options)};
      if (!configuration.solution.feasible) hopeless_from_[shape] = flying;
      known = solved_.emplace(key, std::pair(first, std::move(configuration))).first;
    }
    return &known->second.second;
  }

  std::int64_t memory(const StageSolution& s, int flying) const { return s.fixed_bytes + flying * s.slot_bytes; }

  /// The fastest configuration of a range on a submesh that fits with that many micro-batches in flight.
  const Configuration* best(int first, int end, int size, int flying) {
    const auto key = std::tuple(first, end, size, flying);
    const auto known = best_.find(key);
    if (known != best_.end()) return known->second;
    const Configuration* chosen = nullptr;
    if (balanced(first, end, size))
      for (const MeshShape& mesh : mesh_shapes(size, costs_.cluster().devices_per_node))
        for (const bool rematerialize : space_.rematerialize) {
          const Configuration* candidate = solve(first, end, mesh, rematerialize, 1);
          const std::int64_t limit = costs_.cluster().memory_bytes;
          if (flying > 1 && candidate->solution.feasible && memory(candidate->solution, flying) > limit)
            candidate = solve(first, end, mesh, rematerialize, flying);
          const StageSolution& s = candidate->solution;
          if (!s.feasible) {
            if (s.least_memory > 0 && (shortfall_.least_memory == 0 || s.least_memory < shortfall_.least_memory))
              shortfall_ = {first, end, s.least_memory};
            continue;
          }
          if (!chosen || s.micro_batch_s < chosen->solution.micro_batch_s) chosen = candidate;
          // Recomputing only ever adds time; it is for what does not fit.
          if (!rematerialize && memory(s, flying) <= limit) break;
        }
    best_[key] = chosen;
    return chosen;
  }

  /// Every stage time there is, ascending: the candidates for the slowest stage.
  std::vector<double> slowest_bounds() {
    std::set<double> bounds;
    for (int first = 0; first < layers_; ++first)
      for (int end = first + 1; end <= layers_; ++end)
        for (const int size : sizes_) {
          if (!reachable(first, end, size)) continue;
          if (const Configuration* c = best(first, end, size, 1)) bounds.insert(c->solution.micro_batch_s);
        }
    return {bounds.begin(), bounds.end()};
  }

  /// Whether the rest of the model can have the rest of the devices.
  bool reachable(int first, int end, int size) const {
    const int rest_layers = layers_ - (end - first), rest_devices = space_.devices - size;
    if (rest_devices < 0 || (rest_layers == 0) != (rest_devices == 0)) return false;
    if (end - first == layers_) return space_.least_stages <= 1;
    return most_ > 1 && rest_layers >= 1;
  }

  void improve(std::vector<Proposal>& proposals, double bound) {
    struct Entry {
      double sum = kInfinity;
      int end = 0, size = 0;
      const Configuration* configuration = nullptr;
    };
    // table[stages][first][devices]: stages, layers from `first`, and devices that are left.
    std::vector<std::vector<std::vector<Entry>>> table(
        static_cast<std::size_t>(most_) + 1,
        std::vector<std::vector<Entry>>(static_cast<std::size_t>(layers_) + 1, std::vector<Entry>(static_cast<std::size_t>(space_.devices) + 1)));
    table[0][static_cast<std::size_t>(layers_)][0].sum = 0;
    for (int stages = 1; stages <= most_; ++stages)
      for (int first = layers_ - 1; first >= 0; --first)
        for (int devices = 1; devices <= space_.devices; ++devices) {
          Entry& entry = table[static_cast<std::size_t>(stages)][static_cast<std::size_t>(first)][static_cast<std::size_t>(devices)];
          for (const int size : sizes_) {
            if (size > devices) continue;
            for (int end = first + 1; end <= layers_; ++end) {
              const Entry& rest = table[static_cast<std::size_t>(stages) - 1][static_cast<std::size_t>(end)][static_cast<std::size_t>(devices - size)];
              if (rest.sum == kInfinity || !reachable(first, end, size)) continue;
              const Configuration* c = best(first, end, size, in_flight(stages));
              if (!c || c->solution.micro_batch_s > bound) continue;
              const double sum = c->solution.micro_batch_s + rest.sum;
              if (sum < entry.sum) entry = {sum, end, size, c};
            }
          }
        }
    for (int stages = std::max(1, space_.least_stages); stages <= most_; ++stages) {
      Proposal proposal;
      double slowest = 0, update = 0;
      int first = 0, devices = space_.devices;
      for (int left = stages; left > 0; --left) {
        const Entry& entry = table[static_cast<std::size_t>(left)][static_cast<std::size_t>(first)][static_cast<std::size_t>(devices)];
        if (!entry.configuration) break;
        const StageSolution& s = entry.configuration->solution;
        proposal.requests.push_back({first, entry.end, entry.configuration->mesh, 0, space_.micro_batches, in_flight(left),
                                     entry.configuration->rematerialize, {}, StateSpread::free});
        proposal.estimate_s += s.micro_batch_s;
        slowest = std::max(slowest, s.micro_batch_s);
        update = std::max(update, s.update_s);
        first = entry.end;
        devices -= entry.size;
      }
      if (first != layers_ || devices != 0) continue;
      proposal.estimate_s += (space_.micro_batches - 1) * slowest + update;
      if (proposal.estimate_s < proposals[static_cast<std::size_t>(stages)].estimate_s) proposals[static_cast<std::size_t>(stages)] = std::move(proposal);
    }
  }

  const PlanningGraph& planning_;
  const SearchSpace& space_;
  const CostModel& costs_;
  int layers_;
  int most_ = 1;
  std::vector<int> sizes_;
  std::vector<double> weight_;  ///< roofline seconds of a layer on one device
  double total_ = 0, heaviest_ = 0;
  SearchShortfall shortfall_;
  std::map<std::tuple<RangeKey, bool, bool, MeshShape, bool, int>, std::pair<int, Configuration>> solved_;
  std::map<std::tuple<RangeKey, bool, bool, MeshShape, bool>, int> hopeless_from_;  ///< in flight
  std::map<std::tuple<int, int, int, int>, const Configuration*> best_;
};

}  // namespace

std::vector<Proposal> search_stages(const PlanningGraph& planning, const SearchSpace& space, const CostModel& costs, SearchShortfall& shortfall) {
  std::vector<Proposal> proposals = StageSearch(planning, space, costs).run(shortfall);
  for (Proposal& proposal : proposals)
    for (const StageRequest& request : proposal.requests) {
      SelectionOptions options;
      options.gap = 1e-4;
      proposal.solutions.push_back(solve_stage(planning, request, costs, options));
    }
  return proposals;
}

}  // namespace alpa
