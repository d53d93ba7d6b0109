#include "libalpa/h5/chunk_writer.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string_view>

#include "libalpa/h5/descriptor.h"

namespace alpa {
namespace {

constexpr std::int64_t piece_bytes = 64 << 20;

/// Of the calling thread; where it is not allowed, it runs as others do. Linux has priorities by threads, and
/// goes by the nice value for the disk too.
void lower_priority() {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
  const sched_param parameters{};
  (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters);
}

/// Signals are for the threads that are there already.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void ChunkWriter::write(std::int64_t offset, const ChunkBytes& chunk) {
  const std::span<char> bytes = chunk.span();
  const std::uint32_t checksum = fletcher32(bytes.first(bytes.size() - checksum_bytes));
  for (int i = 0; i < checksum_bytes; ++i)
    bytes[bytes.size() - checksum_bytes + i] = static_cast<char>(checksum >> (8 * i));
  write_at(descriptor_, offset, {bytes.data(), bytes.size()}, path_);
  unsynced_ += chunk.count;
  if (unsynced_ >= piece_bytes) finish();
}

void ChunkWriter::finish() {
  sync(descriptor_, path_);
  unsynced_ = 0;
}

BackgroundWriter::BackgroundWriter(ChunkWriter writer) : writer_(std::move(writer)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    chunks_.clear();
    closed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundWriter::add(std::int64_t offset, ChunkBytes chunk) {
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;  // after a failure
    chunks_.emplace_back(offset, std::move(chunk));
  }
  changed_.notify_all();
}

void BackgroundWriter::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool BackgroundWriter::is_done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

bool BackgroundWriter::wait_for_progress() {
  std::unique_lock lock(mutex_);
  const std::int64_t enough = written_ + piece_bytes;
  changed_.wait(lock, [&] { return done_ || written_ >= enough; });
  return done_;
}

void BackgroundWriter::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void BackgroundWriter::run() {
  lower_priority();
  std::exception_ptr failure;
  std::unique_lock lock(mutex_);
  try {
    for (;;) {
      changed_.wait(lock, [&] { return closed_ || !chunks_.empty(); });
      if (chunks_.empty()) break;
      const auto [offset, chunk] = std::move(chunks_.front());
      chunks_.pop_front();
      lock.unlock();
      writer_.write(offset, chunk);
      lock.lock();
      written_ += chunk.count;
      changed_.notify_all();
    }
    lock.unlock();
    writer_.finish();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  if (!lock.owns_lock()) lock.lock();
  failure_ = failure;
  chunks_.clear();
  done_ = true;
  changed_.notify_all();
}

}  // namespace alpa
