#include "libalpa/h5/tensor_file.h"

#include <gmock/gmock.h>

#include <numeric>

#include "libalpa/base/error.h"
#include "tests/h5/damage.h"
#include "tests/h5/limits.h"
#include "tests/h5/temporary_folder.h"

namespace alpa {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;
using ::testing::ThrowsMessage;

// 600 rows of 2500 are two chunks.
constexpr std::int64_t rows = 600, columns = 2500;

class TensorFile : public ::testing::Test {
 protected:
  TensorFile() : weight_(rows * columns) { std::iota(weight_.begin(), weight_.end(), 0.0f); }

  void write(const std::filesystem::path& path, const std::string& command = "alpa-train plan.h5",
             bool in_background = false) {
    TensorWriter file(path, "alpa-checkpoint", "1.0");
    file.attribute("step", 100);
    file.attribute("loss_scale", 1024.0);
    file.attribute("model", "gpt");
    file.provenance(provenance_here(command, "alpa-train 0.1.0", "4711"));
    file.tensor("decoder.0.weight", {DType::f32, {rows, columns}},
                {{{{0, 0}, {rows, columns}}, weight_.data()}});
    file.tensor("decoder.0.bias", {DType::bf16, {2}}, {{{{0}, {2}}, bias_.data()}});
    file.tensor("decoder.0.gain", {DType::f16, {2}}, {{{{0}, {2}}, gain_.data()}});
    file.tensor("count", {DType::i32, {}}, {{{}, &count_}});
    file.tensor("none", {DType::f32, {0, 4}}, {});
    if (in_background) file.write_in_background();
    file.publish();
  }

  TensorReader read() const { return {path_, "alpa-checkpoint", "1.0"}; }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "step-100.h5";
  std::vector<float> weight_;
  const std::vector<std::uint16_t> bias_{0x3f80, 0xc020};  // 1, -2.5
  const std::vector<std::uint16_t> gain_{0x3e00, 0x8001};  // 1.5, -2^-24
  const std::int32_t count_ = -7;
};

TEST_F(TensorFile, ListsNamesTypesAndAttributes) {
  write(path_);
  const TensorReader file = read();
  const std::map<std::string, TensorType> expected{{"count", {DType::i32, {}}},
                                                   {"decoder.0.bias", {DType::bf16, {2}}},
                                                   {"decoder.0.gain", {DType::f16, {2}}},
                                                   {"decoder.0.weight", {DType::f32, {rows, columns}}},
                                                   {"none", {DType::f32, {0, 4}}}};
  EXPECT_EQ(file.tensors(), expected);
  EXPECT_EQ(file.format_version(), "1.0");
  EXPECT_EQ(file.int64_attribute("step"), 100);
  EXPECT_EQ(file.double_attribute("loss_scale"), 1024.0);
  EXPECT_EQ(file.text_attribute("model"), "gpt");
  EXPECT_FALSE(file.has_attribute("epoch"));
}

TEST_F(TensorFile, GivesBackWholeTensors) {
  write(path_);
  const TensorReader file = read();
  std::vector<float> weight(weight_.size());
  file.read_all("decoder.0.weight", weight.data());
  EXPECT_EQ(weight, weight_);
  std::vector<std::uint16_t> bias(2);
  file.read_all("decoder.0.bias", bias.data());
  EXPECT_EQ(bias, bias_);
  std::vector<std::uint16_t> gain(2);
  file.read_all("decoder.0.gain", gain.data());
  EXPECT_EQ(gain, gain_);
  std::int32_t count = 0;
  file.read_all("count", &count);
  EXPECT_EQ(count, count_);
  file.read_all("none", nullptr);
  file.verify();
}

TEST_F(TensorFile, GivesBackAnyRegion) {
  write(path_);
  const TensorReader file = read();
  std::vector<float> part(6);
  // Across the two chunks.
  file.read("decoder.0.weight", {{299, 2497}, {2, 3}}, part.data());
  EXPECT_THAT(part, ElementsAre(749997, 749998, 749999, 752497, 752498, 752499));
  file.read("decoder.0.weight", {{5, 0}, {0, 2500}}, nullptr);
  std::int32_t count = 0;
  file.read("count", {}, &count);
  EXPECT_EQ(count, count_);
}

TEST_F(TensorFile, PutsATensorTogetherFromParts) {
  // The middle columns by themselves, the others with an overlap of one row; no part ends at a chunk's
  // border.
  std::vector<float> left, middle, right;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = weight_.begin() + r * columns;
    if (r <= 100) left.insert(left.end(), row, row + 700);
    middle.insert(middle.end(), row + 700, row + 1801);
    right.insert(right.end(), row + 1801, row + 2500);
  }
  const std::vector<float> rest(weight_.begin() + 100 * columns, weight_.end());
  TensorWriter file(path_, "alpa-checkpoint", "1.0");
  file.tensor("w", {DType::f32, {rows, columns}},
              {{{{0, 0}, {101, 700}}, left.data()},
               {{{0, 700}, {600, 1101}}, middle.data()},
               {{{100, 0}, {500, 2500}}, rest.data()},
               {{{0, 1801}, {600, 699}}, right.data()}});
  file.publish();
  std::vector<float> whole(weight_.size());
  read().read_all("w", whole.data());
  EXPECT_EQ(whole, weight_);
}

