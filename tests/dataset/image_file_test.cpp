#include "libalpa/dataset/image_file.h"

#include <gmock/gmock.h>
#include <png.h>
#include <turbojpeg.h>

#include <cmath>
#include <random>

#include "libalpa/base/error.h"
#include "tests/dataset/small_sources.h"

namespace alpa {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// The file that holds such pixels, of one of libpng's formats.
std::string png_of(png_uint_32 format, int height, int width, const void* pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t bytes = 1 << 16;
  std::string file(bytes, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels, 0, nullptr), 0)
      << image.message;
  return file.substr(0, bytes);
}

std::string jpeg_of(TJPF format, int subsampling, int height, int width,
                    const std::vector<unsigned char>& pixels, int flags = 0) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  EXPECT_EQ(
      tjCompress2(encoder, pixels.data(), width, 0, height, format, &data, &bytes, subsampling, 100, flags),
      0);
  std::string file(reinterpret_cast<const char*>(data), bytes);
  tjFree(data);
  tjDestroy(encoder);
  return file;
}

/// Levels that change little from pixel to pixel, as JPEG keeps them well.
std::vector<unsigned char> slopes(int height, int width, int channels) {
  std::vector<unsigned char> pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        pixels.push_back(static_cast<unsigned char>(40 + 4 * y + 3 * x + 20 * c));
  return pixels;
}

class ImageFile : public SmallSources {
 protected:
  Image image(const std::string& bytes) const { return read_image(write("image", bytes)); }

  static std::string says(const std::string& why) { return "image' " + why; }
};

TEST_F(ImageFile, OfPngHasThePixelsWritten) {
  const std::vector<unsigned char> colours = {1, 2, 3, 250, 251, 252}, greys = {7, 200};
  const Image colour = image(png_of(PNG_FORMAT_RGB, 1, 2, colours.data()));
  EXPECT_EQ(colour.shape, (Shape{1, 2, 3}));
  EXPECT_EQ(colour.pixels, colours);
  const Image grey = image(png_of(PNG_FORMAT_GRAY, 2, 1, greys.data()));
  EXPECT_EQ(grey.shape, (Shape{2, 1, 1}));
  EXPECT_EQ(grey.pixels, greys);
}

TEST_F(ImageFile, OfPngLaysTransparentPixelsOnBlack) {
  const std::vector<unsigned char> pixels = {90, 100, 110, 255, 90, 100, 110, 0};
  EXPECT_THAT(image(png_of(PNG_FORMAT_RGBA, 1, 2, pixels.data())).pixels, ElementsAre(90, 100, 110, 0, 0, 0));
}

TEST_F(ImageFile, OfJpegHasThePixelsWrittenButForItsLosses) {
  for (const int channels : {1, 3}) {
    const auto pixels = slopes(16, 24, channels);
    // Progressive ones too, and with colours at half the resolution.
    for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
      const Image read = image(channels == 1 ? jpeg_of(TJPF_GRAY, TJSAMP_GRAY, 16, 24, pixels, flags)
                                             : jpeg_of(TJPF_RGB, TJSAMP_420, 16, 24, pixels, flags));
      EXPECT_EQ(read.shape, (Shape{16, 24, channels}));
      for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_NEAR(read.pixels[i], pixels[i], 6) << i;
    }
  }
}

TEST_F(ImageFile, OfFourInksBecomesColours) {
  std::vector<unsigned char> inks;  // red, printed on half black
  for (int i = 0; i < 64; ++i) inks.insert(inks.end(), {255, 0, 0, 128});
  const Image read = image(jpeg_of(TJPF_CMYK, TJSAMP_444, 8, 8, inks));
  EXPECT_EQ(read.shape, (Shape{8, 8, 3}));
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(read.pixels[3 * i], 128, 2);
    EXPECT_NEAR(read.pixels[3 * i + 1], 0, 2);
  }
}

