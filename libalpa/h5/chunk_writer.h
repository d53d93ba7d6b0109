#pragma once
// Internal to this module.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "libalpa/h5/chunk_transfer.h"

namespace alpa {

/// Completes chunks with their checksums, writes them where they belong in a file, and brings that to disk
/// after every 64 MiB, so that no wait for the disk is long.
class ChunkWriter {
 public:
  /// Keeps the descriptor; `path` is for messages.
  ChunkWriter(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  /// Throws Error(run_time), e.g. where the disk is full.
  void write(std::int64_t offset, const ChunkBytes&);
  void finish();  ///< brings the rest to disk

 private:
  int descriptor_;
  std::filesystem::path path_;
  std::int64_t unsynced_ = 0;
};

/// A ChunkWriter on a thread of low priority, which uses a core and the disk where the rest of the process
/// leaves them alone. The thread calls neither HDF5 nor MPI.
class BackgroundWriter {
 public:
  explicit BackgroundWriter(ChunkWriter writer);
  ~BackgroundWriter();  ///< gives up what is not written yet
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Takes a chunk, which goes from memory when it is written.
  void add(std::int64_t offset, ChunkBytes);
  void close();  ///< no more come

  bool is_done() const;  ///< all is on disk, or writing has failed
  /// Returns when it is done (true), or another 64 MiB are written.
  bool wait_for_progress();
  void check() const;  ///< throws what writing threw

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::int64_t, ChunkBytes>> chunks_;
  bool closed_ = false, done_ = false;
  std::int64_t written_ = 0;  ///< bytes
  std::exception_ptr failure_;
  ChunkWriter writer_;  ///< of the thread
  std::thread thread_;
};

}  // namespace alpa