TEST_F(TensorFile, IsReadByTheToolsOfHdf5With16BitsAsNumbers) {
  write(path_);
  const std::string name = path_.string();
  EXPECT_THAT(run_command("h5dump -d /tensors/decoder.0.bias " + name).output, HasSubstr("(0): 1, -2.5"));
  EXPECT_THAT(run_command("h5dump -d /tensors/decoder.0.bias " + name).output, HasSubstr("/types/bfloat16"));
  EXPECT_THAT(run_command("h5dump -d /tensors/decoder.0.gain " + name).output,
              HasSubstr("(0): 1.5, -5.96046e-08"));
  EXPECT_THAT(run_command("h5dump -d /tensors/decoder.0.weight -s 599,2498 -c 1,2 " + name).output,
              HasSubstr("1.5e+06"));
  EXPECT_THAT(run_command("h5ls -r " + name).output,
              HasSubstr("/tensors/decoder.0.weight Dataset {600, 2500}"));
  EXPECT_EQ(run_command("h5dump -a /step " + name).status, 0);
}

TEST_F(TensorFile, IsTheSameOutsideProvenanceWrittenInTheBackgroundToo) {
  write(path_);
  for (const bool in_background : {false, true}) {
    const auto other = folder_.path() / "other.h5";
    write(other, "alpa-train plan.h5 --data a-much-longer-name.bin", in_background);
    EXPECT_EQ(
        run_command("h5diff --exclude-path /provenance " + path_.string() + " " + other.string()).status, 0);
    const std::string first = bytes_of_file(path_), second = bytes_of_file(other);
    const std::size_t data_end = 6'000'000;
    EXPECT_TRUE(first.substr(4096, data_end) == second.substr(4096, data_end))
        << "data stands where it stood";
  }
}

TEST_F(TensorFile, NamesTheTensorThatIsDamaged) {
  write(path_);
  const std::string bytes = bytes_of_file(path_);
  const float value = 1'234'567;  // row 493
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  ASSERT_NE(at, std::string::npos);
  const FlippedBit flipped(path_, static_cast<std::int64_t>(at), 3);
  const TensorReader file = read();
  EXPECT_THAT([&] { file.verify(); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr(path_.string()), HasSubstr("'/tensors/decoder.0.weight': damaged"))));
  float element = 0;
  EXPECT_THAT(
      [&] {
        file.read("decoder.0.weight", {{493, 0}, {1, 1}}, &element);
      },
      ThrowsMessage<Error>(HasSubstr("'/tensors/decoder.0.weight': cannot be read")));
  EXPECT_NO_THROW(file.read("decoder.0.weight", {{0, 0}, {1, 1}}, &element)) << "the other chunk is sound";
}