TEST_F(ImageFile, ThatIsDamagedIsRefused) {
  const auto pixels = slopes(32, 32, 3);
  const std::string png = png_of(PNG_FORMAT_RGB, 32, 32, pixels.data()),
                    jpeg = jpeg_of(TJPF_RGB, TJSAMP_444, 32, 32, pixels);
  std::string flipped = png;
  flipped[png.size() / 2] ^= 1;
  std::string huge = png;  // the extents stand at byte 16, and the sum of that chunk behind them
  huge[16] = '\x7f';
  const std::string not_png = says("is truncated or damaged, or not a PNG image"),
                    not_jpeg = says("is truncated or damaged, or not a JPEG image");
  const std::pair<std::string, std::string> cases[] = {
      {png.substr(0, png.size() / 2), not_png},
      {png.substr(0, 20), not_png},
      {flipped, not_png},
      {huge, not_png},
      {jpeg.substr(0, jpeg.size() / 2), not_jpeg},
      {jpeg.substr(0, 30), says("is truncated or damaged: it has no pixels")},
      {png_of(PNG_FORMAT_GRAY, 1, 70'000, std::vector<unsigned char>(70'000).data()),
       says("is an image of 1 x 70000 pixels, which is too large")},
      {"GIF89a", says("is not a PNG, JPEG, binary PGM or PPM image")},
      {"", says("is not a PNG, JPEG, binary PGM or PPM image")},
      {"P5 2 1 255\na", says("is truncated or damaged: its header promises 1x2x1 pixels from byte 11 on")},
      {"P5 2147483647 2147483647 255\na",
       says("is an image of 2147483647 x 2147483647 pixels, which is too large")},
      {"P5 2 1 65535\nabcd", says("has levels up to 65535")},
      {"P5 2 1", says("has a damaged header")},
      {"P5 99999999999 1 255\na", says("has a damaged header")},
      {"P5 # endless", says("has a damaged header")},
      {"P5 -2 1 255\nab", says("has a damaged header")}};
  for (const auto& [bytes, why] : cases)
    EXPECT_THAT(([&, bytes = bytes] { image(bytes); }), ThrowsMessage<Error>(HasSubstr(why))) << why;
}

TEST(FittedImage, OfTheSameShapeIsTheSame) {
  const Image image{{2, 3, 3}, slopes(2, 3, 3)};
  EXPECT_EQ(fitted(image, image.shape).pixels, image.pixels);
}

TEST(FittedImage, OfOneLevelKeepsItAtEverySize) {
  const Image image{{5, 7, 3}, std::vector<unsigned char>(105, 77)};
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{11, 4, 3}, Shape{1, 1, 3}, Shape{32, 32, 3}}) {
    const Image result = fitted(image, shape);
    EXPECT_EQ(result.shape, shape);
    EXPECT_THAT(result.pixels, Each(77));
  }
}

/// Height and width of what cameras, screens, scanners and collections of images give.
constexpr std::pair<int, int> kUsualSizes[] = {
    {1, 1},       {8, 8},      {16, 16},   {28, 28},   {32, 32},   {48, 48},    {64, 64},    {84, 84},
    {96, 96},     {100, 100},  {112, 112}, {120, 160}, {128, 128}, {150, 150},  {160, 160},  {176, 144},
    {178, 218},   {192, 192},  {200, 200}, {218, 178}, {224, 224}, {225, 225},  {227, 227},  {240, 320},
    {250, 250},   {256, 256},  {256, 384}, {272, 480}, {288, 352}, {299, 299},  {300, 200},  {300, 300},
    {300, 400},   {320, 240},  {320, 320}, {321, 481}, {331, 331}, {333, 500},  {334, 500},  {353, 500},
    {360, 640},   {366, 500},  {374, 500}, {375, 500}, {384, 256}, {384, 384},  {400, 500},  {400, 600},
    {416, 416},   {427, 640},  {428, 640}, {480, 480}, {480, 640}, {480, 854},  {481, 321},  {500, 333},
    {500, 334},   {500, 375},  {500, 500}, {512, 512}, {513, 513}, {533, 800},  {540, 960},  {576, 720},
    {600, 800},   {600, 600},  {608, 608}, {640, 427}, {640, 480}, {720, 1280}, {768, 1024}, {1024, 1024},
    {1080, 1920}, {1536, 2048}};

/// An image of one level stays of that level, whatever its size becomes.
void expect_to_be_fitted(int height, int width, const Shape& shape) {
  const Image image{{height, width, 1},
                    std::vector<unsigned char>(static_cast<std::size_t>(height) * width, 77)};
  const Image result = fitted(image, shape);
  ASSERT_EQ(result.shape, shape) << height << " x " << width;
  EXPECT_EQ(std::count(result.pixels.begin(), result.pixels.end(), 77), std::ssize(result.pixels))
      << height << " x " << width << " to " << shape_text(shape);
}

