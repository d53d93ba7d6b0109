#include "libalpa/dataset/graph_packing.h"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <set>

#include "libalpa/base/error.h"
#include "tests/dataset/random_graphs.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// What a group becomes, in memory that held something else before.
struct PackedGroup {
  PackedGroup(int capacity, int most_children)
      : tokens(capacity, 77),
        labels(capacity, 77),
        children(capacity * most_children, 77),
        round_ends(capacity, 77) {}

  std::vector<std::int32_t> tokens, labels, children, round_ends;
  int rounds = 0;

  bool operator==(const PackedGroup&) const = default;
};

using GraphGroup = std::vector<VertexGraph>;

PackedGroup packed(const GraphGroup& group, BatchingPolicy policy, int children, int rows,
                   GraphPacker& packer) {
  std::vector<const VertexGraph*> samples;
  for (const VertexGraph& graph : group) samples.push_back(&graph);
  PackedGroup result(rows, children);
  std::vector<std::int32_t> structure(rows * (children + 1), 77);
  result.rounds = packer.pack(samples, policy, children, {result.tokens, result.labels, structure});
  for (int row = 0; row < rows; ++row) {
    std::copy_n(structure.begin() + row * (children + 1), children, result.children.begin() + row * children);
    result.round_ends[row] = structure[(row + 1) * (children + 1) - 1];
  }
  return result;
}

PackedGroup packed(const GraphGroup& group, BatchingPolicy policy, int children, int rows) {
  GraphPacker packer;
  return packed(group, policy, children, rows, packer);
}

/// A vertex of a group.
struct GroupVertex {
  std::size_t sample;
  std::int32_t vertex;
  auto operator<=>(const GroupVertex&) const = default;
};

bool can_go(const GraphGroup& group, const GroupVertex& it, const std::set<GroupVertex>& done) {
  return !done.contains(it) && std::ranges::all_of(group[it.sample].children_of(it.vertex), [&](int child) {
    return done.contains({it.sample, child});
  });
}

/// The rounds of a policy, by looking through all vertices again and again.
std::vector<std::vector<GroupVertex>> naive_rounds(const GraphGroup& group, BatchingPolicy policy) {
  std::vector<GroupVertex> all;
  for (std::size_t s = 0; s < group.size(); ++s)
    for (std::int32_t v = 0; v < group[s].vertices(); ++v) all.push_back({s, v});
  const auto is_leaf = [&](const GroupVertex& it) { return group[it.sample].children_of(it.vertex).empty(); };
  std::vector<std::vector<GroupVertex>> rounds;
  std::set<GroupVertex> done;
  while (done.size() < all.size()) {
    std::vector<GroupVertex> round;
    for (const GroupVertex& it : all)
      if (can_go(group, it, done)) round.push_back(it);
    const GroupVertex first = round.front();
    if (policy == BatchingPolicy::serial) round.resize(1);
    if (policy == BatchingPolicy::per_sample)
      std::erase_if(round, [&](const GroupVertex& it) { return it.sample != first.sample; });
    // Leaves are of depth 0 on average, and no others are.
    if (policy == BatchingPolicy::agenda && std::ranges::any_of(round, is_leaf))
      std::erase_if(round, [&](const GroupVertex& it) { return !is_leaf(it); });
    done.insert(round.begin(), round.end());
    rounds.push_back(round);
  }
  return rounds;
}

PackedGroup naively_packed(const GraphGroup& group, BatchingPolicy policy, int children, int rows) {
  PackedGroup result(rows, children);
  result.tokens.assign(rows, 0);
  result.labels.assign(rows, -1);
  result.children.assign(rows * children, -1);
  result.round_ends.assign(rows, 0);
  std::map<GroupVertex, int> row_of;
  for (const auto& round : naive_rounds(group, policy)) {
    for (const GroupVertex& it : round) {
      const int row = static_cast<int>(row_of.size());
      row_of[it] = row;
      result.tokens[row] = group[it.sample].tokens[it.vertex];
      result.labels[row] = group[it.sample].labels[it.vertex];
      int place = row * children;
      for (const std::int32_t child : group[it.sample].children_of(it.vertex))
        result.children[place++] = row_of.at({it.sample, child});
    }
    result.round_ends[result.rounds++] = static_cast<int>(row_of.size());
  }
  return result;
}

/// "It 's good" as in VertexGraph's comment.
VertexGraph it_is_good() {
  VertexGraph graph;
  for (std::int32_t token : {1, 2, 3}) graph.add(token, 2);
  graph.add(-1, 3, std::array{1, 2});
  graph.add(-1, 4, std::array{0, 3});
  return graph;
}

VertexGraph one_word() {
  VertexGraph graph;
  graph.add(8, -1);
  return graph;
}

