#include "libalpa/checkpoint/initial_state.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
#include <vector>

#include "libalpa/base/box_rows.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/float_types.h"
#include "libalpa/base/philox.h"

namespace alpa {
namespace {

/// The draws of one state, element by element of the whole tensor.
class Draws {
 public:
  Draws(const State& source, std::int64_t seed)
      : initializer_(source.initializer),
        key_(philox_key(static_cast<std::uint64_t>(seed), hash64(source.name))) {}

  /// Elements [first, first + into.size()) of the whole tensor.
  void fill(std::int64_t first, std::span<float> into) const {
    const auto scale = static_cast<float>(initializer_.scale);
    switch (initializer_.kind) {
      case Initializer::Kind::zeros:
        return std::fill(into.begin(), into.end(), 0.0f);
      case Initializer::Kind::ones:
        return std::fill(into.begin(), into.end(), 1.0f);
      case Initializer::Kind::normal:
        return draw(
            first, into,
            [scale](const PhiloxBlock& block, std::uint64_t i) {
              return scale * philox_normal(block.word[2 * (i % 2)], block.word[2 * (i % 2) + 1]);
            },
            2);
      case Initializer::Kind::uniform:
        return draw(
            first, into,
            [scale](const PhiloxBlock& block, std::uint64_t i) {
              return scale * (2 * philox_uniform(block.word[i % 4]) - 1);
            },
            4);
    }
  }

 private:
  // `per_block` consecutive elements share a block.
  template <class Value>
  void draw(std::int64_t first, std::span<float> into, Value value, std::uint64_t per_block) const {
    auto at = static_cast<std::uint64_t>(first);
    std::uint64_t drawn = std::numeric_limits<std::uint64_t>::max();
    PhiloxBlock block{};
    for (float& element : into) {
      if (at / per_block != drawn) {
        drawn = at / per_block;
        block = philox(key_, 0, drawn);
      }
      element = value(block, at);
      ++at;
    }
  }

  Initializer initializer_;
  std::uint64_t key_;
};

const State& source_of(const Graph& graph, const State& state) {
  if (state.follows.empty()) return state;
  const auto followed = std::find_if(graph.states.begin(), graph.states.end(),
                                     [&](const State& other) { return other.name == state.follows; });
  assert(followed != graph.states.end());
  return *followed;
}

}  // namespace

void fill_initial_state(const Graph& graph, const State& state, const TileStretch& tile, std::int64_t seed,
                        void* values) {
  const TensorType& whole = value_of(graph, state.value).type;
  assert(whole.dtype != DType::i32);
  assert(tile.origin.size() == whole.shape.size() && tile.shape.size() == whole.shape.size());
  const Shape drawn_shape = unpadded_type(graph, state).shape;
  const Draws draws(source_of(graph, state), seed);
  const std::int64_t row = row_length(tile.shape);
  std::vector<float> drawn;
  for (std::int64_t filled = 0; filled < tile.count;) {
    const std::int64_t element = tile.first + filled;
    const std::int64_t count = std::min(row - element % row, tile.count - filled);  // to the end of its row
    Shape at = tile.origin;                                                         // in the whole
    std::int64_t rest = element;
    bool is_padding = false;
    for (std::size_t d = at.size(); d-- > 0; rest /= tile.shape[d]) {
      at[d] += rest % tile.shape[d];
      is_padding |= at[d] >= drawn_shape[d];
    }
    std::int64_t left = is_padding ? 0 : count;
    if (!is_padding && !at.empty()) left = std::min(count, drawn_shape.back() - at.back());
    drawn.resize(static_cast<std::size_t>(count));
    draws.fill(element_at(drawn_shape, at), std::span(drawn).first(static_cast<std::size_t>(left)));
    std::fill(drawn.begin() + left, drawn.end(), 0.0f);
    for_float_type(whole.dtype, [&](auto zero) {
      using T = decltype(zero);
      std::transform(drawn.begin(), drawn.end(), static_cast<T*>(values) + filled, from_float<T>);
    });
    filled += count;
  }
}

}  // namespace alpa
