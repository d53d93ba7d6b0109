// Vertex functions taken apart: what is worked out for all rows at once, and what round by round.
#include "libalpa/ops/vertex.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/graph/vertex_body.h"
#include "libalpa/ops/vertex_program.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Attributes kProduct{{"equation", std::string("b v d, d e -> b v e")}};

/// A function of x [2 3 4], in a graph of its own.
struct Written {
  Written() {
    g.begin_layer("cell");
    x = g.input(InputKind::data, {DType::f32, {2, 3, 4}}, "x");
    structure = g.input(InputKind::data, {DType::i32, {2, 3, 3}}, "structure");
  }

  ValueIndex weight(const Shape& shape) {
    return g.state(fmt::format("w{}", g.graph().states.size()), {DType::f32, shape}, {}, true);
  }
  ValueIndex product(ValueIndex rows, std::int64_t width) {
    return g.add("einsum", {rows, weight({g.type(rows).shape.back(), width})}, kProduct);
  }

  std::vector<std::string> ops() const {
    std::vector<std::string> names;
    for (const Node& node : g.graph().nodes) names.emplace_back(node.op->name);
    return names;
  }
  const Node& node(std::string_view op) const {
    for (const Node& node : g.graph().nodes)
      if (node.op->name == op) return node;
    throw Error(ErrorKind::input, "there is none");
  }
  std::string body(std::string_view op) const { return node(op).attributes.text("body"); }

  GraphBuilder g{vertex_catalog()};
  ValueIndex x, structure;
};

/// h = tanh(x W + (sum of the children's h) U), of which relu(h V) is shown.
ValueIndex write_recurrence(Written& f, const RoundsForm& form = {}) {
  const ValueIndex of_x = f.product(f.x, 5), below = add_gather(f.g, f.x, f.structure, 0, 5, true);
  const ValueIndex h = f.g.add("tanh", {f.g.add("add", {of_x, f.product(below, 5)})});
  const ValueIndex shown = f.g.add("relu", {f.product(h, 7)});
  const auto map = form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {&shown, 1}, 2, form);
  return map.at(shown);
}

TEST(Rounds, HaveWhatWaitsForChildrenAndIsWaitedForByParents) {
  Written f;
  const ValueIndex shown = write_recurrence(f);
  EXPECT_THAT(f.ops(), ElementsAre("einsum", "rounds", "einsum", "relu"));
  EXPECT_EQ(f.g.type(shown), (TensorType{DType::f32, {2, 3, 7}}));
  EXPECT_EQ(f.body("rounds"),
            "gather size_d=5 state=0 sum=1 : 0 1; einsum equation='b v d, d e -> b v e' : 4 3; add : 2 5; "
            "tanh : 6");
  EXPECT_EQ(f.node("rounds").attributes.text("states"), "7");
  // The state, and what the gradient of U is a product of.
  EXPECT_EQ(f.node("rounds").attributes.text("results"), "7 4");
}

TEST(Rounds, OfTheBackwardLeaveGradientsOfWeightsForAllRowsAtOnce) {
  Written f;
  write_recurrence(f);
  const Node rounds = f.node("rounds");
  std::vector<ValueIndex> dy(rounds.results.size());
  dy[0] = f.g.input(InputKind::data, f.g.type(rounds.results[0]), "dy");
  const std::vector<ValueIndex> gradients = rounds.op->gradient(f.g, rounds, dy);
  EXPECT_THAT(f.ops(), ElementsAre("einsum", "rounds", "einsum", "relu", "rounds_grad", "einsum"));
  // From what parents give back and dy to what is given back: by the transposed weight.
  EXPECT_THAT(f.body("rounds_grad"), HasSubstr("received size_d=5 state=0 : 0 1; "));
  EXPECT_THAT(f.body("rounds_grad"), HasSubstr("tanh_grad"));
  const Node& weights = f.g.graph().nodes.back();
  EXPECT_EQ(weights.results[0], gradients[3]);
  EXPECT_EQ(weights.operands[0], rounds.results[1]);
  EXPECT_EQ(f.g.type(gradients[3]), (TensorType{DType::f32, {5, 5}}));
  EXPECT_EQ(f.g.type(gradients[2]), (TensorType{DType::f32, {2, 3, 5}}));
}

