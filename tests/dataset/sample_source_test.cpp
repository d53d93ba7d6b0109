#include "libalpa/dataset/sample_source.h"

#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "tests/dataset/small_sources.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Sample {
  std::vector<float> numbers;
  std::int32_t label;
};

Sample sample(SampleSource& source, std::int64_t row) {
  Sample read{std::vector<float>(static_cast<std::size_t>(element_count(source.facts().shape))), 0};
  read.label = source.read(row, read.numbers);
  return read;
}

struct Bad {
  std::string bytes;
  std::string says;
};

class IdxSamples : public SmallSources {
 protected:
  std::unique_ptr<SampleSource> open(const std::filesystem::path& images,
                                     const std::filesystem::path& labels = {}) {
    return open_idx_samples(images, labels, folder(), log_);
  }
  const std::string images_ = idx({2, 1, 3}, std::string("\x00\x01\x02\xff\x04\x05", 6)),
                    labels_ = idx({2}, std::string("\x07\x03", 2));
};

TEST_F(IdxSamples, HaveTheirLabelsBesideThem) {
  write("labels-idx1-ubyte", labels_);
  const auto source = open(write("images-idx3-ubyte", images_));
  EXPECT_EQ(source->facts().rows, 2);
  EXPECT_EQ(source->facts().shape, (Shape{1, 3, 1}));
  EXPECT_EQ(source->facts().classes, 8);
  EXPECT_TRUE(source->facts().is_bytes);
  EXPECT_THAT(sample(*source, 1).numbers, ElementsAre(255, 4, 5));
  EXPECT_EQ(sample(*source, 1).label, 3);
  EXPECT_THAT(sample(*source, 0).numbers, ElementsAre(0, 1, 2));
}

TEST_F(IdxSamples, AreUncompressedWhereTheyHaveToBe) {
  const auto source = open(write_compressed("a.gz", images_), write_compressed("b.gz", labels_));
  EXPECT_THAT(sample(*source, 1).numbers, ElementsAre(255, 4, 5));
  EXPECT_THAT(std::distance(std::filesystem::directory_iterator(folder()), {}), 2)
      << "scratch files have names";
}

TEST_F(IdxSamples, ThatDoNotHoldWhatTheirHeaderSaysAreRefused) {
  const auto labels = write("labels", labels_);
  const std::string huge =
      idx({0xffffffff, 0xffffffff, 0xffffffff}, "");  // 2^96 values: nothing is allocated
  for (const Bad& bad :
       {Bad{"", "has 0 bytes"}, Bad{"PNG..", "does not begin as an IDX file"},
        Bad{std::string("\0\0\x0d\1\0\0\0\0", 8), "values of type 0x0d"},
        Bad{std::string("\0\0\x08\3\0\0\0\2", 8), "8 bytes do not hold 3 extents"},
        Bad{images_.substr(0, images_.size() - 1), "6 (2x1x3) values from byte 16 on, but it has 21"},
        Bad{images_ + "x", "but it has 23 bytes"}, Bad{huge, "promises more values"},
        Bad{idx({0, 1, 3}, ""), "is truncated or damaged"}, Bad{labels_, "has one dimension"}})
    EXPECT_THAT([&] { open(write("images", bad.bytes), labels); }, ThrowsMessage<Error>(HasSubstr(bad.says)))
        << bad.says;
}

TEST_F(IdxSamples, NeedOneLabelEach) {
  const auto images = write("images-idx3-ubyte", images_);
  EXPECT_THAT([&] { open(images, write("labels", idx({3}, "abc"))); },
              ThrowsMessage<Error>(HasSubstr("holds 3, and the 2 samples of")));
  EXPECT_THAT([&] { open(images); }, ThrowsMessage<Error>(HasSubstr("labels-idx1-ubyte': No such file")));
  EXPECT_THAT([&] { open(write("pictures", images_)); }, ThrowsMessage<Error>(HasSubstr("--labels FILE")));
}

TEST_F(IdxSamples, ThatAreCompressedAndCutAreRefused) {
  const auto whole = write_compressed("images.gz", images_);
  std::filesystem::resize_file(whole, std::filesystem::file_size(whole) - 10);
  EXPECT_THAT([&] { open(whole, write("labels", labels_)); },
              ThrowsMessage<Error>(AllOf(HasSubstr("images.gz' is truncated or damaged"))));
}

class ImageFolder : public SmallSources {
 protected:
  std::unique_ptr<SampleSource> open(const Shape& shape = {}) {
    return open_image_folder(path("pets"), shape);
  }
};

TEST_F(ImageFolder, HasAClassForEachSubfolder) {
  write("pets/dog/b.pgm", "P5 2 1 255\nef");
  write("pets/dog/a.pgm", "P5\n# by hand\n2\t1\n255\ncd");
  write("pets/cat/x.pgm", "P5 2 1 255\nab");
  const auto source = open();
  EXPECT_THAT(source->facts().class_names, ElementsAre("cat", "dog"));
  EXPECT_EQ(source->facts().rows, 3);
  EXPECT_EQ(source->facts().shape, (Shape{1, 2, 1}));
  EXPECT_EQ(sample(*source, 0).label, 0);
  EXPECT_THAT(sample(*source, 1).numbers, ElementsAre('c', 'd'));
  EXPECT_THAT(sample(*source, 2).numbers, ElementsAre('e', 'f'));
  EXPECT_EQ(sample(*source, 2).label, 1);
}

