#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <mutex>
#include <vector>

#include "libalpa/base/tensor_type.h"
#include "libalpa/device/device.h"
#include "libalpa/device/host_machine.h"
#include "libalpa/device/host_memory.h"
#include "libalpa/device/host_stream.h"

namespace alpa {
namespace {

struct Pages {
  std::byte* start = nullptr;
  std::size_t bytes = 0;
};

/// The pages of all allocations of one device, closed to everybody while no bracket is open. As changing the
/// pages' tables takes longer than what most brackets are open for, they stay open between most brackets once
/// so many were closed that a program which touches them outside has most likely done so: what a training
/// step does wrong, each does.
class GuardedPages {
 public:
  void add(Pages pages) {
    const std::lock_guard lock(mutex_);
    pages_.push_back(pages);
    if (!are_closed_) protect(pages, PROT_READ | PROT_WRITE);
  }

  void remove(Pages pages) {
    const std::lock_guard lock(mutex_);
    std::erase_if(pages_, [&](const Pages& other) { return other.start == pages.start; });
  }

  void open() {
    const std::lock_guard lock(mutex_);
    ++open_brackets_;
    if (are_closed_) protect_all(PROT_READ | PROT_WRITE);
    are_closed_ = false;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    if (--open_brackets_ > 0) return;
    are_closed_ = ++closings_ <= kAllClosed || closings_ % 16 == 0;
    if (are_closed_) protect_all(PROT_NONE);
  }

 private:
  static constexpr int kAllClosed = 512;

  void protect_all(int protection) {
    for (const Pages& pages : pages_) protect(pages, protection);
  }

  static void protect(const Pages& pages, int protection) {
    [[maybe_unused]] const int result = mprotect(pages.start, pages.bytes, protection);
    assert(result == 0);
  }

  std::mutex mutex_;
  std::vector<Pages> pages_;
  int open_brackets_ = 0;
  bool are_closed_ = true;
  std::int64_t closings_ = 0;
};

class OpenBracket final : public HostAccess {
 public:
  explicit OpenBracket(GuardedPages& pages) : pages_(pages) { pages_.open(); }
  ~OpenBracket() override { pages_.close(); }
  OpenBracket(const OpenBracket&) = delete;
  OpenBracket& operator=(const OpenBracket&) = delete;

 private:
  GuardedPages& pages_;
};

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// One allocation between two guard pages. Its end, rounded up to the alignment, touches the second one, so
/// that writing past it is caught at once.
class GuardedMemory final : public DeviceMemory {
 public:
  GuardedMemory(GuardedPages& all, std::int64_t bytes) : all_(all), bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t aligned = static_cast<std::size_t>(buffer_bytes(bytes));
    pages_.bytes = round_up(aligned, page);
    mapped_bytes_ = pages_.bytes + 2 * page;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw_out_of_memory("the checked CPU device", bytes, available_host_bytes());
    pages_.start = static_cast<std::byte*>(mapped_) + page;
    data_ = pages_.start + (pages_.bytes - aligned);
    all_.add(pages_);
    const OpenBracket bracket(all_);
    std::memset(pages_.start, 0xFF, pages_.bytes);
  }

  ~GuardedMemory() override {
    all_.remove(pages_);
    munmap(mapped_, mapped_bytes_);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* data() const override { return data_; }
  std::int64_t bytes() const override { return bytes_; }

 private:
  GuardedPages& all_;
  std::int64_t bytes_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  Pages pages_;
  std::byte* data_ = nullptr;
};

class CheckedCpuDevice final : public Device {
 public:
  explicit CheckedCpuDevice(int threads) : threads_(threads) { assert(threads > 0); }

  DeviceKind kind() const override { return DeviceKind::checked_cpu; }
  int host_threads() const override { return threads_; }

  std::string description() const override {
    return fmt::format("checked CPU, {} thread{} ({})", threads_, threads_ == 1 ? "" : "s", processor_name());
  }

  std::unique_ptr<DeviceMemory> allocate(std::int64_t bytes) override {
    assert(bytes >= 0);
    require_host_memory("the checked CPU device", bytes);
    return std::make_unique<GuardedMemory>(pages_, bytes);
  }
  std::unique_ptr<DeviceMemory> allocate_staging(std::int64_t bytes) override {
    return allocate_host_memory(bytes, "the host");
  }
  std::unique_ptr<Stream> make_stream() override { return make_host_stream(*this); }
  std::unique_ptr<HostAccess> host_access() override { return std::make_unique<OpenBracket>(pages_); }
  std::int64_t memory_bytes() const override { return available_host_bytes(); }

 private:
  int threads_;
  GuardedPages pages_;
};

}  // namespace

std::unique_ptr<Device> make_checked_cpu_device(int threads) {
  return std::make_unique<CheckedCpuDevice>(threads);
}

}  // namespace alpa
