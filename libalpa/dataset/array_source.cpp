#include "libalpa/dataset/array_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "libalpa/base/error.h"
#include "libalpa/base/float_types.h"
#include "libalpa/base/limits.h"
#include "libalpa/base/philox.h"
#include "libalpa/h5/rows.h"

namespace alpa {
namespace {

/// Numbers as the input has them.
void store(std::span<const float> numbers, DType type, std::span<std::byte> into) {
  for_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    std::transform(numbers.begin(), numbers.end(), reinterpret_cast<T*>(into.data()), from_float<T>);
  });
}

class Hdf5Arrays final : public ArraySource {
 public:
  Hdf5Arrays(const std::string& path, std::vector<ArrayInput> inputs)
      : ArraySource(std::move(inputs)), path_(path) {
    for (const ArrayInput& input : this->inputs()) arrays_.push_back(open(input));
    numbers_.resize(most_numbers_at_once(this->inputs()));
    ids_.resize(numbers_.size());
    bytes_.resize(numbers_.size());
  }

  std::int64_t rows() const override { return arrays_[0].extent()[0]; }

  bool can_read_ahead() const override { return std::ranges::all_of(arrays_, &H5Rows::is_plain); }

  std::int64_t held_bytes() const override {
    auto bytes =
        static_cast<std::int64_t>(numbers_.size() * (sizeof numbers_[0] + sizeof ids_[0] + sizeof bytes_[0]));
    for (const H5Rows& array : arrays_) bytes += array.held_bytes();
    return bytes;
  }

  void read(std::size_t index, std::span<const std::int64_t> rows, std::span<std::byte> into) override {
    order_.resize(rows.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, {}, [&](std::size_t i) { return rows[i]; });
    const std::size_t row_elements = elements_of(inputs()[index]),
                      most = std::max<std::size_t>(numbers_.size() / row_elements, 1);
    for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
      end = begin + 1;  // rows that follow each other in the file are read together
      while (end < order_.size() && end - begin < most && rows[order_[end]] == rows[order_[end - 1]] + 1)
        ++end;
      read_together(index, rows[order_[begin]], std::span(order_).subspan(begin, end - begin), into);
    }
  }

  std::string description() const override { return fmt::format("'{}', {} samples", path_, rows()); }

 private:
  static std::size_t elements_of(const ArrayInput& input) {
    return static_cast<std::size_t>(element_count(input.row.shape));
  }

  /// Of rows read together: some, so that they are few enough to stay in the cache of the processor.
  static std::size_t most_numbers_at_once(const std::vector<ArrayInput>& inputs) {
    std::size_t most = 1 << 16;
    for (const ArrayInput& input : inputs) most = std::max(most, elements_of(input));
    return most;
  }

  /// Rows from `first` on; row i goes to place places[i] of `into`.
  void read_together(std::size_t index, std::int64_t first, std::span<const std::size_t> places,
                     std::span<std::byte> into) {
    const ArrayInput& input = inputs()[index];
    const H5Rows& array = arrays_[index];
    const std::size_t row_elements = elements_of(input), count = places.size() * row_elements;
    const auto rows = static_cast<std::int64_t>(places.size());
    const auto row_bytes = static_cast<std::size_t>(byte_count(input.row));
    const auto place = [&](std::size_t i) { return into.subspan(places[i] * row_bytes, row_bytes); };
    if (input.row.dtype == DType::i32) {
      array.read(first, rows, ids_.data());
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::span<const std::int32_t> row = std::span(ids_).subspan(i * row_elements, row_elements);
        check(input, first + static_cast<std::int64_t>(i), row);
        std::ranges::copy(std::as_bytes(row), place(i).begin());
      }
      return;
    }
    if (array.is_bytes()) {  // HDF5 takes several times as long to make numbers of them
      array.read(first, rows, bytes_.data());
      std::transform(bytes_.data(), bytes_.data() + count, numbers_.begin(),
                     [](std::uint8_t byte) { return static_cast<float>(byte) / 255; });
    } else {
      array.read(first, rows, numbers_.data());
    }
    for (std::size_t i = 0; i < places.size(); ++i)
      store(std::span(numbers_).subspan(i * row_elements, row_elements), input.row.dtype, place(i));
  }

  H5Rows open(const ArrayInput& input) const {
    const bool ids = input.row.dtype == DType::i32;
    const std::string wanted = fmt::format("{} of [samples{}]", ids ? "integers" : "numbers",
                                           input.row.shape.empty() ? "" : "x" + shape_text(input.row.shape));
    H5Rows array(path_, "/" + input.name, fmt::format("store {} as '/{}'", wanted, input.name));
    Shape row = array.extent();
    row.erase(row.begin());
    if (row != input.row.shape || (ids && !array.is_integer()))
      throw array.error(fmt::format("it is {} of [{}], the model wants {}",
                                    array.is_integer() ? "integers" : "numbers", shape_text(array.extent()),
                                    wanted));
    if (!arrays_.empty() && array.extent()[0] != rows())
      throw array.error(
          fmt::format("it has {} samples, '/{}' has {}", array.extent()[0], inputs()[0].name, rows()));
    return array;
  }

  void check(const ArrayInput& input, std::int64_t row, std::span<const std::int32_t> ids) const {
    for (const std::int32_t id : ids)
      if (id < input.from || id >= input.below)
        throw Error(ErrorKind::input,
                    fmt::format("'{}', /{}, row {}: {}, but the model takes {} to {}", path_, input.name, row,
                                id, input.from, input.below - 1),
                    "make the data again, or let the model take more");
  }

  std::string path_;
  std::vector<H5Rows> arrays_;
  // Of the rows at hand, those of an input of that type.
  std::vector<float> numbers_;
  std::vector<std::int32_t> ids_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> order_;  ///< of the rows that are read, those first that lie first
};