TEST(Rounds, ThatAreNotEagerMakeProductsOfTheirOwnInputs) {
  Written f;
  write_recurrence(f, {.eager = false});
  EXPECT_THAT(f.ops(), ElementsAre("rounds", "einsum", "relu"));
  EXPECT_EQ(f.body("rounds"),
            "einsum equation='b v d, d e -> b v e' : 0 2; gather size_d=5 state=0 sum=1 : 0 1; "
            "einsum equation='b v d, d e -> b v e' : 5 3; add : 4 6; tanh : 7");
}

// What leads nowhere else, dV = h^T dy and dU, are sums over the rows of each round.
TEST(Rounds, ThatAreNotLazyMakeWhatIsShownAndGradientsOfTheirWeights) {
  Written f;
  const ValueIndex shown = write_recurrence(f, {.lazy = false});
  EXPECT_THAT(f.ops(), ElementsAre("einsum", "rounds"));
  EXPECT_THAT(f.body("rounds"),
              testing::EndsWith("tanh : 7; einsum equation='b v d, d e -> b v e' : 8 4; relu : 9"));
  const Node rounds = f.node("rounds");
  std::vector<ValueIndex> dy(rounds.results.size());
  const auto result = std::ranges::find(rounds.results, shown);
  dy[static_cast<std::size_t>(result - rounds.results.begin())] =
      f.g.input(InputKind::data, f.g.type(shown), "dy");
  const std::vector<ValueIndex> gradients = rounds.op->gradient(f.g, rounds, dy);
  EXPECT_THAT(f.ops(), ElementsAre("einsum", "rounds", "rounds_grad"));
  const Node& backward = f.node("rounds_grad");
  std::vector<TensorType> types;
  for (const ValueIndex operand : backward.operands) types.push_back(f.g.type(operand));
  const ShardingRule rule = rule_of(*backward.op, {types, backward.attributes});
  for (const std::size_t weight : {3, 4}) {
    const auto at = std::ranges::find(backward.results, gradients[weight]);
    ASSERT_NE(at, backward.results.end());
    EXPECT_EQ(f.g.type(*at), f.g.type(rounds.operands[weight]));
    // Devices that have groups of their own have terms of it.
    const auto groups = std::ranges::find(rule.factors, "m", &Factor::name) - rule.factors.begin();
    EXPECT_TRUE(rule.reduces(static_cast<int>(at - backward.results.begin()), static_cast<int>(groups)));
  }
}

/// What the steps of a node's rounds do, on which stream.
std::string on_streams(const GraphBuilder& g, const Node& node) {
  std::vector<TensorType> types;
  for (const ValueIndex operand : node.operands) types.push_back(g.type(operand));
  const VertexProgram program = vertex_program({types, node.attributes}, RoundOrder::streams);
  constexpr const char* streams[] = {"early", "leading", "late"};
  constexpr const char* steps[] = {"gather", "multiply", "sum", "pass"};
  std::string text;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    text += fmt::format("{}{} {}", s == 0 ? "" : "; ", streams[static_cast<int>(program.streams[s])],
                        steps[program.steps[s].index()]);
    if (const auto* const pass = std::get_if<RowPass>(&program.steps[s]))
      text += fmt::format(" of {}", pass->functions.size());
  }
  return text;
}

TEST(Rounds, GoOnOneStreamWhereEachStepWaitsForChildrenAndIsWaitedForByParents) {
  Written f;
  write_recurrence(f);
  EXPECT_EQ(on_streams(f.g, f.node("rounds")), "leading gather; leading multiply; leading pass of 2");
}

// x W of all rounds can go on while the first round's sums wait; of h V, and of sums over rows, no round
// waits.
TEST(Rounds, PutWhatNoOtherRoundWaitsForOnStreamsOfItsOwn) {
  Written f;
  const ValueIndex shown = write_recurrence(f, {false, false, true});
  EXPECT_EQ(on_streams(f.g, f.node("rounds")),
            "early multiply; leading gather; leading multiply; leading pass of 2; late multiply; "
            "late pass of 1");
  const Node rounds = f.node("rounds");
  std::vector<ValueIndex> dy(rounds.results.size());
  const auto result = std::ranges::find(rounds.results, shown);
  dy[static_cast<std::size_t>(result - rounds.results.begin())] =
      f.g.input(InputKind::data, f.g.type(shown), "dy");
  rounds.op->gradient(f.g, rounds, dy);
  // Through relu and V; dV; what is given back, through tanh and U; dU; dx and dW.
  EXPECT_EQ(on_streams(f.g, f.node("rounds_grad")),
            "early pass of 1; early multiply; late sum; leading pass of 2; leading multiply; late sum; "
            "late multiply; late sum");
}