TEST_F(ImageFolder, HoldsColourImagesWithTheirChannelsLast) {
  write("pets/cat/x.ppm", "P6 1 2 255\nabcdef");
  const auto source = open();
  EXPECT_EQ(source->facts().shape, (Shape{2, 1, 3}));
  EXPECT_THAT(sample(*source, 0).numbers, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST_F(ImageFolder, WithImagesOfTwoSizesNamesTheSecond) {
  write("pets/cat/x.pgm", "P5 2 1 255\nab");
  write("pets/cat/y.pgm", "P5 1 2 255\nab");
  const auto source = open();
  EXPECT_THAT([&] { sample(*source, 1); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("cat/y.pgm' is an image of 2x1x1"), HasSubstr("x.pgm' is of 1x2x1"))));
}

TEST_F(ImageFolder, BringsImagesToTheShapeAskedFor) {
  write("pets/cat/x.ppm", "P6 1 1 255\nabc");
  write("pets/dog/y.pgm", "P5 3 1 255\nabc");
  const auto source = open({1, 1, 3});
  EXPECT_EQ(source->facts().shape, (Shape{1, 1, 3}));
  EXPECT_THAT(sample(*source, 0).numbers, ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(sample(*source, 1).numbers, ElementsAre('b', 'b', 'b'));
}

TEST_F(ImageFolder, OfAnotherFormIsRefused) {
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("pets' cannot be read: No such file")));
  std::filesystem::create_directories(path("pets"));
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("pets' is empty")));
  std::filesystem::create_directories(path("pets/cat"));
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("cat' is empty, and a class has images")));
  write("pets/a.pgm", "P5 2 1 255\nab");
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("a.pgm' is not a folder")));
}

class CsvSamples : public SmallSources {
 protected:
  std::unique_ptr<SampleSource> open(const std::string& text, std::int64_t label_column = 0) {
    return open_csv_samples(write("data.csv", text), label_column, folder(), log_);
  }
};

TEST_F(CsvSamples, HaveTheirLabelInTheLastColumnOrTheOneNamed) {
  const auto source = open("1, 2.5,3\n-4e1,5,6.0\r\n\n");
  EXPECT_EQ(source->facts().rows, 2);
  EXPECT_EQ(source->facts().shape, Shape{2});
  EXPECT_EQ(source->facts().classes, 7);
  EXPECT_THAT(sample(*source, 1).numbers, ElementsAre(-40, 5));
  EXPECT_EQ(sample(*source, 1).label, 6);
  const auto first = open("1,2,3\n4,5,6", 1);
  EXPECT_THAT(sample(*first, 0).numbers, ElementsAre(2, 3));
  EXPECT_EQ(sample(*first, 1).label, 4);
}

TEST_F(CsvSamples, MayHaveAHeaderAndBeCompressed) {
  const auto source =
      open_csv_samples(write_compressed("data.csv.gz", "width,height,kind\n1,2,0\n"), 0, folder(), log_);
  EXPECT_EQ(source->facts().rows, 1);
  EXPECT_THAT(sample(*source, 0).numbers, ElementsAre(1, 2));
}

TEST_F(CsvSamples, OfManyLinesAreAllThere) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i) + ",0.25," + std::to_string(i % 3) + "\n";
  const auto source = open(text);
  EXPECT_EQ(source->facts().rows, 50'000);
  for (const int row : {0, 9'999, 49'999}) {
    EXPECT_THAT(sample(*source, row).numbers, ElementsAre(static_cast<float>(row), 0.25f));
    EXPECT_EQ(sample(*source, row).label, row % 3);
  }
}

TEST_F(CsvSamples, ThatAreRaggedOrNoNumbersNameTheLine) {
  for (const Bad& bad : {Bad{"1,2,3\n1,2\n", "line 2: 2 columns, and the lines before it have 3"},
                         Bad{"1,2,3\n\n1,2,3,4\n", "line 3: 4 columns"},
                         Bad{"a,b,c\n1,x,3\n", "line 2: column 2: 'x' is not a number"},
                         Bad{"1,2,3\n1,,3\n", "line 2: column 2: '' is not a number"},
                         Bad{"1,nan,3\n", "column 2: 'nan' is not a number"},
                         Bad{"1,1e39,3\n", "column 2: '1e39' is not a number"},
                         Bad{"1,2,0.5\n", "line 1: column 3: the label '0.5' is not a whole number"},
                         Bad{"1,2,-1\n", "the label '-1'"}, Bad{"1,2,2147483647\n", "the label '2147483647'"},
                         Bad{"1;2;3\n4;5;6\n", "line 2: 1 columns"}, Bad{"7\n", "line 1: 1 columns"}})
    EXPECT_THAT([&] { open(bad.bytes); },
                ThrowsMessage<Error>(AllOf(HasSubstr("data.csv', "), HasSubstr(bad.says))))
        << bad.says;
  EXPECT_THAT([&] { open("1,2\n", 3); }, ThrowsMessage<Error>(HasSubstr("a label in column 3")));
}

TEST_F(CsvSamples, WithALineWithoutEndAreRefusedBeforeMemoryIsFull) {
  EXPECT_THAT([&] { open(std::string(40 << 20, '1')); },
              ThrowsMessage<Error>(HasSubstr("line 1: longer than 16 MiB")));
}

}  // namespace
}  // namespace alpa