class SyntheticArrays final : public ArraySource {
 public:
  SyntheticArrays(std::int64_t rows, std::vector<ArrayInput> inputs)
      : ArraySource(std::move(inputs)), rows_(rows) {
    std::int64_t most = 0;
    for (const ArrayInput& input : this->inputs()) most = std::max(most, element_count(input.row.shape));
    numbers_.resize(static_cast<std::size_t>(most));
  }

  std::int64_t rows() const override { return rows_; }
  std::int64_t held_bytes() const override {
    return static_cast<std::int64_t>(numbers_.size() * sizeof numbers_[0]);
  }

  void read(std::size_t index, std::span<const std::int64_t> rows, std::span<std::byte> into) override {
    const auto row_bytes = static_cast<std::size_t>(byte_count(inputs()[index].row));
    for (std::size_t i = 0; i < rows.size(); ++i)
      read_row(index, rows[i], into.subspan(i * row_bytes, row_bytes));
  }

  std::string description() const override { return fmt::format("synthetic data, {} samples", rows_); }

 private:
  static constexpr std::uint64_t kIds = 0x696473, kOwn = 0x6f776e << 8, kPattern = 0x706174 << 8;

  void read_row(std::size_t index, std::int64_t row, std::span<std::byte> into) {
    const ArrayInput& input = inputs()[index];
    const std::int64_t count = element_count(input.row.shape);
    if (input.row.dtype == DType::i32) {
      auto* const ids = reinterpret_cast<std::int32_t*>(into.data());
      for (std::int64_t i = 0; i < count; ++i) ids[i] = drawn_id(input, index, row, i);
      return;
    }
    const std::span<float> numbers(numbers_.data(), static_cast<std::size_t>(count));
    draw(index, row, numbers);
    store(numbers, input.row.dtype, into);
  }

  /// Means of the sample's own numbers and of those that all samples of its kind have in common.
  void draw(std::size_t index, std::int64_t row, std::span<float> numbers) const {
    const std::uint64_t pattern = kind_of(row);
    for (std::size_t i = 0; i < numbers.size(); i += 4) {
      const PhiloxBlock own = philox(kOwn + index, static_cast<std::uint64_t>(row), i / 4);
      const PhiloxBlock common = philox(kPattern + index, pattern, i / 4);
      for (std::size_t w = 0; w < std::min<std::size_t>(4, numbers.size() - i); ++w)
        numbers[i + w] = 0.5f * (philox_uniform(own.word[w]) + philox_uniform(common.word[w]));
    }
  }

  static std::int32_t drawn_id(const ArrayInput& input, std::size_t index, std::int64_t row, std::int64_t i) {
    const std::uint64_t word =
        philox(kIds + index, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(i)).word[0];
    return static_cast<std::int32_t>((word * static_cast<std::uint64_t>(input.below)) >> 32);
  }

  /// The first integer of the sample.
  std::uint64_t kind_of(std::int64_t row) const {
    for (std::size_t i = 0; i < inputs().size(); ++i)
      if (inputs()[i].row.dtype == DType::i32)
        return static_cast<std::uint64_t>(drawn_id(inputs()[i], i, row, 0));
    return 0;
  }

  std::int64_t rows_;
  std::vector<float> numbers_;  ///< of the row at hand
};

}  // namespace

std::unique_ptr<ArraySource> open_arrays(const std::string& data, std::vector<ArrayInput> inputs) {
  constexpr std::string_view synthetic = "synthetic";
  if (!data.starts_with(synthetic) || (data.size() > synthetic.size() && data[synthetic.size()] != ':'))
    return std::make_unique<Hdf5Arrays>(data, std::move(inputs));
  std::int64_t rows = std::int64_t{1} << 16;
  if (data.size() > synthetic.size()) {
    const char *begin = data.data() + synthetic.size() + 1, *end = data.data() + data.size();
    const auto [stop, fault] = std::from_chars(begin, end, rows);
    if (fault != std::errc() || stop != end || rows < 1 || rows > kMostElements)
      throw Error(ErrorKind::input, fmt::format("cannot make samples from '{}'", data),
                  "synthetic, or synthetic:ROWS, e.g. synthetic:10000");
  }
  return std::make_unique<SyntheticArrays>(rows, std::move(inputs));
}

}  // namespace alpa
