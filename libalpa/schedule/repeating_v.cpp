// Pipelines of one repeated block (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS'24):
// when the runs of a micro-batch begin says how long its activations are held, and with that how many are.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <tuple>

#include "libalpa/schedule/orders.h"

namespace alpa {
namespace {

constexpr int kRuns = 6;  ///< of a mesh for a micro-batch, each of which takes a unit of time

/// When the runs of the first micro-batch begin on a mesh, but for gradients of weights: on the way there,
/// back, there and back once more.
struct Block {
  int down = 1;                ///< units from mesh to mesh on the way there
  std::array<int, 3> returns;  ///< of the runs after the first on mesh 0

  std::array<int, 4> on(int mesh) const {
    return {down * mesh, returns[0] - mesh, returns[1] + down * mesh, returns[2] - mesh};
  }
  /// No mesh has two runs at once, whatever the micro-batch.
  bool is_possible(int meshes) const {
    for (int mesh = 0; mesh < meshes; ++mesh) {
      std::array<int, 4> units = on(mesh);
      for (int& unit : units) unit %= kRuns;
      std::ranges::sort(units);
      if (std::ranges::adjacent_find(units) != units.end()) return false;
    }
    return true;
  }
};

/// The one that is over first.
Block shortest_block(int meshes, int down) {
  const int there = down * (meshes - 1) + 1, back = meshes - 1;
  std::optional<Block> best;
  for (int a = 0; a < kRuns; ++a)
    for (int b = 0; b < kRuns; ++b)
      for (int c = 0; c < kRuns; ++c) {
        Block block{down, {}};
        block.returns[0] = there + back + a;
        block.returns[1] = block.returns[0] + 1 + b;
        block.returns[2] = block.returns[1] + there + back + c;
        if (block.is_possible(meshes) && (!best || block.returns[2] < best->returns[2])) best = block;
      }
  return *best;  // slopes of 1 or 2 there and 1 back always leave one
}

/// [mesh] forwards and gradients of inputs, in the order of the repeated block.
MeshOrders without_weights(int meshes, int down, int micro_batches) {
  const Block block = shortest_block(meshes, down);
  MeshOrders orders;
  for (int mesh = 0; mesh < meshes; ++mesh) {
    const StageIndex first(mesh), second(2 * meshes - 1 - mesh);
    const std::array<int, 4> begins = block.on(mesh);
    std::vector<std::pair<int, StageRun>> runs;
    for (int m = 0; m < micro_batches; ++m) {
      const std::array<StageRun, 4> of{{{SegmentKind::forward, m, first},
                                        {SegmentKind::forward, m, second},
                                        {SegmentKind::backward_inputs, m, second},
                                        {SegmentKind::backward_inputs, m, first}}};
      for (std::size_t i = 0; i < of.size(); ++i) runs.push_back({begins[i] + kRuns * m, of[i]});
    }
    std::ranges::sort(runs, {}, &std::pair<int, StageRun>::first);
    std::vector<StageRun>& order = orders.emplace_back();
    for (const auto& [begin, run] : runs) order.push_back(run);
  }
  return orders;
}

/// Lets meshes do their runs as soon as they can, and gradients of weights in between.
class WeightsBetween {
 public:
  WeightsBetween(MeshOrders orders, int most_held, int micro_batches)
      : orders_(std::move(orders)),
        most_held_(most_held),
        stages_(2 * static_cast<int>(orders_.size())),
        meshes_(orders_.size()) {
    forward_end_.assign(stages_, std::vector<std::optional<int>>(micro_batches));
    inputs_end_ = forward_end_;
  }

  MeshOrders take() {
    while (const std::optional<std::size_t> mesh = first_to_start()) start(*mesh);
    MeshOrders done;
    for (Mesh& mesh : meshes_) done.push_back(std::move(mesh.done));
    return done;
  }

 private:
  struct Mesh {
    std::size_t next = 0;  ///< in its order
    int now = 0, held = 0;
    std::deque<StageRun> weights;  ///< that are left for later
    std::vector<StageRun> done;
  };

  const StageRun* next_of(std::size_t mesh) const {
    return meshes_[mesh].next < orders_[mesh].size() ? &orders_[mesh][meshes_[mesh].next] : nullptr;
  }

  /// When what a run needs of its neighbours is there; nothing: not yet known.
  std::optional<int> ready(const StageRun& run) const {
    const int m = run.micro_batch;
    if (run.kind == SegmentKind::forward) return run.stage == 0 ? 0 : forward_end_[run.stage - 1][m];
    return run.stage + 1 == stages_ ? forward_end_[run.stage][m] : inputs_end_[run.stage + 1][m];
  }

  /// Whether a mesh had better do gradients of weights now: it would wait, or hold too much.
  bool does_weights(std::size_t mesh) const {
    const Mesh& at = meshes_[mesh];
    const StageRun* next = next_of(mesh);
    if (at.weights.empty() || !next) return !at.weights.empty();
    if (next->kind == SegmentKind::forward && at.held >= most_held_) return true;
    const std::optional<int> when = ready(*next);
    return !when || *when > at.now;
  }

  /// The mesh that starts a run first, of several the first mesh.
  std::optional<std::size_t> first_to_start() const {
    std::optional<std::pair<int, std::size_t>> first;
    for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh) {
      const StageRun* next = next_of(mesh);
      std::optional<int> when;
      if (does_weights(mesh))
        when = meshes_[mesh].now;
      else if (next && ready(*next))
        when = std::max(meshes_[mesh].now, *ready(*next));
      if (when && (!first || std::pair(*when, mesh) < *first)) first = std::pair(*when, mesh);
    }
    if (!first) return {};
    return first->second;
  }

  void start(std::size_t mesh) {
    Mesh& at = meshes_[mesh];
    if (does_weights(mesh)) {
      at.done.push_back(at.weights.front());
      at.weights.pop_front();
      ++at.now;
      --at.held;
      return;
    }
    const StageRun run = orders_[mesh][at.next++];
    const int m = run.micro_batch;
    at.now = std::max(at.now, *ready(run)) + 1;
    at.done.push_back(run);
    if (run.kind == SegmentKind::forward) {
      forward_end_[run.stage][m] = at.now;
      ++at.held;
    } else {
      inputs_end_[run.stage][m] = at.now;
      at.weights.push_back({SegmentKind::backward_weights, run.micro_batch, run.stage});
    }
  }

  const MeshOrders orders_;
  const int most_held_, stages_;
  std::vector<Mesh> meshes_;
  std::vector<std::vector<std::optional<int>>> forward_end_, inputs_end_;  ///< [stage][micro-batch]
};

}  // namespace

MeshOrders repeating_v(int meshes, int down, int most_held, int micro_batches) {
  MeshOrders orders =
      WeightsBetween(without_weights(meshes, down, micro_batches), most_held, micro_batches).take();
  join_first_backwards(orders.front());
  return orders;
}

}  // namespace alpa