TEST(GraphPacking, NumbersRowsRoundByRoundThenBySampleThenByVertex) {
  const PackedGroup group = packed({it_is_good(), one_word()}, BatchingPolicy::frontier, 2, 8);
  EXPECT_EQ(group.rounds, 3);
  EXPECT_THAT(group.round_ends, ElementsAre(4, 5, 6, 0, 0, 0, 0, 0));
  EXPECT_THAT(group.tokens, ElementsAre(1, 2, 3, 8, -1, -1, 0, 0));
  EXPECT_THAT(group.labels, ElementsAre(2, 2, 2, -1, 3, 4, -1, -1));
  EXPECT_THAT(group.children, ElementsAre(-1, -1, -1, -1, -1, -1, -1, -1, 1, 2, 0, 4, -1, -1, -1, -1));
}

TEST(GraphPacking, KeepsSamplesApartWhereThePolicySaysSo) {
  const GraphGroup group{it_is_good(), one_word()};
  EXPECT_THAT(packed(group, BatchingPolicy::per_sample, 2, 6).round_ends, ElementsAre(3, 4, 5, 6, 0, 0));
  EXPECT_THAT(packed(group, BatchingPolicy::serial, 2, 6).round_ends, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(GraphPacking, FillsWhatHasNoVertex) {
  const PackedGroup group = packed({}, BatchingPolicy::frontier, 1, 2);
  EXPECT_EQ(group.rounds, 0);
  EXPECT_THAT(group.tokens, ElementsAre(0, 0));
  EXPECT_THAT(group.labels, ElementsAre(-1, -1));
  EXPECT_THAT(group.children, ElementsAre(-1, -1));
  EXPECT_THAT(group.round_ends, ElementsAre(0, 0));
}

TEST(GraphPacking, IsWhatANaiveSimulationFindsOfAnyGraphs) {
  std::mt19937 random(1);
  GraphPacker packer;  // which keeps its memory from group to group
  for (int i = 0; i < 300; ++i) {
    const int children = 1 + i % 4;
    GraphGroup group(1 + i % 5);
    int vertices = 0;
    for (VertexGraph& graph : group) {
      graph = random_graph(random, 12, children);
      vertices += graph.vertices();
    }
    for (const auto& policy : batching_policies())
      EXPECT_EQ(packed(group, policy.value, children, vertices + i % 3, packer),
                naively_packed(group, policy.value, children, vertices + i % 3))
          << policy.name << " of group " << i;
  }
}

TEST(GraphPacking, HasEachVertexBehindItsChildrenInALaterRound) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    const GraphGroup group{random_graph(random, 40, 3), random_graph(random, 40, 3)};
    for (const auto& policy : batching_policies()) {
      const PackedGroup rows = packed(group, policy.value, 3, 80);
      const auto round_of = [&](std::int32_t row) {
        const auto ends = std::span(rows.round_ends).first(rows.rounds);
        return std::ranges::upper_bound(ends, row) - ends.begin();
      };
      for (std::int32_t place = 0; place < std::ssize(rows.children); ++place) {
        if (rows.children[place] < 0) continue;
        EXPECT_LT(round_of(rows.children[place]), round_of(place / 3)) << policy.name;
      }
    }
  }
}

TEST(GraphPacking, OfAFrontierTakesOneRoundMoreThanTheGreatestHeight) {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const GraphGroup group{random_graph(random, 30, 2), random_graph(random, 30, 2)};
    std::int32_t greatest = 0;
    for (const VertexGraph& graph : group) {
      std::vector<std::int32_t> heights(graph.vertices());
      greatest = std::max(greatest, find_heights(graph, heights));
    }
    EXPECT_EQ(packed(group, BatchingPolicy::frontier, 2, 60).rounds, greatest + 1);
    EXPECT_EQ(packed(group, BatchingPolicy::agenda, 2, 60), packed(group, BatchingPolicy::frontier, 2, 60))
        << "with one function an agenda is a frontier";
  }
}

TEST(GraphPacking, RefusesMoreVerticesThanRows) {
  const GraphGroup group{one_word(), it_is_good(), one_word()};
  EXPECT_NO_THROW(packed(group, BatchingPolicy::frontier, 2, 7));
  EXPECT_THAT([&] { packed(group, BatchingPolicy::frontier, 2, 6); },
              ThrowsMessage<Error>(HasSubstr("the first 3 of the 3 samples of a group have 7 vertices, the "
                                             "last of them 1, and the group has room for 6")));
  EXPECT_THAT([&] { packed(group, BatchingPolicy::serial, 2, 3); },
              ThrowsMessage<Error>(HasSubstr("the first 2 of the 3 samples of a group have 6 vertices")));
}

}  // namespace
}  // namespace alpa
