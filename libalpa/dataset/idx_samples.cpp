#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/sample_source.h"

// IDX files: two bytes of zero, a code for the type (8: bytes), the number of dimensions, their extents (4
// bytes each, big endian), then the values.

namespace alpa {
namespace {

constexpr char bytes_code = 0x08;

/// An IDX file of bytes that holds what its header speaks of.
struct IdxFile {
  InputFile file;
  Shape extent;
  std::int64_t begin;  // of the values

  std::int64_t row_bytes() const { return element_count(extent) / extent[0]; }
};

IdxFile open_idx(InputFile file) {
  constexpr std::int64_t start_bytes = 4;
  unsigned char start[start_bytes] = {};
  if (file.bytes() < start_bytes)
    throw refused(file, fmt::format("has {} bytes, too few for an IDX header", file.bytes()));
  file.read(0, start, sizeof start);
  if (start[0] != 0 || start[1] != 0)
    throw refused(file, "does not begin as an IDX file (two bytes of zero)");
  if (start[2] != bytes_code)
    throw refused(
        file,
        fmt::format("has values of type {:#04x}, but bytes ({:#04x}) are what is read", start[2], bytes_code),
        "store them as bytes");
  const std::int64_t begin = start_bytes + 4 * std::int64_t{start[3]};
  if (start[3] == 0 || file.bytes() < begin)
    throw refused(file, fmt::format("is truncated or damaged: {} bytes do not hold {} extents", file.bytes(),
                                    start[3]));
  Shape extent;
  std::int64_t elements = 1;  // compared with what is there before anything is allocated
  for (int i = 0; i < start[3]; ++i) {
    unsigned char word[4] = {};
    file.read(start_bytes + 4 * i, word, sizeof word);
    extent.push_back(std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
    if (extent.back() == 0 || elements > file.bytes() / extent.back()) elements = -1;
    if (elements < 0) break;
    elements *= extent.back();
  }
  if (elements < 0 || begin + elements != file.bytes())
    throw refused(
        file,
        fmt::format(
            "is truncated or damaged: its header promises {} values from byte {} on, but it has {} bytes",
            elements < 0 ? "more" : fmt::format("{} ({})", elements, shape_text(extent)), begin,
            file.bytes()));
  return {std::move(file), std::move(extent), begin};
}

std::int64_t highest_of(const IdxFile& labels) {
  std::vector<unsigned char> piece(1 << 16);
  std::int64_t highest = 0;
  for (std::int64_t first = 0; first < labels.extent[0];) {
    const auto count = static_cast<std::size_t>(std::min(std::ssize(piece), labels.extent[0] - first));
    labels.file.read(labels.begin + first, piece.data(), count);
    highest = std::max<std::int64_t>(highest, *std::max_element(piece.data(), piece.data() + count));
    first += static_cast<std::int64_t>(count);
  }
  return highest;
}

class IdxSamples final : public SampleSource {
 public:
  IdxSamples(SampleFacts facts, IdxFile images, IdxFile labels)
      : SampleSource(std::move(facts)),
        images_(std::move(images)),
        labels_(std::move(labels)),
        bytes_(static_cast<std::size_t>(images_.row_bytes())) {}

  std::int32_t read(std::int64_t row, std::span<float> numbers) override {
    images_.file.read(images_.begin + row * images_.row_bytes(), bytes_.data(), bytes_.size());
    std::copy(bytes_.begin(), bytes_.end(), numbers.begin());
    unsigned char label = 0;
    labels_.file.read(labels_.begin + row, &label, 1);
    return label;
  }

 private:
  IdxFile images_, labels_;
  std::vector<unsigned char> bytes_;
};

}  // namespace

std::filesystem::path idx_labels_beside(const std::filesystem::path& images) {
  const std::string name = images.filename().string();
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"images-idx3", "labels-idx1"}, {"images.idx3", "labels.idx1"}})
    if (const std::size_t at = name.find(from); at != std::string::npos)
      return images.parent_path() / std::string(name).replace(at, from.size(), to);
  return {};
}

bool is_idx(std::string_view first_bytes) {
  return first_bytes.size() >= 4 && first_bytes.starts_with(std::string_view("\0\0\x08", 3)) &&
         first_bytes[3] > 0 && first_bytes[3] < 8;
}

std::unique_ptr<SampleSource> open_idx_samples(const std::filesystem::path& images_path,
                                               const std::filesystem::path& labels_path,
                                               const std::filesystem::path& scratch_folder, Log& log) {
  IdxFile images = open_idx(open_uncompressed(images_path, scratch_folder, log));
  const auto its_labels = labels_path.empty() ? idx_labels_beside(images_path) : labels_path;
  if (its_labels.empty())
    throw refused(images.file, "has no labels, and its name does not say which file has", "--labels FILE");
  IdxFile labels = open_idx(open_uncompressed(its_labels, scratch_folder, log));
  if (images.extent.size() < 2)
    throw refused(images.file, "has one dimension, as labels have, and images have three",
                  "give the images' file");
  if (labels.extent.size() != 1 || labels.extent[0] != images.extent[0])
    throw refused(labels.file,
                  fmt::format("holds {}, and the {} samples of '{}' have one label each",
                              shape_text(labels.extent), images.extent[0], images_path.string()),
                  "--labels FILE with the labels of these images");
  SampleFacts facts;
  facts.description = fmt::format("IDX images '{}'", images_path.string());
  facts.rows = images.extent[0];
  facts.shape = Shape(images.extent.begin() + 1, images.extent.end());
  if (facts.shape.size() == 2) facts.shape.push_back(1);
  facts.is_bytes = true;
  facts.classes = highest_of(labels) + 1;
  return std::make_unique<IdxSamples>(std::move(facts), std::move(images), std::move(labels));
}

}  // namespace alpa
