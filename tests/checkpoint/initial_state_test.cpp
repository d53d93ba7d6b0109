#include "libalpa/checkpoint/initial_state.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "libalpa/base/bfloat16.h"

namespace alpa {
namespace {

using ::testing::Each;

Graph graph_of(const std::vector<State>& states, const std::vector<TensorType>& types) {
  Graph graph;
  for (std::size_t i = 0; i < states.size(); ++i) {
    graph.states.push_back(states[i]);
    graph.states.back().value = graph.values.push_back({types[i], ValueKind::state, {}, states[i].name});
  }
  return graph;
}

State state(const std::string& name, Initializer initializer, const std::string& follows = "") {
  State s;
  s.name = name;
  s.initializer = initializer;
  s.follows = follows;
  return s;
}

const Initializer normal{Initializer::Kind::normal, 0.02}, uniform{Initializer::Kind::uniform, 0.5};

template <class Element = float>
std::vector<Element> tile(const Graph& graph, std::size_t index, const Shape& origin, const Shape& shape,
                          std::int64_t seed = 1) {
  std::vector<Element> values(static_cast<std::size_t>(element_count(shape)));
  fill_initial_state(graph, graph.states[StateIndex(index)], {origin, shape, 0, std::ssize(values)}, seed,
                     values.data());
  return values;
}

TEST(InitialState, ATileHoldsItsPartOfTheWhole) {
  for (const Initializer& initializer : {normal, uniform}) {
    const Graph graph = graph_of({state("w", initializer)}, {{DType::f32, {5, 7, 9}}});
    const auto whole = tile(graph, 0, {0, 0, 0}, {5, 7, 9});
    const Shape origin{1, 3, 4}, shape{3, 4, 5};
    const auto part = tile(graph, 0, origin, shape);
    for (std::int64_t a = 0; a < 3; ++a)
      for (std::int64_t b = 0; b < 4; ++b)
        for (std::int64_t c = 0; c < 5; ++c)
          EXPECT_EQ(part[(a * 4 + b) * 5 + c], whole[((a + 1) * 7 + b + 3) * 9 + c + 4]);
  }
}

TEST(InitialState, AStretchIsWhatTheTileHasThere) {
  State padded = state("w", normal);
  padded.unpadded = {5, 7, 7};
  const Graph graph = graph_of({padded}, {{DType::f32, {6, 7, 9}}});
  const Shape origin{1, 0, 3}, shape{5, 7, 6};
  const auto whole = tile(graph, 0, origin, shape);
  for (const std::int64_t piece : {1, 4, 6, 50, 300}) {
    std::vector<float> pieces(whole.size());
    for (std::int64_t first = 0; first < std::ssize(whole); first += piece)
      fill_initial_state(graph, graph.states[StateIndex(0)],
                         {origin, shape, first, std::min(piece, std::ssize(whole) - first)}, 1,
                         pieces.data() + first);
    EXPECT_EQ(pieces, whole) << piece;
  }
}

TEST(InitialState, OfPaddingIsZeroAndOfTheRestAsWithoutIt) {
  State padded = state("w", normal);
  padded.unpadded = {5, 3};
  const Graph with = graph_of({padded}, {{DType::f32, {7, 3}}}),
              without = graph_of({state("w", normal)}, {{DType::f32, {5, 3}}});
  std::vector<float> expected = tile(without, 0, {0, 0}, {5, 3});
  expected.resize(21, 0.0f);
  EXPECT_EQ(tile(with, 0, {0, 0}, {7, 3}), expected);
  EXPECT_EQ(tile(with, 0, {4, 0}, {3, 3}), std::vector<float>(expected.begin() + 12, expected.end()));
  EXPECT_THAT(tile(with, 0, {6, 1}, {1, 2}), Each(0.0f));
}

TEST(InitialState, OfPaddingInAnyDimensionIsZero) {
  State padded = state("w", normal);
  padded.unpadded = {2, 3, 5};
  const Graph with = graph_of({padded}, {{DType::f32, {2, 4, 6}}}),
              without = graph_of({state("w", normal)}, {{DType::f32, {2, 3, 5}}});
  const std::vector<float> drawn = tile(without, 0, {0, 0, 0}, {2, 3, 5}),
                           found = tile(with, 0, {0, 0, 0}, {2, 4, 6});
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 6; ++c)
        EXPECT_EQ(found[(a * 4 + b) * 6 + c], b < 3 && c < 5 ? drawn[(a * 3 + b) * 5 + c] : 0.0f);
}

TEST(InitialState, HasTheDistributionThatTheModelAsksFor) {
  const Graph graph =
      graph_of({state("n", normal), state("u", uniform)}, {{DType::f32, {100'000}}, {DType::f32, {100'000}}});
  double sum = 0, squares = 0;
  for (const float value : tile(graph, 0, {0}, {100'000})) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  // Standard errors of 100000 draws: 0.02 / 316 of the mean, 0.22 % of the deviation; five of each.
  EXPECT_NEAR(sum / 100'000, 0, 3.2e-4);
  EXPECT_NEAR(std::sqrt(squares / 100'000), 0.02, 2.2e-4);
  const auto drawn = tile(graph, 1, {0}, {100'000});
  const auto [least, most] = std::minmax_element(drawn.begin(), drawn.end());
  EXPECT_GE(*least, -0.5f);
  EXPECT_LT(*most, 0.5f);
  EXPECT_GT(*most - *least, 0.999f);
}

TEST(InitialState, ConstantsAndScalars) {
  const Graph graph =
      graph_of({state("zeros", {}), state("ones", {Initializer::Kind::ones, 0}), state("scalar", normal)},
               {{DType::f32, {2, 3}}, {DType::bf16, {4}}, {DType::f32, {}}});
  EXPECT_THAT(tile(graph, 0, {0, 0}, {2, 3}), Each(0.0f));
  EXPECT_THAT(tile<Bfloat16>(graph, 1, {2}, {2}), Each(to_bfloat16(1)));
  EXPECT_NE(tile(graph, 2, {}, {})[0], 0.0f);
  EXPECT_TRUE(tile(graph, 0, {1, 0}, {0, 3}).empty());
}

TEST(InitialState, DependsOnTheSeedAndTheName) {
  const Graph graph =
      graph_of({state("a", normal), state("b", normal)}, {{DType::f32, {10}}, {DType::f32, {10}}});
  EXPECT_EQ(tile(graph, 0, {0}, {10}), tile(graph, 0, {0}, {10}));
  EXPECT_NE(tile(graph, 0, {0}, {10}), tile(graph, 1, {0}, {10}));
  EXPECT_NE(tile(graph, 0, {0}, {10}), tile(graph, 0, {0}, {10}, 2));
}

TEST(InitialState, ABf16ParameterIsTheRoundingOfItsMasterWeights) {
  const Graph graph = graph_of({state("w", normal), state("w.master", {}, "w")},
                               {{DType::bf16, {30, 20}}, {DType::f32, {30, 20}}});
  const auto working = tile<Bfloat16>(graph, 0, {0, 0}, {30, 20});
  const auto master = tile(graph, 1, {0, 0}, {30, 20});
  for (std::size_t i = 0; i < master.size(); ++i) EXPECT_EQ(working[i], to_bfloat16(master[i]));
  EXPECT_GT(std::set<float>(master.begin(), master.end()).size(), 590u);
}

}  // namespace
}  // namespace alpa
