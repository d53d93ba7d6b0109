#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "libalpa/base/byte_progress.h"
#include "libalpa/base/error.h"
#include "libalpa/base/fingerprint.h"
#include "libalpa/base/permutation.h"
#include "libalpa/base/philox.h"
#include "libalpa/base/units.h"
#include "libalpa/dataset/converted_file.h"
#include "libalpa/h5/rows_writer.h"

namespace alpa {
namespace {

/// The shape that samples are stored in: the elements stay as they lie.
Shape stored_shape(const SampleFacts& facts, const ConvertSettings& settings) {
  const Shape shape = wanted_shape(settings);
  if (shape.empty()) return facts.shape;
  if (element_count(shape) != element_count(facts.shape))
    throw Error(ErrorKind::input,
                fmt::format("a sample of {} has {} numbers ({}), which are not {}", facts.description,
                            element_count(facts.shape), shape_text(facts.shape), shape_text(shape)),
                "a --shape of as many, e.g. 8x8x1 (height, width, channels)");
  return shape;
}

void check_names(const ConvertSettings& settings) {
  for (const std::string& name : {settings.image_name, settings.label_name})
    if (name.empty() || name == "." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos || name == "class_names" || name == "provenance")
      throw Error(ErrorKind::usage, fmt::format("'{}' cannot name a dataset", name), "a word, e.g. images");
  if (settings.image_name == settings.label_name)
    throw Error(ErrorKind::usage, fmt::format("samples and labels cannot both be '{}'", settings.image_name),
                "--image NAME --label NAME");
}

/// A file of samples and labels.
class SamplesFile {
 public:
  SamplesFile(const std::filesystem::path& path, std::int64_t rows, const SampleFacts& facts,
              const ConvertSettings& settings, const Provenance& provenance)
      : file_(path, converted_format, converted_version),
        subtract_(settings.subtract),
        divide_(settings.divide == 0 ? 1 : settings.divide),
        keeps_bytes_(facts.is_bytes && settings.subtract == 0 && settings.divide == 0) {
    Shape extent = stored_shape(facts, settings);
    extent.insert(extent.begin(), rows);
    const std::string images = "/" + settings.image_name, labels = "/" + settings.label_name;
    images_ = file_.declare(images, keeps_bytes_ ? RowsType::u8 : RowsType::f32, extent);
    labels_ = file_.declare(labels, RowsType::i32, {rows});
    if (!keeps_bytes_) {
      file_.attribute(images, "subtracted", subtract_);
      file_.attribute(images, "divided_by", divide_);
    }
    file_.attribute(labels, "classes", facts.classes);
    if (!facts.class_names.empty()) file_.strings("/class_names", facts.class_names);
    file_.provenance(provenance);
    bytes_.resize(static_cast<std::size_t>(element_count(facts.shape)));
  }

  /// Changes the numbers.
  void append(std::span<float> numbers, std::int32_t label) {
    if (keeps_bytes_) {
      std::copy(numbers.begin(), numbers.end(), bytes_.begin());
      file_.append(images_, 1, bytes_.data());
    } else {
      for (float& number : numbers) number = static_cast<float>((number - subtract_) / divide_);
      file_.append(images_, 1, numbers.data());
    }
    file_.append(labels_, 1, &label);
  }

  void publish() { file_.publish(); }

 private:
  H5RowsWriter file_;
  double subtract_, divide_;
  bool keeps_bytes_;
  int images_ = 0, labels_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

Shape wanted_shape(const ConvertSettings& settings) {
  constexpr std::int64_t most_numbers = std::int64_t{1} << 30;  // of a sample, as of an image that is read
  Shape shape;
  std::int64_t numbers = 1;
  const char *at = settings.shape.data(), *const end = at + settings.shape.size();
  for (bool more = at < end; more; more = at < end && *at++ == 'x') {
    std::int32_t extent = 0;
    const auto [stop, fault] = std::from_chars(at, end, extent);
    if (fault != std::errc() || extent < 1 || (stop < end && (*stop != 'x' || stop + 1 == end)))
      throw Error(ErrorKind::usage, fmt::format("--shape '{}' is not a shape", settings.shape),
                  "e.g. --shape 8x8x1");
    if (numbers > most_numbers / extent)
      throw Error(ErrorKind::usage,
                  fmt::format("--shape '{}' is too large: a sample has at most {} numbers", settings.shape,
                              most_numbers),
                  "e.g. --shape 224x224x3");
    numbers *= extent;
    shape.push_back(extent);
    at = stop;
  }
  return shape;
}

void convert_samples(SampleSource& source, const ConvertSettings& settings, const Provenance& provenance,
                     Log& log) {
  check_names(settings);
  const SampleFacts& facts = source.facts();
  const std::int64_t held_out = held_out_rows(settings, facts.rows), kept = facts.rows - held_out;
  SamplesFile training(settings.out, kept, facts, settings, provenance);
  std::optional<SamplesFile> evaluation;
  if (held_out > 0) evaluation.emplace(hold_out_file(settings), held_out, facts, settings, provenance);

  std::vector<float> numbers(static_cast<std::size_t>(element_count(facts.shape)));
  const auto row_bytes = static_cast<std::int64_t>(numbers.size() * (facts.is_bytes ? 1 : sizeof(float)));
  ByteProgress progress(fmt::format("writing '{}'", settings.out.string()), facts.rows * row_bytes, log);
  const std::uint64_t key =
      philox_key(static_cast<std::uint64_t>(settings.seed), hash64("order of converted rows"));
  for (std::int64_t i = 0; i < facts.rows; ++i) {
    const std::int64_t row = settings.order == RowOrder::shuffled ? permuted(i, facts.rows, key, 0) : i;
    const std::int32_t label = source.read(row, numbers);
    (i < kept ? training : *evaluation).append(numbers, label);
    progress.add(row_bytes);
  }
  training.publish();
  if (evaluation) evaluation->publish();
  log.info(fmt::format("{}: {} of {}, {} classes; {}", facts.description, count_text(facts.rows, "sample"),
                       shape_text(stored_shape(facts, settings)), facts.classes,
                       where_rows_went(settings, kept, held_out)));
}

}  // namespace alpa
