#include "libalpa/trainer/graph_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kBatch = 8, kGroup = 2, kVertices = 7, kChildren = 2;
constexpr GraphLimits kLimits{30'000, 5, kChildren};

TrainingOptions options() {
  TrainingOptions options;
  options.batch = kBatch;
  options.group_samples = kGroup;
  return options;
}

std::unique_ptr<GraphSource> trees() { return open_graphs("complete-trees:4:40", kLimits); }

/// Of each input what a rank takes: rows [first, first + rows) of each of two micro-batches.
StepSamples samples_of(std::int64_t first, std::int64_t rows) {
  StepSamples samples;
  for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{1}, kChildren + 1})
    samples.push_back({2, kBatch / 2, first, rows, 4 * kVertices * columns});
  return samples;
}

/// [input] What fill() gives for the step that begins with sample 16.
std::vector<std::vector<std::int32_t>> filled(BatchReader& reader, const StepSamples& samples) {
  std::vector<std::vector<std::int32_t>> inputs;
  std::vector<std::span<std::byte>> into;
  for (const InputSamples& each : samples)
    inputs.emplace_back(static_cast<std::size_t>(each.bytes() / 4), 77);
  for (std::vector<std::int32_t>& input : inputs) into.push_back(std::as_writable_bytes(std::span(input)));
  reader.fill(Split::training, 16, samples, into);
  return inputs;
}

class GraphBatchesOfTrees : public testing::Test {
 protected:
  std::unique_ptr<GraphSource> source_ = trees();
  GraphBatches reader_{*source_,
                       SampleOrder::of_rows(source_->samples(), options()),
                       {kLimits, kGroup, kVertices},
                       {},
                       options(),
                       100};
};

TEST_F(GraphBatchesOfTrees, CountTheRowsOfEachGroupOfAStep) {
  std::vector<std::int32_t> rows;
  reader_.count_group_rows(Split::training, 16, kBatch, rows);
  EXPECT_THAT(rows, testing::ElementsAre(14, 14, 14, 14));
}

// Four leaves, two vertices above them and a root, of each of two samples.
TEST_F(GraphBatchesOfTrees, PackGroupsRoundByRound) {
  const auto inputs = filled(reader_, samples_of(0, kBatch / 2));
  const std::vector<std::int32_t>& structure = inputs[2];
  const std::size_t columns = kChildren + 1, rows = kGroup * kVertices;
  for (std::size_t group = 0; group < structure.size() / (rows * columns); ++group) {
    const auto* const of_group = structure.data() + group * rows * columns;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::int32_t end = of_group[row * columns + kChildren];
      EXPECT_EQ(end, row == 0 ? 8 : row == 1 ? 12 : row == 2 ? 14 : 0);
      for (std::size_t child = 0; child < kChildren; ++child)
        EXPECT_EQ(of_group[row * columns + child] >= 0, row >= 8) << row;
    }
  }
  VertexGraph graph;
  source_->read(reader_.order().window_start(Split::training, 16), graph);
  EXPECT_TRUE(std::equal(graph.tokens.begin(), graph.tokens.begin() + 2, inputs[0].begin()));
}

TEST_F(GraphBatchesOfTrees, GiveARankItsSamplesOfTheWhole) {
  const auto whole = filled(reader_, samples_of(0, 4));
  for (const auto& [first, rows] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 2}, {1, 2}, {3, 1}}) {
    const auto part = filled(reader_, samples_of(first, rows));
    for (std::size_t input = 0; input < 3; ++input) {
      const std::size_t width = whole[input].size() / kBatch;
      for (std::size_t m = 0; m < 2; ++m)
        for (std::size_t i = 0; i < static_cast<std::size_t>(rows) * width; ++i)
          ASSERT_EQ(part[input][m * static_cast<std::size_t>(rows) * width + i],
                    whole[input][(m * 4 + static_cast<std::size_t>(first)) * width + i]);
    }
  }
}

TEST_F(GraphBatchesOfTrees, CountVerticesThatHaveALabel) {
  const std::vector<std::int32_t> labels_of_step = filled(reader_, samples_of(0, 4))[1];
  const auto labels = std::ranges::count_if(labels_of_step, [](std::int32_t label) { return label >= 0; });
  EXPECT_EQ(reader_.target_count(Split::training, 16, kBatch), labels);
}

TEST(GraphBatches, WantRoomForWhateverMayComeTogether) {
  const std::unique_ptr<GraphSource> source = trees();
  const SampleOrder order = SampleOrder::of_rows(source->samples(), options());
  EXPECT_THAT(
      [&] {
        GraphBatches(*source, order, {kLimits, kGroup, kVertices - 1}, {}, options(), 100);
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("2 samples that come together in this run have 14 vertices, and the model has "
                          "room for 12"),
                HasSubstr("; the largest of them, sample "), HasSubstr(", has 7"),
                HasSubstr("[graphs] vertices = 6"))));
}

