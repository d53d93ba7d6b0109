#include "libalpa/dataset/graph_source.h"

#include <gmock/gmock.h>

#include <optional>

#include "libalpa/base/error.h"
#include "libalpa/dataset/content_fingerprint.h"
#include "libalpa/h5/file.h"
#include "libalpa/h5/rows_writer.h"
#include "tests/dataset/random_graphs.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Values = std::vector<std::int64_t>;
using Column = std::optional<Values>;

/// A file of graphs: of three vertices, 0 and 1 children of 2, and of one.
struct GraphColumns {
  Column offsets = Values{0, 3, 4}, tokens = Values{5, 6, -1, 7}, labels = Values{0, 1, 2, -1},
         parents = Values{2, 2, -1, -1}, edges = {}, edge_offsets = {};
};

GraphColumns with_edges() {
  GraphColumns columns;
  columns.parents = std::nullopt;
  columns.edges = Values{1, 2, 0, 2};
  columns.edge_offsets = Values{0, 2, 2};
  return columns;
}

class GraphFiles : public testing::Test {
 protected:
  void write(const GraphColumns& columns) const {
    H5Writer file(path_, "somebody-else", "1.0");
    const auto column = [&](const char* name, const Column& values) {
      if (values) file.column(name, std::span<const std::int64_t>(*values), "1");
    };
    column("/offsets", columns.offsets);
    column("/tokens", columns.tokens);
    column("/labels", columns.labels);
    column("/parents", columns.parents);
    column("/edge_offsets", columns.edge_offsets);
    if (columns.edges)
      file.array("/edges", std::span<const std::int64_t>(*columns.edges), {std::ssize(*columns.edges) / 2, 2},
                 "1");
    file.publish();
  }

  std::unique_ptr<GraphSource> open(const GraphColumns& columns) const {
    write(columns);
    return open_graphs(path_, kLimits);
  }

  void expect_refused(const GraphColumns& columns, const std::string& says) const {
    EXPECT_THAT([&] { open(columns); }, ThrowsMessage<Error>(AllOf(HasSubstr("'" + path_ + "'"),
                                                                   HasSubstr(says), HasSubstr("\n  try: "))))
        << says;
  }

  static VertexGraph graph(GraphSource& source, std::int64_t sample) {
    VertexGraph read;
    source.read(sample, read);
    return read;
  }

  static constexpr GraphLimits kLimits{10, 3, 2};
  TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "graphs.h5").string();
};

TEST_F(GraphFiles, GiveEachSamplesVerticesWithTheirChildren) {
  const auto source = open({});
  EXPECT_EQ(source->samples(), 2);
  EXPECT_EQ(source->vertices(0), 3);
  EXPECT_EQ(source->labelled(0), 3);
  EXPECT_EQ(source->vertices(1), 1);
  EXPECT_EQ(source->labelled(1), 0);
  const VertexGraph first = graph(*source, 0), second = graph(*source, 1);
  EXPECT_THAT(first.tokens, ElementsAre(5, 6, -1));
  EXPECT_THAT(first.labels, ElementsAre(0, 1, 2));
  EXPECT_THAT(first.children_of(2), ElementsAre(0, 1));
  EXPECT_THAT(first.children_of(1), ElementsAre());
  EXPECT_THAT(second.tokens, ElementsAre(7));
  EXPECT_EQ(source->description(), "'" + path_ + "', 2 graphs of 4 vertices");
}

TEST_F(GraphFiles, OfEdgesKeepTheirOrder) {
  const auto source = open(with_edges());
  EXPECT_THAT(graph(*source, 0).children_of(2), ElementsAre(1, 0));
  EXPECT_EQ(graph(*source, 1).children, std::vector<std::int32_t>{});
}

TEST_F(GraphFiles, OfEdgesMayShareVertices) {
  GraphColumns columns = with_edges();
  columns.offsets = Values{0, 4};
  columns.edges = Values{0, 1, 1, 3, 0, 2, 2, 3};
  columns.edge_offsets = Values{0, 4};
  const VertexGraph diamond = graph(*open(columns), 0);
  EXPECT_THAT(diamond.children_of(1), ElementsAre(0));
  EXPECT_THAT(diamond.children_of(2), ElementsAre(0));
  EXPECT_THAT(diamond.children_of(3), ElementsAre(1, 2));
}

TEST_F(GraphFiles, WithoutAnyEdgeAreFine) {
  GraphColumns columns = with_edges();
  columns.edges = Values{};
  columns.edge_offsets = Values{0, 0, 0};
  EXPECT_EQ(graph(*open(columns), 0).child_ends, (std::vector<std::int32_t>{0, 0, 0}));
}

