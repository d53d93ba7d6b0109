#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "libalpa/base/tensor_type.h"

namespace alpa {

class Error;

/// Whether there is a dataset of that path, in an HDF5 file from anywhere. Throws as H5Rows does.
bool has_dataset(const std::filesystem::path& file, const std::string& dataset);

/// A dataset of numbers that is long in its first dimension, read some rows at a time, in an HDF5 file from
/// anywhere (no `format` is asked for). The file is looked through first, as H5Reader does, and stays open.
/// Every failure is an Error(input). One caller at a time.
class H5Rows {
 public:
  /// `dataset` is its path, e.g. "/tokens"; `hint` says what would be right where it is missing.
  H5Rows(const std::filesystem::path& file, const std::string& dataset, const std::string& hint);
  ~H5Rows();
  H5Rows(H5Rows&&) noexcept;
  H5Rows& operator=(H5Rows&&) noexcept;

  const Shape& extent() const;
  bool is_integer() const;
  bool is_bytes() const;  ///< integers of 8 bits without sign

  /// Whether the rows lie in the file as they are, not compressed: then read() asks the system for them, and
  /// HDF5, which only one thread of the process may use, for nothing.
  bool is_plain() const;

  /// Host memory that reading holds, at most.
  std::int64_t held_bytes() const;

  /// One of its attributes; nullopt: it has none of that name.
  std::optional<std::int64_t> integer_attribute(const std::string& name) const;

  /// An error about this dataset, with the hint of the constructor.
  Error error(const std::string& problem) const;

  /// Rows [first, first + count), which must exist. Numbers that the type has no room for become the nearest
  /// that fits.
  void read(std::int64_t first, std::int64_t count, std::int32_t* into) const;
  void read(std::int64_t first, std::int64_t count, std::int64_t* into) const;  ///< integers
  void read(std::int64_t first, std::int64_t count, float* into) const;
  void read(std::int64_t first, std::int64_t count, std::uint8_t* into) const;  ///< quick where is_bytes()

 private:
  template <class Number>
  void read_as(std::int64_t memory_type, std::int64_t first, std::int64_t count, Number* into) const;

  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace alpa