// The largest trees need not come together.
TEST(GraphBatches, MayHaveRoomForTheOrderOfTheRunAlone) {
  const std::unique_ptr<GraphSource> source = open_graphs("synthetic-trees:400", kLimits);
  const SampleOrder order = SampleOrder::of_rows(source->samples(), options(), 0);
  const auto open = [&](std::int64_t vertices, std::int64_t steps) {
    GraphBatches(*source, order, {kLimits, 8, vertices}, {}, options(), steps);
  };
  std::int64_t most = 0;
  for (std::int64_t first = 0; first < 800; first += 8) {
    std::int64_t vertices = 0;
    for (std::int64_t i = first; i < first + 8; ++i)
      vertices += source->vertices(order.window_start(Split::training, i));
    most = std::max(most, vertices);
  }
  const std::int64_t enough = (most + 7) / 8;
  EXPECT_NO_THROW(open(enough, 100));
  EXPECT_THAT(
      [&] { open(enough - 1, 100); },
      ThrowsMessage<Error>(HasSubstr("[graphs] vertices = " + std::to_string(enough) + " for this run")));
  EXPECT_THAT([&] { open(enough, 1'000'000'000 / kBatch); },
              ThrowsMessage<Error>(HasSubstr("that may come together")));
}

// All of it is held out; nothing is trained on.
TEST(GraphBatches, LookThroughDataOfEvaluations) {
  const std::unique_ptr<GraphSource> source = open_graphs("synthetic-trees:43", kLimits);
  const SampleOrder order = SampleOrder::of_rows(source->samples(), options(), 1);
  EXPECT_NO_THROW(GraphBatches(*source, order, {kLimits, 8, 80}, {}, options(), 1'000'000'000 / kBatch));
  EXPECT_THAT(
      [&] {
        GraphBatches(*source, order, {kLimits, 8, 20}, {}, options(), 1);
      },
      ThrowsMessage<Error>(HasSubstr("8 samples that come together in this run")));
}

/// The chains of a step, group by group, with the rows that each takes.
struct GroupsOfStep {
  std::vector<std::int32_t> tokens, labels, rows;
};

GroupsOfStep step_of_chains(const GraphBatching& batching) {
  const std::unique_ptr<GraphSource> source = open_graphs("chains:100", kLimits);
  GraphBatches reader(*source, SampleOrder::of_rows(100, options()), {kLimits, kGroup, 56}, batching,
                      options(), 100);
  StepSamples samples;
  for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{1}, kChildren + 1})
    samples.push_back({2, kBatch / 2, 0, kBatch / 2, 4 * 56 * columns});
  auto inputs = filled(reader, samples);
  GroupsOfStep groups{std::move(inputs[0]), std::move(inputs[1]), {}};
  reader.count_group_rows(Split::training, 16, kBatch, groups.rows);
  EXPECT_EQ(reader.target_count(Split::training, 16, kBatch),
            std::ranges::count_if(groups.labels, [](std::int32_t label) { return label >= 0; }));
  return groups;
}

// A step has the samples that it has without; neighbours are about as high.
TEST(GraphBatches, SortTheSamplesOfAStepByHeight) {
  GroupsOfStep as_drawn = step_of_chains({}), sorted = step_of_chains({std::nullopt, true});
  EXPECT_NE(sorted.rows, as_drawn.rows);
  EXPECT_EQ(std::accumulate(sorted.rows.begin(), sorted.rows.end(), 0),
            std::accumulate(as_drawn.rows.begin(), as_drawn.rows.end(), 0));
  // Four groups: the shortest, the third, the second, the longest.
  EXPECT_LE(sorted.rows[0], sorted.rows[2]);
  EXPECT_LE(sorted.rows[2], sorted.rows[1]);
  EXPECT_LE(sorted.rows[1], sorted.rows[3]);
  std::ranges::sort(as_drawn.tokens);
  std::ranges::sort(sorted.tokens);
  EXPECT_EQ(sorted.tokens, as_drawn.tokens);
}

TEST(GraphBatches, PadChainsToTheLongestOfTheirGroup) {
  const GroupsOfStep as_they_are = step_of_chains({}), padded = step_of_chains({BatchingPolicy::padded});
  for (std::size_t group = 0; group < padded.rows.size(); ++group) {
    EXPECT_EQ(padded.rows[group] % kGroup, 0);
    EXPECT_GE(padded.rows[group], as_they_are.rows[group]);
    EXPECT_LE(padded.rows[group] / kGroup, as_they_are.rows[group] - 1) << "the longest, and another";
  }
  EXPECT_EQ(std::ranges::count_if(padded.labels, [](std::int32_t label) { return label >= 0; }),
            std::ranges::count_if(as_they_are.labels, [](std::int32_t label) { return label >= 0; }));
}

TEST(GraphBatches, PadNothingButChains) {
  const std::unique_ptr<GraphSource> source = trees();
  EXPECT_THAT(
      [&] {
        GraphBatches(*source, SampleOrder::of_rows(40, options()), {kLimits, kGroup, kVertices},
                     {BatchingPolicy::padded}, options(), 1);
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("sample 0 is not a chain: vertex 1 has 0 children, expected vertex 0"),
                HasSubstr("another batching policy than padded"))));
}

}  // namespace
}  // namespace alpa
