#pragma once
// Internal to this module.
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "libalpa/h5/handle.h"

namespace alpa {

/// The bytes of an HDF5 file under construction, kept in memory by a driver of our own. Two things set it
/// apart from HDF5's: it is sparse, and data can be planned: HDF5 is asked to write it and gives it a place,
/// but nothing is kept, so that others may write it into the finished file later.
class MemoryFile {
 public:
  enum class Placement {
    dense,  ///< one after another
    paged,  ///< data in pages of its own, so that ranks on different nodes never write parts of the same page
  };
  static constexpr std::int64_t page_bytes = 4096;
  explicit MemoryFile(Placement placement) : placement_(placement) {}

  /// Registers the driver with HDF5.
  static H5Driver driver();

  /// File access of `file` through `driver`; both must live until the file is closed.
  static H5List access(hid_t driver, MemoryFile& file);

  /// While on, data that HDF5 writes is not kept, only the place of each write.
  void plan_data(bool on) { planning_ = on; }
  const std::vector<std::int64_t>& planned() const { return planned_; }

  std::int64_t bytes() const { return end_; }

  /// Calls take(offset, bytes) for all that was kept, in order. What lies between is zero.
  template <class Take>
  void for_each_page(Take&& take) const {
    for (const auto& [offset, page] : pages_)
      if (offset < end_)
        take(offset,
             std::string_view(page.data(), static_cast<std::size_t>(std::min(page_bytes, end_ - offset))));
  }

 private:
  using Page = std::array<char, page_bytes>;
  struct Callbacks;

  std::int64_t allocate(bool is_data, std::int64_t bytes);
  void write(bool is_data, std::int64_t offset, std::string_view bytes);
  void read(std::int64_t offset, std::span<char> bytes) const;

  Placement placement_;
  bool planning_ = false;
  std::int64_t end_ = 0;
  std::vector<std::int64_t> planned_;
  std::map<std::int64_t, Page> pages_;
};

}  // namespace alpa
