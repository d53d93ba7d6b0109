#include "libalpa/checkpoint/executor_states.h"

#include <vector>

#include "libalpa/checkpoint/initial_state.h"

namespace alpa {
namespace {

/// Host memory for this rank's tiles of the states.
struct HostTiles {
  std::vector<std::vector<std::byte>> memory;
  std::vector<HostTile> tiles;

  void add(const StateTile& tile) {
    memory.emplace_back(static_cast<std::size_t>(byte_count(tile.tile)));
    tiles.push_back({tile.state, tile.origin, tile.tile.shape, memory.back().data()});
  }
};

HostTiles tiles_held(const Executor& executor) {
  HostTiles host;
  for (const StateTile& tile : executor.state_tiles()) host.add(tile);
  return host;
}

}  // namespace

void initialize_states(Executor& executor, const Graph& graph, std::int64_t seed) {
  const HostTiles host = tiles_held(executor);
  for (const HostTile& tile : host.tiles) {
    const State& state = graph.states[tile.state];
    fill_initial_state(graph, state, tile.origin, tile.shape, seed, tile.values);
    executor.write_state(tile.state, tile.values);
  }
}

CheckpointFacts load_states(Executor& executor, const Graph& graph, const std::filesystem::path& checkpoint,
                            const BytesRead& read) {
  const HostTiles host = tiles_held(executor);
  CheckpointFacts facts = load_checkpoint(checkpoint, graph, host.tiles, read);
  for (const HostTile& tile : host.tiles) executor.write_state(tile.state, tile.values);
  return facts;
}

void save_states(Executor& executor, const Graph& graph, const std::filesystem::path& checkpoint,
                 const CheckpointFacts& facts, const Provenance& provenance,
                 std::optional<WritingRanks> ranks) {
  HostTiles host;
  for (const StateTile& tile : executor.state_tiles())
    if (tile.writes) host.add(tile);
  for (const HostTile& tile : host.tiles) executor.read_state(tile.state, tile.values);
  save_checkpoint(checkpoint, facts, graph, host.tiles, provenance, ranks);
}

}  // namespace alpa
