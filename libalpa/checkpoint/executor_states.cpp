#include "libalpa/checkpoint/executor_states.h"

#include <algorithm>

#include "libalpa/checkpoint/initial_state.h"
#include "libalpa/h5/tensor_shares.h"

namespace alpa {
namespace {

constexpr std::int64_t kPieceBytes = 4 << 20;

std::vector<HeldTile> tiles_held(Executor& executor, bool copies) {
  std::vector<HeldTile> held;
  for (const StateTile& tile : executor.state_tiles()) {
    if (tile.is_copy && !copies) continue;
    held.push_back({tile.state, tile.origin, tile.tile.shape, tile.term,
                    [&executor, tile](std::int64_t first, std::span<std::byte> into) {
                      executor.read_state(tile, first, into);
                    },
                    [&executor, tile](std::int64_t first, std::span<const std::byte> from) {
                      executor.write_state(tile, first, from);
                    }});
  }
  return held;
}

}  // namespace

void initialize_states(Executor& executor, const Graph& graph, std::int64_t seed) {
  std::vector<std::byte> piece;
  for (const StateTile& tile : executor.state_tiles()) {
    const State& state = graph.states[tile.state];
    const std::int64_t element = dtype_bytes(tile.tile.dtype), all = element_count(tile.tile.shape);
    for (std::int64_t first = 0; first < all; first += kPieceBytes / element) {
      const std::int64_t count = std::min(all - first, kPieceBytes / element);
      piece.resize(static_cast<std::size_t>(count * element));
      fill_initial_state(graph, state, {tile.origin, tile.tile.shape, first, count}, seed, piece.data());
      executor.write_state(tile, first * element, piece);
    }
  }
}

CheckpointFacts load_states(Executor& executor, const Graph& graph, const std::filesystem::path& checkpoint,
                            const BytesRead& read) {
  return load_checkpoint(checkpoint, graph, tiles_held(executor, true), read, executor.state_terms());
}

CheckpointFacts load_parameters(Executor& executor, const Graph& executed, const Graph& model,
                                const std::filesystem::path& checkpoint, const BytesRead& read) {
  std::vector<HeldTile> named;
  for (HeldTile& tile : tiles_held(executor, true)) {
    const auto found = std::ranges::find(model.states, executed.states[tile.state].name, &State::name);
    if (found == model.states.end()) continue;
    tile.state = model.states.index_of(*found);
    named.push_back(std::move(tile));
  }
  return load_checkpoint(checkpoint, model, named, read);
}

std::unique_ptr<TensorWriter> state_writer(Executor& executor, const Graph& graph,
                                           const std::filesystem::path& checkpoint,
                                           const CheckpointFacts& facts, const Provenance& provenance,
                                           std::optional<WritingRanks> ranks) {
  return checkpoint_writer(checkpoint, facts, graph, tiles_held(executor, false), provenance, ranks,
                           executor.state_terms());
}

std::vector<std::int64_t> checkpoint_shares(const Graph& graph, const Program& program) {
  std::vector<HeldTensor> tensors;
  const StateTerms terms = state_terms(graph, program);
  for (const StateIndex s : graph.states.indices())
    tensors.push_back({stored_type(graph, graph.states[s], terms[s]), {}});
  const int devices = device_count(program);
  for (const DeviceIndex device : indices_to<DeviceIndex>(static_cast<std::size_t>(devices)))
    for (const StateTile& tile : state_tiles(graph, program, device))
      if (!tile.is_copy)
        tensors[tile.state].held.push_back(
            {device, 0, stored_region(graph.states[tile.state], tile.origin, tile.tile.shape, tile.term)});
  return tensor_shares(tensors, devices);
}

}  // namespace alpa
