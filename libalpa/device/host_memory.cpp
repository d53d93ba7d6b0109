#include "libalpa/device/host_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "libalpa/base/error.h"
#include "libalpa/base/tensor_type.h"
#include "libalpa/base/units.h"
#include "libalpa/device/host_machine.h"

namespace alpa {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

struct Free {
  void operator()(void* data) const { std::free(data); }
};

class HostMemory final : public DeviceMemory {
 public:
  HostMemory(void* data, std::int64_t bytes) : data_(data), bytes_(bytes) {}
  void* data() const override { return data_.get(); }
  std::int64_t bytes() const override { return bytes_; }

 private:
  std::unique_ptr<void, Free> data_;
  std::int64_t bytes_;
};

}  // namespace

void throw_out_of_memory(const std::string& owner, std::int64_t bytes, std::int64_t free_bytes) {
  throw Error(
      ErrorKind::run_time,
      fmt::format("cannot allocate {} on {}: {} are free", bytes_text(bytes), owner, bytes_text(free_bytes)),
      "use more devices, or a plan that needs less memory");
}

void require_host_memory(const std::string& owner, std::int64_t bytes) {
  // Asking reads files, and what is small decides nothing.
  if (bytes < kHugePage) return;
  if (const std::int64_t free_bytes = available_host_bytes(); bytes > free_bytes)
    throw_out_of_memory(owner, bytes, free_bytes);
}

std::unique_ptr<DeviceMemory> allocate_host_memory(std::int64_t bytes, const std::string& owner) {
  assert(bytes >= 0);
  const std::int64_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  require_host_memory(owner, bytes);
  const auto rounded =
      static_cast<std::size_t>((std::max<std::int64_t>(bytes, 1) + alignment - 1) / alignment * alignment);
  void* data = std::aligned_alloc(static_cast<std::size_t>(alignment), rounded);
  if (data == nullptr) throw_out_of_memory(owner, bytes, available_host_bytes());
  auto memory = std::make_unique<HostMemory>(data, bytes);
  // A hint: where the system has no huge pages, small ones do.
  if (alignment == kHugePage) (void)madvise(data, rounded, MADV_HUGEPAGE);
  return memory;
}

}  // namespace alpa
