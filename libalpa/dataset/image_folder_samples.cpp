#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/dataset/input_file.h"
#include "libalpa/dataset/sample_source.h"

// Binary netpbm images: "P5" (grey) or "P6" (colour), width, height and the highest level as decimal numbers
// with white space or comments between them, one more white space, then the pixels, row by row.

namespace alpa {
namespace {

namespace fs = std::filesystem;

Error refused(const fs::path& path, const std::string& why, const std::string& hint) {
  return Error(ErrorKind::input, fmt::format("'{}' {}", path.string(), why), hint);
}

struct Header {
  Shape shape;         // height, width, channels
  std::int64_t begin;  // of the pixels
};

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

Header header_of(const InputFile& file) {
  constexpr std::int64_t most_header_bytes = 4096;
  std::string text(static_cast<std::size_t>(std::min(file.bytes(), most_header_bytes)), '\0');
  file.read(0, text.data(), text.size());
  const bool is_colour = text.starts_with("P6");
  if (!is_colour && !text.starts_with("P5"))
    throw refused(file.path(), "is no binary PGM or PPM image", "convert it, e.g. mogrify -format ppm *.png");
  std::size_t at = 2;
  const std::int64_t width = next_number(text, at), height = next_number(text, at),
                     levels = next_number(text, at);
  if (width < 1 || height < 1 || levels < 1 || at >= text.size() || !is_space(text[at]))
    throw refused(file.path(), fmt::format("has no whole header: byte {} is not as it should be", at),
                  "copy or make it again");
  if (levels != 255)
    throw refused(file.path(), fmt::format("has levels up to {}, and 255 is what is read", levels),
                  "convert it, e.g. mogrify -depth 8");
  const Header header{{height, width, is_colour ? 3 : 1}, static_cast<std::int64_t>(at) + 1};
  // Extents have 31 bits each: the product of all fits 64.
  if (header.begin + element_count(header.shape) != file.bytes())
    throw refused(
        file.path(),
        fmt::format(
            "is truncated or damaged: its header speaks of {} pixels from byte {} on, and it has {} bytes",
            shape_text(header.shape), header.begin, file.bytes()),
        "copy or make it again; a file holds one image");
  return header;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder))
    if (!entry.path().filename().string().starts_with('.')) entries.push_back(entry.path().filename());
  std::sort(entries.begin(), entries.end());
  return entries;
}

struct ClassOfImages {
  std::string name;
  std::vector<fs::path> files;  // without the folder
};

std::vector<ClassOfImages> classes_in(const fs::path& folder) {
  std::vector<ClassOfImages> classes;
  for (const fs::path& name : sorted_entries(folder)) {
    if (!fs::is_directory(folder / name))
      throw refused(folder / name, "is no folder, and a folder of images has one for each class",
                    "move it away");
    classes.push_back({name.string(), sorted_entries(folder / name)});
    if (classes.back().files.empty())
      throw refused(folder / name, "is empty, and a class has images", "remove the folder");
  }
  if (classes.empty())
    throw refused(folder, "is empty, and a folder of images has one for each class", "check the path");
  return classes;
}

class ImageFolder final : public SampleSource {
 public:
  ImageFolder(SampleFacts facts, fs::path folder, std::vector<ClassOfImages> classes)
      : SampleSource(std::move(facts)), folder_(std::move(folder)), classes_(std::move(classes)) {
    std::int64_t row = 0;
    for (const ClassOfImages& one : classes_)
      first_rows_.push_back(std::exchange(row, row + std::ssize(one.files)));
    bytes_.resize(static_cast<std::size_t>(element_count(this->facts().shape)));
  }

  std::int32_t read(std::int64_t row, std::span<float> numbers) override {
    const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
    const auto label = static_cast<std::size_t>(after - first_rows_.begin()) - 1;
    const InputFile file(folder_ / classes_[label].name /
                         classes_[label].files[static_cast<std::size_t>(row - first_rows_[label])]);
    const Header header = header_of(file);
    if (header.shape != facts().shape)
      throw refused(
          file.path(),
          fmt::format("is an image of {} (height, width, channels), and '{}' is of {}",
                      shape_text(header.shape), (folder_ / classes_[0].name / classes_[0].files[0]).string(),
                      shape_text(facts().shape)),
          "bring all to one size, e.g. mogrify -resize 32x32! -type TrueColor");
    file.read(header.begin, bytes_.data(), bytes_.size());
    std::copy(bytes_.begin(), bytes_.end(), numbers.begin());
    return static_cast<std::int32_t>(label);
  }

 private:
  fs::path folder_;
  std::vector<ClassOfImages> classes_;
  std::vector<std::int64_t> first_rows_;  // of the classes
  std::vector<unsigned char> bytes_;
};

}  // namespace

std::unique_ptr<SampleSource> open_image_folder(const fs::path& folder) {
  try {
    std::vector<ClassOfImages> classes = classes_in(folder);
    SampleFacts facts;
    facts.description = fmt::format("images of '{}'", folder.string());
    facts.shape = header_of(InputFile(folder / classes[0].name / classes[0].files[0])).shape;
    facts.is_bytes = true;
    facts.classes = std::ssize(classes);
    for (const ClassOfImages& one : classes) {
      facts.rows += std::ssize(one.files);
      facts.class_names.push_back(one.name);
    }
    return std::make_unique<ImageFolder>(std::move(facts), folder, std::move(classes));
  } catch (const fs::filesystem_error& error) {
    throw refused(error.path1(), "cannot be read: " + error.code().message(), "check the path");
  }
}

}  // namespace alpa
