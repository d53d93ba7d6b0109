#include "libalpa/dataset/array_source.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <fstream>

#include "libalpa/base/bfloat16.h"
#include "libalpa/base/error.h"
#include "libalpa/h5/file.h"
#include "libalpa/h5/rows_writer.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::ThrowsMessage;

const std::vector<ArrayInput> kInputs{{"images", {DType::f32, {2, 3}}}, {"labels", {DType::i32, {}}, 4}};

template <class T>
std::vector<T> row(ArraySource& source, std::size_t input, std::int64_t index) {
  std::vector<T> values(static_cast<std::size_t>(element_count(source.inputs()[input].row.shape)));
  source.read(input, index, std::as_writable_bytes(std::span(values)));
  return values;
}

class Hdf5Arrays : public testing::Test {
 protected:
  void write(const std::vector<double>& images, const std::vector<std::int32_t>& labels) {
    H5Writer file(path_, "somebody-else", "1.0");
    file.array("/images", images, {static_cast<std::int64_t>(images.size()) / 6, 2, 3}, "1");
    file.column("/labels", labels, "1");
    file.publish();
  }

  /// One image of 2 x 3, stored as the type given.
  void write_image(hid_t stored, hid_t type, const void* values) const {
    const hsize_t extent[] = {1, 2, 3};
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(3, extent, nullptr);
    const hid_t set = H5Dcreate2(file, "/images", stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
  }

  TemporaryFolder folder_;
  const std::string path_ = (folder_.path() / "images.h5").string();
};

TEST_F(Hdf5Arrays, GiveEachSamplesRowOfEveryInput) {
  write({1, 2, 3, 4, 5, 6, 0.5, 0, 0, 0, 0, 0}, {3, 0});
  const auto source = open_arrays(path_, kInputs);
  EXPECT_EQ(source->rows(), 2);
  EXPECT_THAT(row<float>(*source, 0, 0), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(row<float>(*source, 0, 1), ElementsAre(0.5f, 0, 0, 0, 0, 0));
  EXPECT_THAT(row<std::int32_t>(*source, 1, 0), ElementsAre(3));
  EXPECT_EQ(source->description(), "'" + path_ + "', 2 samples");
}

TEST_F(Hdf5Arrays, AreRoundedForModelsInBf16) {
  write({1.001, 2, 3, 4, 5, 6}, {0});
  const auto source = open_arrays(path_, {{"images", {DType::bf16, {2, 3}}}});
  EXPECT_EQ(row<Bfloat16>(*source, 0, 0)[0], to_bfloat16(1.001f));
}

TEST_F(Hdf5Arrays, TakeBytesForNumbersFromZeroToOne) {
  const unsigned char pixels[] = {0, 51, 255, 0, 0, 0};
  write_image(H5T_STD_U8LE, H5T_NATIVE_UCHAR, pixels);
  const auto source = open_arrays(path_, {kInputs[0]});
  EXPECT_THAT(row<float>(*source, 0, 0), ElementsAre(0, 0.2f, 1, 0, 0, 0));
}

TEST_F(Hdf5Arrays, TakeSmallIntegersWithASignAsTheyAre) {
  const signed char values[] = {-128, 51, 127, 0, 0, 0};
  write_image(H5T_STD_I8LE, H5T_NATIVE_SCHAR, values);
  const auto source = open_arrays(path_, {kInputs[0]});
  EXPECT_THAT(row<float>(*source, 0, 0), ElementsAre(-128, 51, 127, 0, 0, 0));
}

TEST_F(Hdf5Arrays, ThatDoNotFitTheModelAreRefused) {
  const auto opening = [&](ArrayInput input) {
    return [this, input] { open_arrays(path_, {input, kInputs[1]}); };
  };
  write({1, 2, 3, 4, 5, 6}, {3, 0});
  EXPECT_THAT(
      opening(kInputs[0]),
      ThrowsMessage<Error>(AllOf(HasSubstr("/labels"), HasSubstr("it has 2 samples, '/images' has 1"))));
  EXPECT_THAT(opening({"image", {DType::f32, {2, 3}}}),
              ThrowsMessage<Error>(HasSubstr("missing (there is '/images')")));
  EXPECT_THAT(
      opening({"images", {DType::f32, {3, 2}}}),
      ThrowsMessage<Error>(HasSubstr("it is numbers of [1x2x3], the model wants numbers of [samplesx3x2]")));
  EXPECT_THAT(opening({"images", {DType::i32, {2, 3}}, 9}),
              ThrowsMessage<Error>(HasSubstr("the model wants integers of [samplesx2x3]")));
  EXPECT_THAT(opening({"images", {DType::i32, {}}, 9}),
              ThrowsMessage<Error>(HasSubstr("the model wants integers of [samples]")));
  write({1, 2, 3, 4, 5, 6}, {4});
  const auto source = open_arrays(path_, kInputs);
  EXPECT_THAT([&] { row<std::int32_t>(*source, 1, 0); },
              ThrowsMessage<Error>(HasSubstr("/labels, row 0: 4, but the model takes 0 to 3")));
}

TEST_F(Hdf5Arrays, MayHaveNoLabelForASampleWhereTheModelTakesThat) {
  write({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, {-1, -2});
  const auto refuse = [&](const std::vector<ArrayInput>& inputs, std::int64_t index, const char* message) {
    const auto source = open_arrays(path_, inputs);
    EXPECT_THAT([&] { row<std::int32_t>(*source, 1, index); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  const std::vector<ArrayInput> or_none{kInputs[0], {"labels", {DType::i32, {}}, 4, -1}};
  EXPECT_THAT(row<std::int32_t>(*open_arrays(path_, or_none), 1, 0), ElementsAre(-1));
  refuse(or_none, 1, "/labels, row 1: -2, but the model takes -1 to 3");
  refuse(kInputs, 0, "/labels, row 0: -1, but the model takes 0 to 3");
}

/// How often this thread has asked the system to read; -1 where the system does not say.
std::int64_t reads_so_far() {
  std::ifstream counts("/proc/thread-self/io");
  for (std::string word; counts >> word;)
    if (std::int64_t count = 0; word == "syscr:" && counts >> count) return count;
  return -1;
}

TEST_F(Hdf5Arrays, OfRowsThatFollowEachOtherAreReadTogetherInWhateverOrderTheyAreWanted) {
  constexpr std::int64_t rows = 500;
  H5RowsWriter file(path_, "somebody-else", "1.0");
  const std::vector<float> images(rows * 6, 0.5);
  file.append(file.declare("/images", RowsType::f32, {rows, 2, 3}), rows, images.data());
  file.publish();
  const auto source = open_arrays(path_, {kInputs[0]});
  std::vector<std::int64_t> wanted;
  for (std::int64_t i = 0; i < rows; ++i) wanted.push_back(i * 7 % rows);
  std::vector<float> read(images.size());
  source->read(0, wanted, std::as_writable_bytes(std::span(read)));  // which looks at checksums too
  const std::int64_t before = reads_so_far();
  if (before < 0) GTEST_SKIP() << "the system does not count reads";
  const std::int64_t of_counting = reads_so_far() - before;
  source->read(0, wanted, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(reads_so_far() - before - 2 * of_counting, 1);
  EXPECT_EQ(read, images);
}

TEST(SyntheticArrays, AreTheSameAtEveryReadAndWithinTheirRange) {
  const auto source = open_arrays("synthetic:50", kInputs), again = open_arrays("synthetic:50", kInputs);
  EXPECT_EQ(source->rows(), 50);
  for (std::int64_t r = 0; r < 50; ++r) {
    const auto image = row<float>(*source, 0, r);
    EXPECT_EQ(image, row<float>(*again, 0, r));
    EXPECT_THAT(image, testing::Each(AllOf(Ge(0), Le(1))));
    EXPECT_THAT(row<std::int32_t>(*source, 1, r), testing::Each(AllOf(Ge(0), Le(3))));
  }
  EXPECT_NE(row<float>(*source, 0, 0), row<float>(*source, 0, 1));
}

TEST(SyntheticArrays, NeedAPlainNumberOfRows) {
  for (const char* data :
       {"synthetic:", "synthetic:0", "synthetic:ten", "synthetic:5x", "synthetic:9223372036854775807"})
    EXPECT_THAT([&] { open_arrays(data, kInputs); },
                ThrowsMessage<Error>(HasSubstr(std::string("cannot make samples from '") + data)));
}

}  // namespace
}  // namespace alpa