// A pass does not hold up what leads by what does not.
TEST(Rounds, TakeAPassApartWhereItsFunctionsAreOnSeveralStreams) {
  Written f;
  const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 4, true);
  const ValueIndex h = f.g.add("tanh", {f.g.add("add", {f.x, below})}), shown = f.g.add("relu", {h});
  form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {&shown, 1}, 2, {.lazy = false});
  const Node& rounds = f.node("rounds");
  EXPECT_EQ(on_streams(f.g, rounds), "leading gather; leading pass of 2; late pass of 1");
  std::vector<TensorType> types;
  for (const ValueIndex operand : rounds.operands) types.push_back(f.g.type(operand));
  EXPECT_EQ(vertex_program({types, rounds.attributes}).steps.size(), 2) << "on one stream";
}

// relu(h V + x P): the product of x is used behind the rounds alone, and so is in them when that is.
TEST(Rounds, ThatAreNeitherHaveProductsOfInputsThatAreShown) {
  Written f;
  const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 4, true);
  const ValueIndex h = f.g.add("tanh", {f.g.add("add", {f.x, below})});
  const ValueIndex shown = f.g.add("relu", {f.g.add("add", {f.product(h, 7), f.product(f.x, 7)})});
  form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {&shown, 1}, 2, {.eager = false, .lazy = false});
  EXPECT_THAT(f.ops(), ElementsAre("rounds"));
}

// C = h^T x is whole when all rounds are done: what multiplies by it stays behind them.
TEST(Rounds, LeaveWhatUsesSumsOverRows) {
  Written f;
  const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 4, true);
  const ValueIndex h = f.g.add("tanh", {f.g.add("add", {f.x, below})});
  const ValueIndex c = f.g.add("einsum", {h, f.x}, {{"equation", std::string("b v d, b v e -> d e")}});
  const ValueIndex shown = f.g.add("einsum", {h, c}, kProduct);
  const auto map =
      form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {&shown, 1}, 2, {.eager = false, .lazy = false});
  EXPECT_THAT(f.ops(), ElementsAre("rounds", "einsum"));
  EXPECT_EQ(f.g.graph().nodes.back().operands, (std::vector{map.at(h), map.at(c)}));
  EXPECT_EQ(f.g.type(map.at(c)), (TensorType{DType::f32, {4, 4}}));
}

// C = x^T x is needed in every round, and so is there before them.
TEST(Rounds, AreNotWhereSumsAreMadeThatTheyUse) {
  Written f;
  const ValueIndex c = f.g.add("einsum", {f.x, f.x}, {{"equation", std::string("b v d, b v e -> d e")}});
  const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 4, true);
  const ValueIndex h = f.g.add("tanh", {f.g.add("einsum", {below, c}, kProduct)});
  form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {}, 2, {.eager = false, .lazy = false});
  EXPECT_THAT(f.ops(), ElementsAre("einsum", "rounds"));
}

// Between the gates and the state, which is what a model may want to see.
TEST(Rounds, GiveWhatIsUsedElsewhereAndIsNoState) {
  Written f;
  const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 4, true);
  const ValueIndex inner = f.g.add("add", {f.x, below}), h = f.g.add("tanh", {inner});
  const auto map = form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {&inner, 1}, 2);
  EXPECT_THAT(f.node("rounds").results, testing::Contains(map.at(inner)));
  EXPECT_EQ(f.g.graph().values[map.at(inner)].producer, NodeIndex(0));
}

