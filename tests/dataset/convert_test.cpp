#include "libalpa/dataset/convert.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/dataset/array_source.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/dataset/token_source.h"
#include "libalpa/h5/file.h"
#include "tests/dataset/small_sources.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Convert : public SmallSources {
 protected:
  void run(const ConvertSettings& settings) {
    convert(settings, {"as tested", "test", "", "", "", "", ""}, log_);
  }

  ConvertSettings settings_of(const std::filesystem::path& source) const {
    ConvertSettings settings;
    settings.sources = {source};
    settings.out = path("out.h5");
    return settings;
  }

  std::vector<std::int32_t> tokens(const std::string& name) const {
    const auto source = open_tokens(path(name).string());
    std::vector<std::int32_t> read(static_cast<std::size_t>(source->size()));
    source->read(0, read);
    return read;
  }

  /// Samples of two numbers, the first of which is the label.
  std::string pairs(int rows) const {
    std::string text;
    for (int i = 0; i < rows; ++i)
      text += std::to_string(i) + "," + std::to_string(2 * i) + "," + std::to_string(i) + "\n";
    return text;
  }

  std::vector<std::int64_t> labels(const std::string& name) const {
    return H5Reader(path(name), "alpa-data", "1.0").int64s("/labels");
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(Convert, StoresATextAsTheBytesThatItIs) {
  run(settings_of(write("poem.txt", "a rose\xff")));
  EXPECT_THAT(tokens("out.h5"), ElementsAre('a', ' ', 'r', 'o', 's', 'e', 255));
  const H5Reader file(path("out.h5"), "alpa-data", "1.0");
  EXPECT_EQ(file.int64_attribute("/tokens", "highest"), 255);
  EXPECT_EQ(file.text_attribute("/provenance", "command"), "as tested");
}

TEST_F(Convert, TakesCompressedTextsForTheirContent) {
  run(settings_of(write_compressed("poem.txt.gz", "a rose")));
  EXPECT_EQ(tokens("out.h5").size(), 6u);
}

TEST_F(Convert, KeepsTokensAndHoldsOutTheirEnd) {
  std::string bytes(1024, '\0');
  const std::int32_t header[] = {20240520, 1, 10};
  std::copy_n(reinterpret_cast<const char*>(header), sizeof header, bytes.begin());
  for (std::uint16_t i = 0; i < 10; ++i)
    bytes += {static_cast<char>(i), static_cast<char>(i == 9)};  // the last: 265
  ConvertSettings settings = settings_of(write("gpt2.bin", bytes));
  settings.hold_out = 0.3;
  run(settings);
  EXPECT_THAT(tokens("out.h5"), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(tokens("out-held-out.h5"), ElementsAre(7, 8, 265));
}

TEST_F(Convert, RefusesTokensThatNoVocabularyHas) {
  H5Writer file(path("wide.h5"), "any", "1.0");
  file.column("/tokens", std::vector<std::int64_t>{5, std::int64_t{1} << 40}, "1");
  file.publish();
  EXPECT_THAT([&] { run(settings_of(path("wide.h5"))); },
              ThrowsMessage<Error>(HasSubstr("token 1 is 2147483647")));
  EXPECT_THAT(files(), ElementsAre("wide.h5"));
}

TEST_F(Convert, LetsTrainingReadBytesOfImagesFromZeroToOne) {
  write("labels-idx1", idx({2}, std::string("\1\0", 2)));
  ConvertSettings settings =
      settings_of(write("images-idx3", idx({2, 1, 2}, std::string("\0\xff\x33\0", 4))));
  settings.order = RowOrder::kept;
  run(settings);
  const auto source = open_arrays(path("out.h5").string(),
                                  {{"images", {DType::f32, {1, 2, 1}}}, {"labels", {DType::i32, {}}, 2}});
  EXPECT_EQ(source->rows(), 2);
  float image[2];
  source->read(0, 0, std::as_writable_bytes(std::span(image)));
  EXPECT_THAT(image, ElementsAre(0, 1));
  source->read(0, 1, std::as_writable_bytes(std::span(image)));
  EXPECT_THAT(image, ElementsAre(0.2f, 0));
  EXPECT_THAT(labels("out.h5"), ElementsAre(1, 0));
}

TEST_F(Convert, ShiftsAndDividesNumbersAndGivesThemTheirShapeAndNames) {
  ConvertSettings settings = settings_of(write("two.csv", "0,16,1\n"));
  settings.shape = "1x2x1";
  settings.subtract = 8;
  settings.divide = 16;
  settings.image_name = "pixels";
  settings.label_name = "kind";
  run(settings);
  const H5Reader file(path("out.h5"), "alpa-data", "1.0");
  EXPECT_THAT(file.doubles("/pixels", {1, 1, 2, 1}), ElementsAre(-0.5, 0.5));
  EXPECT_THAT(file.int64s("/kind"), ElementsAre(1));
  EXPECT_EQ(file.double_attribute("/pixels", "divided_by"), 16);
  EXPECT_EQ(file.int64_attribute("/kind", "classes"), 2);
}

TEST_F(Convert, ShufflesSamplesAndHoldsOutTheSameEachTime) {
  ConvertSettings settings = settings_of(write("many.csv", pairs(1000)));
  settings.hold_out = 0.2;
  run(settings);
  const auto kept = labels("out.h5"), held_out = labels("out-held-out.h5");
  EXPECT_EQ(kept.size(), 800u);
  std::set<std::int64_t> all(kept.begin(), kept.end());
  all.insert(held_out.begin(), held_out.end());
  EXPECT_EQ(all.size(), 1000u) << "each is in one of them";
  EXPECT_FALSE(std::is_sorted(kept.begin(), kept.end()));
  // Half of the held-out share comes from each half of the source: 100, with a standard deviation of 6.3.
  EXPECT_NEAR(std::count_if(held_out.begin(), held_out.end(), [](std::int64_t label) { return label < 500; }),
              100, 32);
  const H5Reader file(path("out.h5"), "alpa-data", "1.0");
  const std::vector<double> numbers = file.doubles("/images", {800, 2});
  for (std::size_t i = 0; i < 800; ++i) EXPECT_EQ(numbers[2 * i], static_cast<double>(kept[i]));

  settings.out = path("again.h5");
  run(settings);
  EXPECT_EQ(labels("again.h5"), kept);
  settings.seed = 1;
  run(settings);
  EXPECT_NE(labels("again.h5"), kept);
}

TEST_F(Convert, KeepsNamesOfClasses) {
  write("pets/dog/a.pgm", "P5 1 1 255\na");
  write("pets/cat/a.pgm", "P5 1 1 255\na");
  run(settings_of(path("pets")));
  EXPECT_THAT(H5Reader(path("out.h5"), "alpa-data", "1.0").strings("/class_names"),
              ElementsAre("cat", "dog"));
}

TEST_F(Convert, LeavesTheOldFileWhereASampleIsBad) {
  write("out.h5", "old");
  write("pets/cat/a.pgm", "P5 1 1 255\na");
  write("pets/cat/b.pgm", "P5 1 1 255\n");
  EXPECT_THAT([&] { run(settings_of(path("pets"))); },
              ThrowsMessage<Error>(AllOf(HasSubstr("b.pgm' is truncated"), HasSubstr("while converting '"))));
  EXPECT_THAT(files(), ElementsAre("out.h5", "pets"));
  EXPECT_EQ(std::filesystem::file_size(path("out.h5")), 3u);
}

struct BadSettings {
  void (*change)(ConvertSettings&);
  ErrorKind kind;
  std::string says;
};

TEST_F(Convert, RefusesSettingsThatDoNotFit) {
  const auto source = write("two.csv", pairs(2));
  const BadSettings table[] = {
      {[](auto& s) { s.shape = "3"; }, ErrorKind::input, "has 2 numbers (2), which are not 3"},
      {[](auto& s) { s.shape = "2x"; }, ErrorKind::usage, "--shape '2x' is not a shape"},
      {[](auto& s) { s.shape = "0x2"; }, ErrorKind::usage, "is not a shape"},
      {[](auto& s) { s.shape = "2147483647x2147483647x3"; }, ErrorKind::usage,
       "'2147483647x2147483647x3' is too large: a sample has at most 1073741824 numbers"},
      {[](auto& s) { s.from = SourceKind::images, s.shape = "1x70000x3"; }, ErrorKind::usage,
       "'1x70000x3' is too large for an image"},
      {[](auto& s) { s.label_name = "images"; }, ErrorKind::usage, "cannot both be 'images'"},
      {[](auto& s) { s.image_name = "a/b"; }, ErrorKind::usage, "'a/b' cannot name a dataset"},
      {[](auto& s) { s.hold_out = 0.01; }, ErrorKind::input, "0.01 of 2 rows is none"},
      {[](auto& s) { s.from = SourceKind::text, s.divide = 2; }, ErrorKind::usage,
       "holds tokens, not samples"},
      {[](auto& s) { s.out = "/nowhere/out.h5"; }, ErrorKind::input, "'/nowhere/out.h5': No such file"},
      {[](auto& s) { s.sources = {"nowhere.csv"}; }, ErrorKind::input, "'nowhere.csv': No such file"},
  };
  for (const BadSettings& bad : table) {
    ConvertSettings settings = settings_of(source);
    bad.change(settings);
    try {
      run(settings);
      ADD_FAILURE() << bad.says;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.says));
      EXPECT_EQ(error.kind(), bad.kind) << bad.says;
    }
  }
  EXPECT_THAT(files(), ElementsAre("two.csv"));
}

TEST_F(Convert, DoesNotGuessWhatABinaryFileIs) {
  const auto source = write("photo.png", std::string("\x89PNG\0\0", 6));
  EXPECT_THAT([&] { run(settings_of(source)); },
              ThrowsMessage<Error>(HasSubstr("photo.png' is not text: it seems to be a PNG image")));
  ConvertSettings forced = settings_of(write_compressed("lines.gz", "{\"text\": \"a rose\"}\n"));
  forced.from = SourceKind::text;
  run(forced);
  EXPECT_EQ(tokens("out.h5").size(), 19u);
  EXPECT_THAT([&] { run(settings_of(write("empty.txt", ""))); },
              ThrowsMessage<Error>(HasSubstr("empty.txt' is empty")));
}

}  // namespace
}  // namespace alpa
