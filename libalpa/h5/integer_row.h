#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace alpa {

/// A long one-dimensional dataset of integers, read piece by piece, in an HDF5 file from anywhere (no
/// `format` is asked for). The file is looked through first, as H5Reader does, and stays open. Every failure
/// is an Error(input).
class H5IntegerRow {
 public:
  /// `dataset` is its path, e.g. "/tokens".
  H5IntegerRow(const std::filesystem::path& file, const std::string& dataset);
  ~H5IntegerRow();
  H5IntegerRow(H5IntegerRow&&) noexcept;
  H5IntegerRow& operator=(H5IntegerRow&&) noexcept;

  std::int64_t size() const;

  /// Elements [first, first + into.size()), which must exist. Those beyond 32 bits become the nearest value
  /// that fits.
  void read(std::int64_t first, std::span<std::int32_t> into) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace alpa