// h = sigmoid(a of x + a of U h) * tanh(b of x + b of U h): x's gradient and U h's have the same two parts.
TEST(Rounds, OfTheBackwardPutTheGatesOfInputAndStateTogetherOnce) {
  Written f;
  const ValueIndex of_x = f.product(f.x, 10), below = add_gather(f.g, f.x, f.structure, 0, 5, false);
  const ValueIndex first =
      f.g.add("slice", {below}, {{"begin", std::int64_t{0}}, {"size_c", std::int64_t{5}}});
  const ValueIndex of_below = f.product(first, 10);
  const auto gate = [&](std::string_view function, std::int64_t begin) {
    const Attributes part{{"begin", begin}, {"size_c", std::int64_t{5}}};
    return f.g.add(function,
                   {f.g.add("add", {f.g.add("slice", {of_x}, part), f.g.add("slice", {of_below}, part)})});
  };
  const ValueIndex h = f.g.add("mul", {gate("sigmoid", 0), gate("tanh", 5)});
  form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {}, 2);
  const Node rounds = f.node("rounds");
  std::vector<ValueIndex> dy(rounds.results.size());
  dy[0] = f.g.input(InputKind::data, f.g.type(rounds.results[0]), "dy");
  const std::vector<ValueIndex> gradients = rounds.op->gradient(f.g, rounds, dy);
  EXPECT_EQ(std::ranges::count(f.ops(), "concat"), 0);
  const Node backward = f.node("rounds_grad");
  EXPECT_EQ(gradients[2], backward.results[0]) << "of x's product, as the rounds have it";
  EXPECT_EQ(backward.results.size(), 1u);
}

TEST(Rounds, AreWrittenAndReadBack) {
  Written f;
  write_recurrence(f);
  const Node& rounds = f.node("rounds");
  const VertexBody body =
      body_of(rounds.attributes, static_cast<int>(rounds.operands.size()), vertex_catalog());
  Attributes again{{"rows", rounds.attributes.integer("rows")},
                   {"size_b", rounds.attributes.integer("size_b")}};
  set_body(again, body);
  EXPECT_EQ(again, rounds.attributes);
}

TEST(Rounds, AreSplitByGroupsOfSamplesAlone) {
  Written f;
  write_recurrence(f);
  const Node& rounds = f.node("rounds");
  std::vector<TensorType> types;
  for (const ValueIndex operand : rounds.operands) types.push_back(f.g.type(operand));
  const ShardingRule rule = rule_of(*rounds.op, {types, rounds.attributes});
  for (const Factor& factor : rule.factors) EXPECT_EQ(factor.whole, factor.name != "m") << factor.name;
}

TEST(Rounds, RefuseWhatTheyCannotDo) {
  Written f;
  const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 5, true);
  const ValueIndex h = f.g.add("layer_norm", {below, f.weight({5}), f.weight({5})}, {{"epsilon", 1e-5}}, "h");
  EXPECT_THAT(
      [&] {
        form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {}, 2);
      },
      ThrowsMessage<Error>(HasSubstr("'h' waits for what children publish, and leads to what is published; "
                                     "operator 'layer_norm' cannot be done round by round")));
}

TEST(Rounds, WantSlicesSideBySide) {
  Written f;
  const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 3, false);
  const auto slice = [&](std::int64_t begin) {
    return f.g.add("slice", {below}, {{"begin", begin}, {"size_c", std::int64_t{3}}});
  };
  const ValueIndex h = f.g.add("add", {slice(0), slice(2)});
  EXPECT_THAT(
      [&] {
        form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {}, 2);
      },
      ThrowsMessage<Error>(HasSubstr("slices of a value overlap")));
}

TEST(Rounds, WantSomethingGathered) {
  Written f;
  const ValueIndex h = f.g.add("tanh", {f.x});
  EXPECT_THAT(
      [&] {
        form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {}, 2);
      },
      ThrowsMessage<Error>(HasSubstr("nothing is gathered")));
}

// Products that mix rows, or work element by element, have the same ranks.
TEST(Rounds, WantProductsOfRowsWithWeights) {
  for (const char* equation : {"b v d, v u -> b u d", "b v d, v d -> b v d"}) {
    Written f;
    const ValueIndex below = add_gather(f.g, f.x, f.structure, 0, 3, true);
    const ValueIndex h =
        f.g.add("einsum", {below, f.weight({3, 3})}, {{"equation", std::string(equation)}}, "h");
    EXPECT_THAT(
        [&] {
          form_rounds(f.g, NodeIndex(0), f.structure, {&h, 1}, {}, 2);
        },
        ThrowsMessage<Error>(HasSubstr("operator 'einsum' cannot be done round by round")));
  }
}

}  // namespace
}  // namespace alpa