/// Stores any graphs as edges.
TEST_F(GraphFiles, AreReadInAnyOrderAsTheyWereWritten) {
  std::mt19937 random(1);
  std::vector<VertexGraph> graphs;
  GraphColumns columns{Values{0}, Values{}, Values{}, std::nullopt, Values{}, Values{0}};
  for (int i = 0; i < 500; ++i) {
    graphs.push_back(random_graph(random, 600, 2));  // more in all than are looked through at once
    const VertexGraph& last = graphs.back();
    columns.tokens->insert(columns.tokens->end(), last.tokens.begin(), last.tokens.end());
    columns.labels->insert(columns.labels->end(), last.labels.begin(), last.labels.end());
    for (std::int32_t vertex = 0; vertex < last.vertices(); ++vertex)
      for (const std::int32_t child : last.children_of(vertex))
        columns.edges->insert(columns.edges->end(), {child, vertex});
    columns.offsets->push_back(std::ssize(*columns.tokens));
    columns.edge_offsets->push_back(std::ssize(*columns.edges) / 2);
  }
  const auto source = open(columns);
  VertexGraph read;
  for (int i = 0; i < 500; ++i) {
    const int sample = i * 7 % 500;
    source->read(sample, read);
    EXPECT_EQ(read, graphs[sample]) << sample;
    EXPECT_EQ(source->labelled(sample), std::ranges::count_if(read.labels, [](int l) { return l >= 0; }));
  }
}

TEST_F(GraphFiles, AreReadAheadWhereTheyLieInTheFileAsTheyAre) {
  // What is as small as the files above lies in headers, which are HDF5's.
  EXPECT_FALSE(open({})->can_read_ahead());
  H5RowsWriter file(path_, "somebody-else", "1.0");
  const std::int32_t none = -1;
  const std::int64_t offsets[] = {0, 1};
  for (const char* column : {"/tokens", "/labels", "/parents"}) file.declare(column, RowsType::i32, {1});
  const int of_offsets = file.declare("/offsets", RowsType::i64, {2});
  for (const int column : {0, 1, 2}) file.append(column, 1, &none);
  file.append(of_offsets, 2, offsets);
  file.publish();
  EXPECT_TRUE(open_graphs(path_, kLimits)->can_read_ahead());
  EXPECT_GT(open_graphs(path_, kLimits)->held_bytes(), 0);
}

TEST_F(GraphFiles, HaveTheSameContentHoweverTheirChildrenAreStored) {
  GraphColumns edges = with_edges();
  edges.edges = Values{0, 2, 1, 2};
  EXPECT_EQ(content_fingerprint(*open({})), content_fingerprint(*open(edges)));
  EXPECT_NE(content_fingerprint(*open({})), content_fingerprint(*open(with_edges())));
  EXPECT_NE(content_fingerprint(*open({})), content_fingerprint(*open({.labels = Values{0, 1, 2, 0}})));
}

TEST_F(GraphFiles, WithOffsetsThatAreNoneAreRefused) {
  expect_refused({.offsets = Values{1, 3, 4}}, "'/offsets': begins with 1, expected 0");
  expect_refused({.offsets = Values{0, 4, 3}},
                 "'/offsets': sample 1 begins at 4 and ends at 3, expected ascending");
  expect_refused({.offsets = Values{0, -1, 4}}, "sample 0 begins at 0 and ends at -1");
  expect_refused({.offsets = Values{0, 3, 5}}, "'/offsets': sample 1 ends at 5, but there are 4");
  expect_refused({.offsets = Values{0, 3}}, "'/offsets': ends with 3, but there are 4");
  expect_refused({.offsets = Values{0, 3, 3, 4}},
                 "'/offsets': sample 1 has no vertices, expected at least one");
  expect_refused({.offsets = Values{0}},
                 "'/offsets': expected 1 to 1000000000 samples and the end of the last");
  expect_refused({.offsets = Values{0, 1, 2, 3, 4, 4}}, "describes 5 samples, but there are 4 vertices");
  GraphColumns edges = with_edges();
  edges.edge_offsets = Values{0, 2};
  expect_refused(edges, "'/edge_offsets': has 1 samples, but '/offsets' has 2");
  edges.edge_offsets = Values{0, 1, 1};
  expect_refused(edges, "'/edge_offsets': ends with 1, but there are 2");
  edges.edge_offsets = Values{0, 0, 2};
  edges.edges = Values{0, 1, 0, 2, 0, 2};
  edges.edge_offsets = Values{0, 0, 3};
  expect_refused(edges,
                 "'/edge_offsets': sample 1 has 3 edges, and its 1 vertices of at most 2 children 2 at most");
}

TEST_F(GraphFiles, WhoseChildrenDoNotComeFirstAreRefused) {
  expect_refused({.parents = Values{2, 0, -1, -1}},
                 "'/parents': sample 0, vertex 1: its parent is 0, expected a vertex that comes after it");
  expect_refused({.parents = Values{2, 2, 2, -1}}, "sample 0, vertex 2: its parent is 2");
  expect_refused({.parents = Values{1, 0, -1, -1}}, "unless they go in a cycle");
  GraphColumns edges = with_edges();
  edges.edges = Values{0, 2, 2, 1};
  expect_refused(edges, "'/edges': sample 0, vertex 2: its parent is 1, expected a vertex that comes after");
}

