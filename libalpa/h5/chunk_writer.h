#pragma once
// Internal to this module.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "libalpa/h5/chunk_transfer.h"
#include "libalpa/h5/descriptor.h"

namespace alpa {

/// Completes chunks with their checksums, writes them where they belong in a file, and brings that to disk
/// after every 64 MiB, so that no wait for the disk is long.
class ChunkWriter {
 public:
  /// `path` is for messages.
  ChunkWriter(Descriptor file, std::filesystem::path path) : file_(std::move(file)), path_(std::move(path)) {}

  /// Throws Error(run_time), e.g. where the disk is full.
  void write(std::int64_t offset, const ChunkBytes&);
  void finish();  ///< brings the rest to disk

 private:
  Descriptor file_;
  std::filesystem::path path_;
  std::int64_t unsynced_ = 0;
};

/// A ChunkWriter on a thread of low priority, which uses a core and the disk where the rest of the process
/// leaves them alone. The thread calls neither HDF5 nor MPI.
class BackgroundWriter {
 public:
  explicit BackgroundWriter(ChunkWriter writer);

  /// Gives up what is not written yet, and does not wait for the disk: who leaves after a failure may not be
  /// held up.
  ~BackgroundWriter();
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
  struct Work;
  std::shared_ptr<Work> work_;  ///< the thread's too
  std::thread thread_;
};

}  // namespace alpa
