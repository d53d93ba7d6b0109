#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/dataset/image_file.h"
#include "libalpa/dataset/sample_source.h"

namespace alpa {
namespace {

namespace fs = std::filesystem;

Error refused(const fs::path& path, const std::string& why, const std::string& hint) {
  return Error(ErrorKind::input, fmt::format("'{}' {}", path.string(), why), hint);
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
      throw refused(folder / name, "is not a folder; a folder of images has one for each class",
                    "move it away");
    classes.push_back({name.string(), sorted_entries(folder / name)});
    if (classes.back().files.empty())
      throw refused(folder / name, "is empty, and a class has images", "remove the folder");
  }
  if (classes.empty())
    throw refused(folder, "is empty, expected a folder of images for each class in it", "check the path");
  return classes;
}

class ImageFolder final : public SampleSource {
 public:
  ImageFolder(SampleFacts facts, fs::path folder, std::vector<ClassOfImages> classes, bool fits)
      : SampleSource(std::move(facts)),
        folder_(std::move(folder)),
        classes_(std::move(classes)),
        fits_(fits) {
    std::int64_t row = 0;
    for (const ClassOfImages& one : classes_)
      first_rows_.push_back(std::exchange(row, row + std::ssize(one.files)));
  }

  std::int32_t read(std::int64_t row, std::span<float> numbers) override {
    const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
    const auto label = static_cast<std::size_t>(after - first_rows_.begin()) - 1;
    const fs::path path = folder_ / classes_[label].name / classes_[label].files[row - first_rows_[label]];
    Image image = read_image(path);
    if (fits_)
      image = fitted(std::move(image), facts().shape);
    else if (image.shape != facts().shape)
      throw refused(
          path,
          fmt::format("is an image of {} (height, width, channels), and '{}' is of {}",
                      shape_text(image.shape), (folder_ / classes_[0].name / classes_[0].files[0]).string(),
                      shape_text(facts().shape)),
          "--shape HEIGHTxWIDTHx3 (or x1) brings all to one shape");
    std::copy(image.pixels.begin(), image.pixels.end(), numbers.begin());
    return static_cast<std::int32_t>(label);
  }

 private:
  fs::path folder_;
  std::vector<ClassOfImages> classes_;
  std::vector<std::int64_t> first_rows_;  // of the classes
  bool fits_;
};

}  // namespace

std::unique_ptr<SampleSource> open_image_folder(const fs::path& folder, const Shape& shape) {
  try {
    std::vector<ClassOfImages> classes = classes_in(folder);
    SampleFacts facts;
    facts.description = fmt::format("images of '{}'", folder.string());
    facts.shape = shape.empty() ? read_image(folder / classes[0].name / classes[0].files[0]).shape : shape;
    facts.is_bytes = true;
    facts.classes = std::ssize(classes);
    for (const ClassOfImages& one : classes) {
      facts.rows += std::ssize(one.files);
      facts.class_names.push_back(one.name);
    }
    return std::make_unique<ImageFolder>(std::move(facts), folder, std::move(classes), !shape.empty());
  } catch (const fs::filesystem_error& error) {
    throw refused(error.path1(), "cannot be read: " + error.code().message(), "check the path");
  }
}

}  // namespace alpa
