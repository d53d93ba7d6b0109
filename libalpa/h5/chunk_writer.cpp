#include "libalpa/h5/chunk_writer.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>

#include "libalpa/h5/chunks.h"

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
  write_at(file_, offset, {bytes.data(), bytes.size()}, path_);
  unsynced_ += chunk.count;
  if (unsynced_ >= piece_bytes) finish();
}

void ChunkWriter::finish() {
  sync(file_, path_);
  unsynced_ = 0;
}

struct BackgroundWriter::Work {
  explicit Work(ChunkWriter of) : writer(std::move(of)) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<std::int64_t, ChunkBytes>> chunks;
  bool closed = false, done = false;
  std::int64_t written = 0;  ///< bytes
  std::exception_ptr failure;
  ChunkWriter writer;  ///< of the thread

  void close(bool gives_up) {
    {
      const std::lock_guard lock(mutex);
      if (gives_up) chunks.clear();
      closed = true;
    }
    changed.notify_all();
  }

  void run() {
    lower_priority();
    std::exception_ptr caught;
    std::unique_lock lock(mutex);
    try {
      for (;;) {
        changed.wait(lock, [&] { return closed || !chunks.empty(); });
        if (chunks.empty()) break;
        const auto [offset, chunk] = std::move(chunks.front());
        chunks.pop_front();
        lock.unlock();
        writer.write(offset, chunk);
        lock.lock();
        written += chunk.count;
        changed.notify_all();
      }
      lock.unlock();
      writer.finish();
    } catch (const std::exception&) {
      caught = std::current_exception();
    }
    if (!lock.owns_lock()) lock.lock();
    failure = caught;
    chunks.clear();
    done = true;
    changed.notify_all();
  }
};

BackgroundWriter::BackgroundWriter(ChunkWriter writer) : work_(std::make_shared<Work>(std::move(writer))) {
  const BlockedSignals blocked;
  thread_ = std::thread([work = work_] { work->run(); });
}

BackgroundWriter::~BackgroundWriter() {
  work_->close(true);
  is_done() ? thread_.join() : thread_.detach();
}

void BackgroundWriter::add(std::int64_t offset, ChunkBytes chunk) {
  {
    const std::lock_guard lock(work_->mutex);
    if (work_->done) return;  // after a failure
    work_->chunks.emplace_back(offset, std::move(chunk));
  }
  work_->changed.notify_all();
}

void BackgroundWriter::close() { work_->close(false); }

bool BackgroundWriter::is_done() const {
  const std::lock_guard lock(work_->mutex);
  return work_->done;
}

bool BackgroundWriter::wait_for_progress() {
  std::unique_lock lock(work_->mutex);
  const std::int64_t enough = work_->written + piece_bytes;
  work_->changed.wait(lock, [&] { return work_->done || work_->written >= enough; });
  return work_->done;
}

void BackgroundWriter::check() const {
  const std::lock_guard lock(work_->mutex);
  if (work_->failure) std::rethrow_exception(work_->failure);
}

}  // namespace alpa
