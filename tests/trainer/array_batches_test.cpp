#include "libalpa/trainer/array_batches.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace alpa
