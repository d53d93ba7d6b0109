#pragma once
// Internal to this module: the only part that speaks MPI.
#include <cstdint>
#include <functional>
#include <string>

#include "libalpa/h5/handle.h"

namespace alpa {

/// The ranks that write a file together: those of an MPI communicator, or this process alone. Waiting tests
/// with back-off, because ranks may outnumber cores and MPICH busy-polls.
class Ranks {
 public:
  Ranks() = default;
  explicit Ranks(int native_communicator);

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Runs `body` on each rank. Where it throws on any, the lowest such rank's error is thrown on all, as that
  /// rank's.
  void together(const std::function<void()>& body) const;

  std::int64_t most(std::int64_t value) const;            ///< the largest over ranks
  std::string from_first(const std::string& text) const;  ///< rank 0's

  /// How HDF5 opens a file for these ranks.
  H5List file_access() const;
  /// How they write to it: collectively, as checksummed chunks demand.
  H5List transfer() const;

 private:
  int communicator_ = 0;
  int rank_ = 0, size_ = 1;
};

}  // namespace alpa
