#include "libalpa/device/device.h"

namespace alpa {

void Scratch::reserve(std::int64_t bytes) {
  if (memory_ && memory_->bytes() >= bytes) return;
  memory_.reset();
  memory_ = device_.allocate(bytes);
}

}  // namespace alpa
