#include "libalpa/trainer/array_batches.h"

#include <gmock/gmock.h>

#include "libalpa/h5/rows_writer.h"
#include "tests/h5/temporary_folder.h"
#include "tests/trainer/own_samples.h"

namespace alpa {
namespace {

const std::vector<ArrayInput> kInputs{{"images", {DType::f32, {2, 3}}}, {"labels", {DType::i32, {}}, 4}};

template <class T>
std::vector<T> row(ArraySource& source, std::size_t input, std::int64_t index) {
  std::vector<T> values(static_cast<std::size_t>(element_count(source.inputs()[input].row.shape)));
  source.read(input, index, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(ArrayBatches, HoldTheRowsOfTheirSamplesInOrder) {
  const auto source = open_arrays("synthetic:50", kInputs);
  TrainingOptions options;
  options.batch = 4;
  ArrayBatches batches(*source, SampleOrder::of_rows(source->rows(), options));
  std::vector<float> images(4 * 6);
  std::vector<std::int32_t> labels(4);
  const std::span<std::byte> into[] = {std::as_writable_bytes(std::span(images)),
                                       std::as_writable_bytes(std::span(labels))};
  batches.fill(Split::training, 8, whole_batch(4, {6 * 4, 4}), into);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = batches.order().window_start(Split::training, 8 + i);
    EXPECT_LT(at, batches.order().windows(Split::training));
    EXPECT_EQ(labels[i], row<std::int32_t>(*source, 1, at)[0]);
    EXPECT_EQ(std::vector<float>(images.begin() + i * 6, images.begin() + i * 6 + 6),
              row<float>(*source, 0, at));
  }
  EXPECT_EQ(batches.target_count(Split::training, 8, 4), 4);
}

/// What fill() gives of 12 samples from `first` on, each input one row after another.
std::vector<std::vector<std::byte>> filled(ArrayBatches& batches, std::int64_t first,
                                           const StepSamples& samples, Split split = Split::training) {
  std::vector<std::vector<std::byte>> inputs;
  for (const InputSamples& input : samples) inputs.emplace_back(static_cast<std::size_t>(input.bytes()));
  const std::vector<std::span<std::byte>> into(inputs.begin(), inputs.end());
  batches.fill(split, first, samples, into);
  return inputs;
}

/// 3 micro-batches of 4 samples: what some ranks take.
const std::vector<StepSamples> kOfRanks{
    {{3, 4, 0, 4, 24}, {3, 4, 0, 4, 4}},                                       // all
    {{3, 4, 0, 2, 24}, {3, 4, 0, 2, 4}},                                       // halves of micro-batches
    {{3, 4, 2, 2, 24}, {3, 4, 2, 2, 4}}, {{3, 4, 3, 1, 24}, {3, 4, 0, 0, 4}},  // images alone
    {{3, 4, 0, 0, 24}, {3, 4, 0, 4, 4}},                                       // labels alone
    {{3, 4, 0, 0, 24}, {3, 4, 0, 0, 4}},
};

void expect_parts_of_the_whole(ArraySource& source) {
  TrainingOptions options;
  options.batch = 12;
  ArrayBatches batches(source, SampleOrder::of_rows(source.rows(), options));
  for (const Split split : {Split::training, Split::held_out})
    for (const std::int64_t first : {0, 12, 36, 39}) {  // through the end of the first epoch too
      const auto whole = filled(batches, first, whole_batch(12, {24, 4}), split);
      const std::vector<std::span<const std::byte>> spans(whole.begin(), whole.end());
      for (const StepSamples& samples : kOfRanks) {
        const OwnSamples own(samples, spans);
        const auto read = filled(batches, first, samples, split);
        for (std::size_t input = 0; input < 2; ++input)
          EXPECT_THAT(read[input], testing::ElementsAreArray(own.spans()[input]));
      }
    }
}

TEST(ArrayBatches, OfARankAreItsPartOfTheWhole) {
  expect_parts_of_the_whole(*open_arrays("synthetic:50", kInputs));
}

TEST(ArrayBatches, OfARankAreItsPartOfTheWholeInAFileToo) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "images.h5").string();
  H5RowsWriter file(path, "somebody-else", "1.0");
  const int images = file.declare("/images", RowsType::f32, {50, 2, 3}),
            labels = file.declare("/labels", RowsType::i32, {50});
  for (int row = 0; row < 50; ++row) {
    std::vector<float> image(6, static_cast<float>(row));
    image[5] = -1;
    const std::int32_t label = row % 4;
    file.append(images, 1, image.data());
    file.append(labels, 1, &label);
  }
  file.publish();
  const auto source = open_arrays(path, kInputs);
  EXPECT_TRUE(source->can_read_ahead());
  expect_parts_of_the_whole(*source);
  const std::vector<std::int64_t> rows{7, 3, 4, 5, 3, 49};  // in any order, some twice
  std::vector<float> read(rows.size() * 6);
  source->read(0, rows, std::as_writable_bytes(std::span(read)));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(read[i * 6], static_cast<float>(rows[i]));
    EXPECT_EQ(read[i * 6 + 5], -1);
  }
}

}  // namespace
}  // namespace alpa