TEST_F(TensorFile, RefusesWhatHasNoNameOrDoesNotFit) {
  const float value = 1;
  const TensorType type{DType::f32, {2, 2}};
  const std::pair<std::function<void(TensorWriter&)>, const char*> cases[] = {
      {[&](TensorWriter& f) { f.tensor("a/b", type, {}); }, "'a/b' cannot name a tensor"},
      {[&](TensorWriter& f) { f.tensor("", type, {}); }, "'' cannot name a tensor"},
      {[&](TensorWriter& f) {
         f.tensor("w", type, {});
         f.tensor("w", type, {});
       },
       "tensor 'w' is described twice"},
      {[&](TensorWriter& f) {
         f.tensor("w", type, {{{{1, 0}, {2, 1}}, &value}});
       },
       "region 2x1 at offset 1x0 is not inside 2x2"},
      {[&](TensorWriter& f) {
         f.tensor("w", type, {{{}, &value}});
       },
       "is not inside 2x2"},
      {[&](TensorWriter& f) {
         f.tensor("w", type, {{{{0, 0}, {1, 1}}, &value}});
       },
       "no rank writes region 1x2 at offset 1x0"},
      {[&](TensorWriter& f) { f.tensor("w", type, {}); }, "no rank writes region 2x2 at offset 0x0"},
  };
  for (const auto& [describe, text] : cases) {
    TensorWriter file(path_, "alpa-checkpoint", "1.0");
    EXPECT_THAT(([&, describe = describe] {
                  describe(file);
                  file.publish();
                }),
                ThrowsMessage<Error>(HasSubstr(text)));
  }
  TensorWriter file(path_, "alpa-checkpoint", "1.0");
  file.tensor("w", type, {});
  EXPECT_THAT([&] { file.publish(); }, ThrowsMessage<Error>(HasSubstr("no rank writes")));
  EXPECT_THAT([&] { file.publish(); }, ThrowsMessage<Error>(HasSubstr("was given up after a failure")));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TensorFile, RefusesToReadWhatIsNotThere) {
  write(path_);
  const TensorReader file = read();
  float element = 0;
  EXPECT_THAT([&] { file.read_all("decoder.1.weight", &element); },
              ThrowsMessage<Error>(HasSubstr("there is no such tensor")));
  EXPECT_THAT(
      [&] {
        file.read("decoder.0.weight", {{600, 0}, {1, 1}}, &element);
      },
      ThrowsMessage<Error>(HasSubstr("is not inside 600x2500")));
  EXPECT_THAT([&] { TensorReader(path_, "alpa-plan", "1.0"); },
              ThrowsMessage<Error>(HasSubstr("expected an 'alpa-plan' file")));
}

