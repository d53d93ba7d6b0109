// Pipelines of one repeated block (Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS'24):
// when the runs of a micro-batch begin says how long its activations are held, and with that how many are.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "libalpa/schedule/orders.h"

namespace alpa {
namespace {

constexpr int kNever = 1 << 30;
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
        micro_batches_(micro_batches),
        stages_(2 * static_cast<int>(orders_.size())),
        meshes_(orders_.size()) {
    forward_end_.assign(stages_, std::vector<int>(micro_batches, kNever));
    inputs_end_ = forward_end_;
  }

  MeshOrders take() {
    for (int now = 0, left = static_cast<int>(meshes_.size()) * kRuns * micro_batches_; left > 0; ++now)
      for (std::size_t mesh = 0; mesh < meshes_.size(); ++mesh)
        if (step(mesh, now)) --left;
    MeshOrders done;
    for (Mesh& mesh : meshes_) done.push_back(std::move(mesh.done));
    return done;
  }

 private:
  struct Mesh {
    std::size_t next = 0;  ///< in its order
    int held = 0;
    std::deque<StageRun> weights;  ///< that are left for later
    std::vector<StageRun> done;
  };

  const StageRun* next_of(std::size_t mesh) const {
    return meshes_[mesh].next < orders_[mesh].size() ? &orders_[mesh][meshes_[mesh].next] : nullptr;
  }

  /// Whether what a run needs of its neighbours is there.
  bool is_ready(const StageRun& run, int now) const {
    const int m = run.micro_batch;
    if (run.kind == SegmentKind::forward) return run.stage == 0 || forward_end_[run.stage - 1][m] <= now;
    return (run.stage + 1 == stages_ ? forward_end_[run.stage] : inputs_end_[run.stage + 1])[m] <= now;
  }

  /// The mesh begins the next run if it can, else gradients of weights. False: there is nothing to do.
  bool step(std::size_t mesh, int now) {
    Mesh& at = meshes_[mesh];
    const StageRun* next = next_of(mesh);
    const bool is_full =
        next && next->kind == SegmentKind::forward && at.held >= most_held_ && !at.weights.empty();
    if (next && !is_full && is_ready(*next, now)) {
      run_next(mesh, now + 1);
      return true;
    }
    if (at.weights.empty()) return false;
    at.done.push_back(at.weights.front());
    at.weights.pop_front();
    --at.held;
    return true;
  }

  void run_next(std::size_t mesh, int end) {
    Mesh& at = meshes_[mesh];
    const StageRun run = orders_[mesh][at.next++];
    at.done.push_back(run);
    if (run.kind == SegmentKind::forward) {
      forward_end_[run.stage][run.micro_batch] = end;
      ++at.held;
    } else {
      inputs_end_[run.stage][run.micro_batch] = end;
      at.weights.push_back({SegmentKind::backward_weights, run.micro_batch, run.stage});
    }
  }

  const MeshOrders orders_;
  const int most_held_, micro_batches_, stages_;
  std::vector<Mesh> meshes_;
  std::vector<std::vector<int>> forward_end_, inputs_end_;  ///< [stage][micro-batch]; kNever: not begun
};

}  // namespace

MeshOrders repeating_v(int meshes, int down, int most_held, int micro_batches) {
  MeshOrders orders =
      WeightsBetween(without_weights(meshes, down, micro_batches), most_held, micro_batches).take();
  join_first_backwards(orders.front());
  return orders;
}

}  // namespace alpa