TEST_F(GraphFiles, WithWhatTheModelDoesNotTakeAreRefused) {
  expect_refused({.tokens = Values{5, 10, -1, 7}},
                 "'/tokens': sample 0, vertex 1: its token is 10, but the model takes -1 (none) to 9");
  expect_refused({.tokens = Values{5, 6, -1, -2}}, "'/tokens': sample 1, vertex 0: its token is -2");
  expect_refused({.tokens = Values{5, 6, -1, (std::int64_t{1} << 32) + 1}}, "its token is 2147483647");
  expect_refused({.labels = Values{0, 1, 3, -1}},
                 "'/labels': sample 0, vertex 2: its label is 3, but the model takes -1 (none) to 2");
  expect_refused({.parents = Values{2, 2, -2, -1}},
                 "'/parents': sample 0, vertex 2: its parent is -2, expected 0 to 2, or -1 for none");
  expect_refused({.parents = Values{2, 3, -1, -1}}, "sample 0, vertex 1: its parent is 3, expected 0 to 2");
  expect_refused({.offsets = Values{0, 4}, .parents = Values{3, 3, 3, -1}},
                 "'/parents': sample 0, vertex 3: it has more than 2 children, which the model takes");
  GraphColumns edges = with_edges();
  edges.edges = Values{3, 2, 0, 2};
  expect_refused(edges, "'/edges': sample 0, vertex 2: its child is 3, expected 0 to 2");
  edges.edges = Values{0, 3, 0, 2};
  expect_refused(edges, "'/edges': sample 0, vertex 0: its parent is 3, expected 0 to 2");
  edges.edges = Values{0, 2, 0, 2};
  expect_refused(edges, "'/edges': sample 0, vertex 2: two edges make 0 its child, expected one");
}

TEST_F(GraphFiles, WithoutTheColumnsAreRefused) {
  expect_refused({.offsets = std::nullopt}, "'/offsets': missing");
  expect_refused({.tokens = std::nullopt}, "'/tokens': missing");
  expect_refused({.labels = std::nullopt}, "'/labels': missing");
  expect_refused({.parents = std::nullopt}, "'/parents': missing");
  GraphColumns edges = with_edges();
  edges.edge_offsets = std::nullopt;
  expect_refused(edges, "'/edge_offsets': missing");
  edges.parents = GraphColumns().parents;
  expect_refused(edges, "has '/parents' and '/edges', but only one of them may say what the graphs are");
  expect_refused({.labels = Values{0, 1, 2}}, "'/labels': has 3 vertices, but '/tokens' has 4");
  expect_refused({.parents = Values{2, 2, -1}}, "'/parents': has 3 vertices, but '/tokens' has 4");
}

TEST_F(GraphFiles, WithColumnsOfOtherTypesAreRefused) {
  H5Writer file(path_, "somebody-else", "1.0");
  file.column("/tokens", std::vector<double>{0.5}, "1");
  file.publish();
  EXPECT_THAT(
      [&] { open_graphs(path_, kLimits); },
      ThrowsMessage<Error>(HasSubstr("'/tokens': expected integers of one dimension, found numbers of [1]")));
  H5Writer other(path_, "somebody-else", "1.0");
  for (const char* column : {"/tokens", "/labels", "/edges"})
    other.column(column, std::vector<std::int32_t>{0}, "1");
  other.publish();
  EXPECT_THAT(
      [&] { open_graphs(path_, kLimits); },
      ThrowsMessage<Error>(HasSubstr("'/edges': expected integers of [edges, 2], found integers of [1]")));
}

TEST(DrawnGraphs, AreNamedWithTheirNumber) {
  const GraphLimits limits{100, 5, 2};
  EXPECT_EQ(open_graphs("synthetic-trees", limits)->samples(), 8544);
  EXPECT_EQ(open_graphs("synthetic-trees:10", limits)->samples(), 10);
  EXPECT_EQ(open_graphs("chains:3", limits)->samples(), 3);
  const auto complete = open_graphs("complete-trees:128:7", limits);
  EXPECT_EQ(complete->samples(), 7);
  EXPECT_EQ(complete->vertices(6), 255);
  EXPECT_EQ(complete->description(), "7 complete trees of 128 leaves (as Tree-FC's)");
  for (const char* data :
       {"synthetic-trees:", "synthetic-trees:0", "synthetic-trees:ten", "synthetic-trees:5x",
        "synthetic-trees:5:5", "chains:99999999999", "complete-trees", "complete-trees:1",
        "complete-trees:8:", "complete-trees:99999999"})
    EXPECT_THAT([&] { open_graphs(data, limits); },
                ThrowsMessage<Error>(HasSubstr(std::string("cannot draw graphs from '") + data)));
}

TEST(DrawnGraphs, NeedAModelThatTakesThem) {
  EXPECT_THAT(
      [] {
        open_graphs("synthetic-trees", {100, 5, 1});
      },
      ThrowsMessage<Error>(HasSubstr("have up to 2 children, but the model takes 1")));
  EXPECT_NO_THROW(open_graphs("chains", {100, 5, 1}));
  EXPECT_THAT(
      [] {
        open_graphs("chains", {100, 2, 1});
      },
      ThrowsMessage<Error>(HasSubstr("'chains' has 5 classes, and the model 2")));
}

}  // namespace
}  // namespace alpa