TEST(FittedImage, IsMadeOfImagesOfEveryUsualSize) {
  for (const auto& [height, width] : kUsualSizes)
    for (const Shape& shape : {Shape{224, 224, 1}, Shape{32, 48, 1}})
      expect_to_be_fitted(height, width, shape);
}

TEST(FittedImage, IsMadeOfTheThinnestAndTheLongest) {
  for (const auto& [height, width] : {std::pair(1, 65'535), {65'535, 1}, {2, 65'535}, {65'535, 3}})
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 65'535, 1}, Shape{65'535, 1, 1}, Shape{224, 224, 1}})
      expect_to_be_fitted(height, width, shape);
}

/// Mostly small, up to `most`.
int random_extent(std::mt19937& random, int most) {
  return 1 + static_cast<int>(std::pow(most, std::uniform_real_distribution<>(0, 1)(random))) % most;
}

TEST(FittedImage, IsMadeOfImagesOfAnySize) {
  std::mt19937 random(10);
  for (int i = 0; i < 3000; ++i) {
    const int height = random_extent(random, 3000), width = random_extent(random, 3000);
    expect_to_be_fitted(height, width, {random_extent(random, 500), random_extent(random, 500), 1});
  }
}

TEST(FittedImage, OfARampIsARamp) {
  // 50 levels from one column to the next of four, 25 from one to the next of eight.
  const Image ramp{{1, 4, 1}, {0, 50, 100, 150}};
  EXPECT_THAT(fitted(ramp, {2, 8, 1}).pixels, ElementsAreArray({0, 13, 38, 63, 88, 113, 138, 150,  //
                                                                0, 13, 38, 63, 88, 113, 138, 150}));
}

TEST(FittedImage, OfHalfTheSizeAveragesWithATriangle) {
  const int height = 8, width = 12;
  Image image{{height, width, 1}, {}};
  for (int i = 0; i < height * width; ++i)
    image.pixels.push_back(static_cast<unsigned char>(i * i * 7 % 256));
  const Image result = fitted(image, {height / 2, width / 2, 1});
  // Between pixels 2i and 2i + 1, 0.5 and 1.5 pixels from its neighbours on each side; edges go on as they
  // end.
  const double weights[4] = {0.125, 0.375, 0.375, 0.125};
  for (int y = 0; y < height / 2; ++y)
    for (int x = 0; x < width / 2; ++x) {
      double sum = 0;
      for (int v = 0; v < 4; ++v)
        for (int u = 0; u < 4; ++u)
          sum += weights[v] * weights[u] *
                 image.pixels[std::clamp(2 * y + v - 1, 0, height - 1) * width +
                              std::clamp(2 * x + u - 1, 0, width - 1)];
      // Rounded to whole levels.
      EXPECT_NEAR(result.pixels[y * width / 2 + x], sum, 0.51) << y << ' ' << x;
    }
}

TEST(FittedImage, LosesWhatJutsOutOnBothSides) {
  // Columns 0 to 5 of which the middle ones fit, and the same standing.
  const Image lying{{2, 6, 1}, {0, 10, 20, 30, 40, 50, 0, 10, 20, 30, 40, 50}};
  EXPECT_THAT(fitted(lying, {2, 2, 1}).pixels, ElementsAre(20, 30, 20, 30));
  const Image standing{{6, 2, 1}, {0, 0, 10, 10, 20, 20, 30, 30, 40, 40, 50, 50}};
  EXPECT_THAT(fitted(standing, {2, 2, 1}).pixels, ElementsAre(20, 20, 30, 30));
}

TEST(FittedImage, ChangesBetweenGreyAndColour) {
  EXPECT_THAT(fitted({{1, 2, 1}, {5, 250}}, {1, 2, 3}).pixels, ElementsAre(5, 5, 5, 250, 250, 250));
  EXPECT_THAT(fitted({{1, 3, 3}, {255, 0, 0, 0, 255, 0, 0, 0, 255}}, {1, 3, 1}).pixels,
              ElementsAre(76, 150, 29));
}

}  // namespace
}  // namespace alpa