TEST_F(TensorFile, OnAFullDiskLeavesTheOldFileOnly) {
  write(path_);
  const std::string before = bytes_of_file(path_);
  {
    const FileSizeLimit full(1'000'000);
    EXPECT_THAT([&] { write(path_); },
                Throws<Error>(AllOf(Property(&Error::kind, ErrorKind::run_time),
                                    Property(&Error::what, HasSubstr("free some space")))));
  }
  EXPECT_EQ(bytes_of_file(path_), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(TensorFile, IsReadInPiecesAsItIsWritten) {
  constexpr std::int64_t bytes = 40 << 20;
  std::int64_t most = 0, all = 0;
  TensorWriter file(path_, "alpa-checkpoint", "1.0");
  file.tensor("w", {DType::f32, {bytes / 4}},
              {{{{0}, {bytes / 4}}, {bytes / 4}, [&](std::int64_t, std::span<std::byte> into) {
                  most = std::max(most, std::ssize(into));
                  all += std::ssize(into);
                  std::ranges::fill(into, std::byte{1});
                }}});
  file.publish();
  EXPECT_EQ(all, bytes);
  EXPECT_LE(most, 4 << 20);
}

TEST_F(TensorFile, WrittenInTheBackgroundIsOfWhenItWasCopied) {
  const std::vector<float> before = weight_;
  TensorWriter file(path_, "alpa-checkpoint", "1.0");
  file.tensor("w", {DType::f32, {rows, columns}}, {{{{0, 0}, {rows, columns}}, weight_.data()}});
  file.write_in_background();
  std::fill(weight_.begin(), weight_.end(), -1.0f);
  file.publish();
  read().read_all("w", weight_.data());
  EXPECT_EQ(weight_, before);
}

TEST_F(TensorFile, WrittenInTheBackgroundToAFullDiskIsNotPublished) {
  write(path_);
  const std::string before = bytes_of_file(path_);
  {
    std::optional<FileSizeLimit> full;
    TensorWriter file(path_, "alpa-checkpoint", "1.0");
    file.tensor("w", {DType::f32, {rows, columns}},
                {{{{0, 0}, {rows, columns}}, {rows, columns}, [&](std::int64_t, std::span<std::byte> into) {
                    if (!full) full.emplace(100'000);  // once the file is laid out
                    std::ranges::fill(into, std::byte{1});
                  }}});
    file.write_in_background();
    EXPECT_THAT([&] { file.publish(); }, ThrowsMessage<Error>(HasSubstr("free some space")));
  }
  EXPECT_EQ(bytes_of_file(path_), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(TensorFile, GivenUpInTheBackgroundLeavesNothing) {
  {
    TensorWriter file(path_, "alpa-checkpoint", "1.0");
    file.tensor("w", {DType::f32, {rows, columns}}, {{{{0, 0}, {rows, columns}}, weight_.data()}});
    file.write_in_background();
    EXPECT_TRUE(file.is_in_place());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(TensorFile, IsReadPieceByPieceInOrder) {
  write(path_);
  const TensorReader file = read();
  std::vector<float> found;
  std::vector<std::string> boxes;
  const auto take = [&](const TensorRegion& box, std::span<const std::byte> values) {
    boxes.push_back(shape_text(box.count) + " at " + shape_text(box.offset));
    const auto* floats = reinterpret_cast<const float*>(values.data());
    found.insert(found.end(), floats, floats + values.size() / sizeof(float));
  };
  file.read("decoder.0.weight", {{100, 0}, {400, 2500}}, take);
  EXPECT_THAT(boxes, ElementsAre("200x2500 at 100x0", "200x2500 at 300x0"));
  EXPECT_TRUE(found == std::vector<float>(weight_.begin() + 100 * columns, weight_.begin() + 500 * columns));
  file.read("count", {}, take);
  EXPECT_EQ(boxes.back(), "scalar at scalar");
  file.read("none", {{0, 0}, {0, 4}}, take);
  EXPECT_EQ(boxes.size(), 3u);
  EXPECT_THAT([&] { file.read("nothing", {}, take); }, ThrowsMessage<Error>(HasSubstr("no such tensor")));
}

TEST_F(TensorFile, HoldsThousandsOfTensors) {
  TensorWriter file(path_, "alpa-checkpoint", "1.0");
  for (int i = 0; i < 2000; ++i)
    file.tensor("layer." + std::to_string(i), {DType::f32, {3}}, {{{{0}, {3}}, weight_.data() + i}});
  file.publish();
  const TensorReader reader = read();
  ASSERT_EQ(reader.tensors().size(), 2000u);
  std::vector<float> values(3);
  reader.read_all("layer.1999", values.data());
  EXPECT_THAT(values, ElementsAre(1999, 2000, 2001));
}

}  // namespace
}  // namespace alpa
