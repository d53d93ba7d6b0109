#include "libalpa/dataset/graph_statistics.h"

#include <gmock/gmock.h>

#include <array>

#include "libalpa/base/error.h"
#include "libalpa/h5/rows_writer.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Two words, of which the first has no label, and what they make; a chain of `vertices`.
VertexGraph pair_of_words() {
  VertexGraph graph;
  graph.add(1, -1);
  graph.add(2, 0);
  graph.add(-1, 0, std::array{0, 1});
  return graph;
}

VertexGraph small_chain(int vertices) {
  VertexGraph graph;
  graph.add(1, 0);
  while (graph.vertices() < vertices) graph.add(1, 0, std::array{graph.vertices() - 1});
  return graph;
}

/// Sizes 3, 3, 5, 1; heights 1, 2, 4, 0.
GraphStatistics of_four() {
  GraphCounts counts;
  for (const VertexGraph& graph : {pair_of_words(), small_chain(3), small_chain(5), small_chain(1)})
    counts.add(graph);
  return counts.statistics();
}

TEST(GraphStatistics, CountVerticesAndHeights) {
  const GraphStatistics four = of_four();
  EXPECT_EQ(four.samples(), 4);
  EXPECT_EQ(four.vertices(), 12);
  EXPECT_EQ(four.labelled, 11);
  EXPECT_EQ(four.most_vertices(), 5);
  EXPECT_EQ(four.mean_vertices(), 3);
  EXPECT_EQ(four.leaves(), 5);
  EXPECT_EQ(four.greatest_height(), 4);
  EXPECT_EQ(four.mean_height(), 7. / 4);
  EXPECT_THAT(four.vertices_by_height, ElementsAre(5, 3, 2, 1, 1));
  EXPECT_THAT(four.samples_by_height, ElementsAre(1, 1, 1, 0, 1));
  EXPECT_THAT(four.sizes, ElementsAre(1, 3, 5));
  EXPECT_THAT(four.samples_by_size, ElementsAre(1, 2, 1));
  EXPECT_EQ(four.level_share(0), 5. / 12);
  EXPECT_EQ(four.level_share(5), 0);
}

TEST(GraphStatistics, SayHowManyRoundsAGroupTakesOnAverage) {
  const GraphStatistics four = of_four();
  EXPECT_DOUBLE_EQ(four.mean_rounds(1), 1 + four.mean_height());
  // Of two, each height is the greater one as often as: 0: 1 of 16, 1: 3, 2: 5, 4: 7.
  EXPECT_DOUBLE_EQ(four.mean_rounds(2), 1 + (3 * 1 + 5 * 2 + 7 * 4) / 16.);
  EXPECT_NEAR(four.mean_rounds(1000), 5, 1e-9);
}

TEST(GraphStatistics, SayWhatTheLargestSamplesHaveTogether) {
  const GraphStatistics four = of_four();
  EXPECT_EQ(four.largest(0), 0);
  EXPECT_EQ(four.largest(1), 5);
  EXPECT_EQ(four.largest(2), 8);
  EXPECT_EQ(four.largest(3), 11);
  EXPECT_EQ(four.largest(4), 12);
  EXPECT_EQ(four.largest(5), 17) << "the largest comes again";
}

TEST(GraphStatistics, BoundWhatFollowsEachOtherInARun) {
  const GraphStatistics four = of_four();
  EXPECT_EQ(four.largest_in_run(1), 5);
  EXPECT_EQ(four.largest_in_run(2), 10) << "the largest ends an epoch, and begins the next";
  EXPECT_EQ(four.largest_in_run(3), 13);
  EXPECT_EQ(four.largest_in_run(4), 16);
  // Of all orders of two and a half epochs, none has more.
  std::array sizes{1, 3, 3, 5}, next = sizes;
  std::vector<std::int64_t> most(8, 0);
  do {
    std::ranges::sort(next);
    do {
      std::vector<int> run(sizes.begin(), sizes.end());
      run.insert(run.end(), next.begin(), next.end());
      for (std::size_t first = 0; first < run.size(); ++first)
        for (std::size_t count = 1, sum = run[first]; count < 8 && first + count <= run.size(); ++count) {
          most[count] = std::max(most[count], static_cast<std::int64_t>(sum));
          if (first + count < run.size()) sum += run[first + count];
        }
    } while (std::ranges::next_permutation(next).found);
  } while (std::ranges::next_permutation(sizes).found);
  for (std::int64_t count = 1; count <= 4; ++count)
    EXPECT_EQ(four.largest_in_run(count), most[count]) << count;
  for (std::int64_t count = 5; count < 8; ++count)
    EXPECT_GE(four.largest_in_run(count), most[count]) << count;
}

TEST(GraphStatistics, AreThoseOfAllSamplesOfASource) {
  const auto source = open_graphs("complete-trees:8:3", {100, 5, 2});
  const GraphStatistics three = graph_statistics(*source);
  EXPECT_THAT(three.vertices_by_height, ElementsAre(24, 12, 6, 3));
  EXPECT_EQ(three, statistics_of_data("complete-trees:8:3", {100, 5, 2}));
}

class StoredStatistics : public testing::Test {
 protected:
  void write(const GraphStatistics& statistics) const {
    H5RowsWriter file(path_, "somebody-else", "1.0");
    write_statistics(file, statistics);
    file.publish();
  }

  TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "graphs.h5").string();
};

TEST_F(StoredStatistics, AreReadBack) {
  write(of_four());
  EXPECT_EQ(stored_statistics(path_), of_four());
  EXPECT_EQ(statistics_of_data(path_, {}), of_four()) << "without looking at the graphs";
  EXPECT_THAT(run_command("h5dump -a /statistics/mean_height " + path_).output, HasSubstr("(0): 1.75"));
  EXPECT_THAT(run_command("h5dump -d /statistics/sizes " + path_).output, HasSubstr("(0): 1, 3, 5"));
}

TEST_F(StoredStatistics, AreNothingInOtherFiles) {
  H5RowsWriter file(path_, "somebody-else", "1.0");
  file.column("/tokens", std::vector<std::int64_t>{1});
  file.publish();
  EXPECT_EQ(stored_statistics(path_), std::nullopt);
}

TEST_F(StoredStatistics, ThatContradictEachOtherAreRefused) {
  const auto expect_refused = [&](auto&& change, const char* says) {
    GraphStatistics statistics = of_four();
    change(statistics);
    write(statistics);
    EXPECT_THAT([&] { stored_statistics(path_); },
                ThrowsMessage<Error>(testing::AllOf(HasSubstr(says), HasSubstr("try: leave out the group"))))
        << says;
  };
  expect_refused([](auto& s) { s.vertices_by_height[1] = -3; },
                 "'/statistics/vertices_by_height': element 1 is -3, expected a count");
  expect_refused([](auto& s) { s.vertices_by_height[1] = 4; },
                 "'/statistics/sizes': expected as many vertices as '/statistics/vertices_by_height' has");
  expect_refused([](auto& s) { s.samples_by_height[1] = 2; },
                 "expected as many samples as '/statistics/samples_by_height' has");
  expect_refused([](auto& s) { s.samples_by_height.push_back(0); }, "has 6 heights");
  expect_refused([](auto& s) { s.samples_by_size.push_back(0); }, "has 4 sizes");
  expect_refused([](auto& s) { std::swap(s.sizes[0], s.sizes[1]); }, "expected ascending numbers");
  expect_refused([](auto& s) { s.labelled = 13; }, "expected as many vertices");
  expect_refused([](auto& s) { s.sizes[2] = INT64_MAX; }, "expected as many vertices");
}

}  // namespace
}  // namespace alpa
