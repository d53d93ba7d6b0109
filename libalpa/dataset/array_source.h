#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// One input of kind data, as it is for one sample.
struct ArrayInput {
  std::string name;
  TensorType row;
  std::int64_t below = 0;  ///< i32: all are from `from` to below - 1
  std::int64_t from = 0;   ///< 0, or -1: none, which is never drawn
};

/// Samples that are rows of arrays, one array for each input.
class ArraySource {
 public:
  explicit ArraySource(std::vector<ArrayInput> inputs) : inputs_(std::move(inputs)) {}
  virtual ~ArraySource() = default;

  const std::vector<ArrayInput>& inputs() const { return inputs_; }

  virtual std::int64_t rows() const = 0;

  /// As of a TokenSource.
  virtual bool can_read_ahead() const { return true; }
  virtual std::int64_t held_bytes() const { return 0; }

  /// Rows of the array of inputs()[input], in any order, one after another in that input's type. Throws
  /// Error(input) where one is not readable or holds what the model cannot take. One caller at a time.
  virtual void read(std::size_t input, std::span<const std::int64_t> rows, std::span<std::byte> into) = 0;

  void read(std::size_t input, std::int64_t row, std::span<std::byte> into) {
    read(input, std::span(&row, 1), into);
  }

  virtual std::string description() const = 0;  ///< for the log

 private:
  std::vector<ArrayInput> inputs_;
};

/// Opens what `--data` names:
///   - "synthetic[:ROWS]": drawn samples (2^16 unless given): integers at random, numbers from 0 to 1 around
///     a pattern that belongs to the first integer, so that there is something to learn;
///   - an HDF5 file with a dataset for each input, e.g. /images and /labels, whose first dimension is the
///     sample. Bytes (8-bit integers without sign) that are read as numbers are divided by 255.
/// Throws Error(input) that names the dataset, what was expected and what to store.
std::unique_ptr<ArraySource> open_arrays(const std::string& data, std::vector<ArrayInput> inputs);

}  // namespace alpa
