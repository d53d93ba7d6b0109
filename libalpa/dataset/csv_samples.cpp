#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/dataset/byte_stream.h"
#include "libalpa/dataset/sample_source.h"
#include "libalpa/dataset/text_lines.h"

namespace alpa {
namespace {

std::string_view trimmed(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  return field;
}

std::optional<double> number_of(std::string_view field) {
  field = trimmed(field);
  double value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (fault != std::errc() || end != field.data() + field.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// Splits a line; `fields` keeps its room.
void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
}

bool is_header(const std::vector<std::string_view>& fields) {
  return std::none_of(fields.begin(), fields.end(),
                      [](std::string_view field) { return number_of(field).has_value(); });
}

/// A sample as it lies in the scratch file: its numbers, then its label.
class CsvSamples final : public SampleSource {
 public:
  CsvSamples(SampleFacts facts, InputFile numbers)
      : SampleSource(std::move(facts)), file_(std::move(numbers)) {}

  std::int32_t read(std::int64_t row, std::span<float> numbers) override {
    const auto bytes = static_cast<std::int64_t>(numbers.size_bytes());
    const std::int64_t at = row * (bytes + static_cast<std::int64_t>(sizeof(std::int32_t)));
    std::int32_t label = 0;
    file_.read(at, numbers.data(), numbers.size_bytes());
    file_.read(at + bytes, &label, sizeof label);
    return label;
  }

 private:
  InputFile file_;
};

/// Takes lines apart.
class CsvRows {
 public:
  explicit CsvRows(std::int64_t label_column) : label_column_(label_column) {}

  /// Puts the numbers and the label of a line behind `bytes`; nothing for a header or an empty line.
  void append(std::string_view line, const TextLines& lines, std::string& bytes) {
    if (trimmed(line).empty()) return;
    split(line, fields_);
    if (columns_ == 0) {
      if (lines.number() == 1 && is_header(fields_)) return;
      columns_ = fields_.size();
      if (columns_ < 2 || label_column_ > std::ssize(fields_))
        throw lines.error(fmt::format("{} columns, and a label in column {} beside numbers are expected",
                                      columns_, label_column_ == 0 ? "last" : std::to_string(label_column_)),
                          "--label-column N, and commas between the numbers");
      label_at_ = label_column_ == 0 ? columns_ - 1 : static_cast<std::size_t>(label_column_) - 1;
    }
    if (fields_.size() != columns_)
      throw lines.error(fmt::format("{} columns, and the lines before it have {}", fields_.size(), columns_),
                        "give every line as many");
    std::int32_t label = 0;
    for (std::size_t i = 0; i < columns_; ++i) {
      const auto number = number_of(fields_[i]);
      if (!number || std::abs(*number) > std::numeric_limits<float>::max())
        throw lines.error(fmt::format("column {}: '{}' is not a number", i + 1, fields_[i].substr(0, 40)),
                          "give finite numbers with commas between them");
      if (i == label_at_)
        label = label_of(*number, lines);
      else
        put(static_cast<float>(*number), bytes);
    }
    put(label, bytes);
    highest_ = std::max(highest_, label);
    ++rows_;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t numbers() const { return static_cast<std::int64_t>(columns_) - 1; }
  std::int64_t classes() const { return std::int64_t{highest_} + 1; }

 private:
  template <class Value>
  static void put(Value value, std::string& bytes) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::int32_t label_of(double number, const TextLines& lines) const {
    if (number < 0 || number != std::floor(number) || number >= std::numeric_limits<std::int32_t>::max())
      throw lines.error(fmt::format("column {}: the label '{}' is not a whole number from 0 on",
                                    label_at_ + 1, trimmed(fields_[label_at_]).substr(0, 40)),
                        "--label-column N where the label is not the last column");
    return static_cast<std::int32_t>(number);
  }

  std::int64_t label_column_, rows_ = 0;
  std::size_t columns_ = 0, label_at_ = 0;
  std::int32_t highest_ = 0;
  std::vector<std::string_view> fields_;
};

}  // namespace

std::unique_ptr<SampleSource> open_csv_samples(const std::filesystem::path& path, std::int64_t label_column,
                                               const std::filesystem::path& scratch_folder, Log& log) {
  TextLines lines(path, "give lines of numbers with commas between them");
  CsvRows rows(label_column);
  ScratchFile scratch(scratch_folder);
  ByteProgress progress(fmt::format("reading '{}'", path.string()), lines.file_bytes(), log);
  std::string bytes;
  std::int64_t reported = 0;
  while (const auto line = lines.next()) {
    rows.append(*line, lines, bytes);
    if (bytes.size() < 1 << 20) continue;
    scratch.append(std::exchange(bytes, {}));
    progress.add(lines.bytes_taken() - std::exchange(reported, lines.bytes_taken()));
  }
  scratch.append(bytes);
  SampleFacts facts;
  facts.description = fmt::format("CSV '{}'", path.string());
  facts.rows = rows.rows();
  facts.shape = {rows.numbers()};
  facts.classes = rows.classes();
  return std::make_unique<CsvSamples>(std::move(facts), scratch.finished(path));
}

}  // namespace alpa
