#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libalpa/base/log.h"
#include "libalpa/base/tensor_type.h"

namespace alpa {

/// What is known of labelled samples before the first is read.
struct SampleFacts {
  std::string description;  ///< for the log, e.g. "IDX images 'train-images-idx3-ubyte'"
  std::int64_t rows = 0;
  Shape shape;                           ///< of one sample
  bool is_bytes = false;                 ///< all numbers are whole, from 0 to 255
  std::int64_t classes = 0;              ///< labels are from 0 to classes - 1
  std::vector<std::string> class_names;  ///< by label; {} where they have none
};

/// Labelled samples of some file format, in any order. They are read one at a time: memory is bounded by one
/// sample, and by the names of files.
class SampleSource {
 public:
  explicit SampleSource(SampleFacts facts) : facts_(std::move(facts)) {}
  virtual ~SampleSource() = default;

  const SampleFacts& facts() const { return facts_; }

  /// Fills `numbers`, one for each element of facts().shape, and gives the label. Throws Error(input) that
  /// names file and place.
  virtual std::int32_t read(std::int64_t row, std::span<float> numbers) = 0;

 private:
  SampleFacts facts_;
};

/// Images (and their labels) as the MNIST family has them: IDX files of bytes, plain or gzip. Of N x height x
/// width bytes a sample is height x width x 1. Where `labels` is "", it is the images' name with
/// "labels-idx1" for "images-idx3". What has to be uncompressed goes to a scratch file in `scratch_folder`.
std::unique_ptr<SampleSource> open_idx_samples(const std::filesystem::path& images,
                                               const std::filesystem::path& labels,
                                               const std::filesystem::path& scratch_folder, Log& log);

/// That file of labels; "" where the images' name has no "images-idx3" (or "images.idx3").
std::filesystem::path idx_labels_beside(const std::filesystem::path& images);

/// Whether a file begins as an IDX file of bytes.
bool is_idx(std::string_view first_bytes);

/// Images (PNG, JPEG, binary PGM or PPM) in a folder with a subfolder for each class. The classes are the
/// subfolders' names, sorted. A sample is height x width x 1 or 3: `shape`, to which images of any size are
/// scaled and cut (fitted()), or where that is {} the shape of the first image, which all others must have.
std::unique_ptr<SampleSource> open_image_folder(const std::filesystem::path& folder, const Shape& shape);

/// Lines of numbers with commas between them, plain or gzip, one of them the label: the column that
/// `label_column` names, from 1 on, or the last (0). A first line without numbers is a header. The numbers
/// are kept in a scratch file in `scratch_folder`.
std::unique_ptr<SampleSource> open_csv_samples(const std::filesystem::path& path, std::int64_t label_column,
                                               const std::filesystem::path& scratch_folder, Log& log);

}  // namespace alpa
