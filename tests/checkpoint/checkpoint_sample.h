#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "libalpa/base/bfloat16.h"
#include "libalpa/checkpoint/checkpoint.h"

namespace alpa {

/// A small model's states, each element known by state, index and `salt`, cut into tiles as a test likes.
struct StatesInMemory {
  Graph graph;
  std::vector<std::vector<char>> storage;
  std::vector<HeldTile> tiles;

  /// f32 matrix, its bf16 copy, a vector and a scalar.
  static StatesInMemory none(std::int64_t rows = 30, std::int64_t columns = 20) {
    StatesInMemory states;
    states.add_state("block.0.weight", {DType::bf16, {rows, columns}});
    states.add_state("block.0.weight.master", {DType::f32, {rows, columns}});
    states.add_state("block.0.bias", {DType::f32, {columns}});
    states.add_state("temperature", {DType::f32, {}});
    return states;
  }

  /// All of it, in one tile per state.
  static StatesInMemory whole(float salt, std::int64_t rows = 30, std::int64_t columns = 20) {
    StatesInMemory states = none(rows, columns);
    for (const StateIndex s : states.graph.states.indices()) {
      const Shape& shape = value_of(states.graph, states.graph.states[s].value).type.shape;
      states.add_tile(s, Shape(shape.size(), 0), shape, salt);
    }
    return states;
  }

  void add_state(const std::string& name, TensorType type) {
    State state;
    state.name = name;
    state.value = graph.values.push_back({std::move(type), ValueKind::state, {}, name});
    graph.states.push_back(state);
  }

  void add_tile(int place, Shape origin, Shape shape, float salt) {
    const StateIndex state(place);
    const TensorType& whole = value_of(graph, graph.states[state].value).type;
    const Shape unpadded = unpadded_type(graph, graph.states[state]).shape;  // numbers are as without padding
    storage.emplace_back(static_cast<std::size_t>(element_count(shape) * dtype_bytes(whole.dtype)));
    auto* const bytes = reinterpret_cast<std::byte*>(storage.back().data());
    tiles.push_back({state, std::move(origin), std::move(shape), 0,
                     [bytes](std::int64_t first, std::span<std::byte> into) {
                       std::copy_n(bytes + first, into.size(), into.begin());
                     },
                     [bytes](std::int64_t first, std::span<const std::byte> from) {
                       std::copy(from.begin(), from.end(), bytes + first);
                     }});
    for (std::int64_t i = 0; i < element_count(tiles.back().shape); ++i) {
      std::int64_t rest = i, index = 0, stride = 1;
      for (std::size_t d = whole.shape.size(); d-- > 0;) {
        index += (tiles.back().origin[d] + rest % tiles.back().shape[d]) * stride;
        rest /= tiles.back().shape[d];
        stride *= unpadded[d];
      }
      const float value = salt + static_cast<float>(1000 * state + index);
      if (whole.dtype == DType::f32)
        reinterpret_cast<float*>(storage.back().data())[i] = value;
      else
        reinterpret_cast<Bfloat16*>(storage.back().data())[i] = to_bfloat16(value);
    }
  }

  static DataIdentity sample_data() { return {"c0ffee", 9999, "", 95, 100, 1, "5eed"}; }

  void save(const std::filesystem::path& file, std::int64_t step,
            std::optional<WritingRanks> ranks = {}) const {
    save_checkpoint(file, {step, 8 * step, sample_data(), "batch = 8\n"}, graph, tiles,
                    provenance_here("test", "alpa", ""), ranks);
  }
};

}  // namespace alpa
