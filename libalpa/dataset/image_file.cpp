#include "libalpa/dataset/image_file.h"

#include <fmt/core.h>
#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>

#include "libalpa/base/error.h"
#include "libalpa/dataset/input_file.h"

namespace alpa {
namespace {

// Of the file and of its pixels: beyond what cameras and scanners give, and what an int counts.
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

Error damaged(const InputFile& file, const std::string& kind, const std::string& why) {
  return refused(file, fmt::format("is truncated or damaged, or not a {} image: {}", kind, why),
                 "copy or make it again, or move it away");
}

Image blank(const InputFile& file, std::int64_t height, std::int64_t width, std::int64_t channels) {
  if (height < 1 || width < 1)
    throw refused(file, "is truncated or damaged: it has no pixels",
                  "copy or make it again, or move it away");
  if (std::max(height, width) > most_image_extent || 4 * height * width > most_bytes)
    throw refused(file, fmt::format("is an image of {} x {} pixels, which is too large", height, width),
                  "make it smaller");
  Image image{{height, width, channels}, {}};
  image.pixels.resize(static_cast<std::size_t>(element_count(image.shape)));
  return image;
}

Image png(const InputFile& file, std::string_view bytes) {
  png_image decoder = {};
  decoder.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> freed(&decoder, png_image_free);
  if (png_image_begin_read_from_memory(&decoder, bytes.data(), bytes.size()) == 0)
    throw damaged(file, "PNG", decoder.message);
  decoder.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const bool is_colour = (decoder.format & PNG_FORMAT_FLAG_COLOR) != 0;
  decoder.format = is_colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  Image image = blank(file, decoder.height, decoder.width, is_colour ? 3 : 1);
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&decoder, &black, image.pixels.data(), 0, nullptr) == 0)
    throw damaged(file, "PNG", decoder.message);
  return image;
}

Image jpeg(const InputFile& file, std::string_view bytes) {
  const std::unique_ptr<void, decltype(&tjDestroy)> decoder(tjInitDecompress(), tjDestroy);
  if (!decoder) throw Error(ErrorKind::run_time, "no memory to decode JPEG images", "free some");
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colours) != 0)
    throw damaged(file, "JPEG", tjGetErrorStr2(decoder.get()));
  const bool is_inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
  const TJPF format = colours == TJCS_GRAY ? TJPF_GRAY : is_inks ? TJPF_CMYK : TJPF_RGB;
  Image image = blank(file, height, width, tjPixelSize[format]);
  // A truncated file is a warning, and some progressive ones of a few bytes would take hours.
  if (tjDecompress2(decoder.get(), data, bytes.size(), image.pixels.data(), width, 0, height, format,
                    TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
    throw damaged(file, "JPEG", tjGetErrorStr2(decoder.get()));
  if (is_inks) {  // as Adobe's programs write them: 255 is no ink
    const auto pixels = static_cast<std::size_t>(image.shape[0] * image.shape[1]);
    for (std::size_t i = 0; i < pixels; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        image.pixels[3 * i + c] =
            static_cast<unsigned char>((image.pixels[4 * i + c] * image.pixels[4 * i + 3] + 127) / 255);
    image.shape[2] = 3;
    image.pixels.resize(3 * pixels);
  }
  return image;
}

bool is_space(char c) { return std::string_view(" \t\r\n\v\f").find(c) != std::string_view::npos; }

// The number that begins after white space and comments from `at` on, -1 where there is none.
std::int64_t next_number(std::string_view text, std::size_t& at) {
  for (; at < text.size() && (is_space(text[at]) || text[at] == '#'); ++at)
    if (text[at] == '#') at = std::min(text.find('\n', at), text.size() - 1);
  std::int32_t number = -1;
  const auto [end, fault] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  at = static_cast<std::size_t>(end - text.data());
  return fault == std::errc() ? number : -1;
}

// Netpbm: "P5" (grey) or "P6" (colour), width, height and the highest level as decimal numbers with white
// space or comments between them, one more white space, then the pixels.
Image netpbm(const InputFile& file, std::string_view bytes) {
  std::size_t at = 2;
  const std::int64_t width = next_number(bytes, at), height = next_number(bytes, at),
                     levels = next_number(bytes, at);
  if (width < 1 || height < 1 || levels < 1 || at >= bytes.size() || !is_space(bytes[at]))
    throw refused(file, fmt::format("has a damaged header: byte {} is not what it should be", at),
                  "copy or make it again");
  if (levels != 255)
    throw refused(file, fmt::format("has levels up to {}, but 255 is the most that is read", levels),
                  "convert it, e.g. mogrify -depth 8");
  Image image = blank(file, height, width, bytes[1] == '6' ? 3 : 1);
  const std::string_view pixels = bytes.substr(at + 1);
  if (pixels.size() != image.pixels.size())
    throw refused(
        file,
        fmt::format(
            "is truncated or damaged: its header promises {} pixels from byte {} on, but it has {} bytes",
            shape_text(image.shape), at + 1, bytes.size()),
        "copy or make it again; a file holds one image");
  std::copy(pixels.begin(), pixels.end(), image.pixels.begin());
  return image;
}

}  // namespace

Image read_image(const std::filesystem::path& path) {
  const InputFile file(path);
  if (file.bytes() > most_bytes)
    throw refused(file, "is too large for an image: it has more than 1 GiB", "move it away");
  std::string bytes(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(0, bytes.data(), bytes.size());
  if (bytes.starts_with("\x89PNG")) return png(file, bytes);
  if (bytes.starts_with("\xff\xd8")) return jpeg(file, bytes);
  if (bytes.starts_with("P5") || bytes.starts_with("P6")) return netpbm(file, bytes);
  throw refused(file, "is not a PNG, JPEG, binary PGM or PPM image",
                "convert it, e.g. mogrify -format png, or move it away");
}

}  // namespace alpa
