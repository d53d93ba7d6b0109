#include "libalpa/base/error.h"
#include "libalpa/device/device.h"

namespace alpa {

std::unique_ptr<Device> make_cuda_device(int) {
  throw Error(ErrorKind::allocation, "this build has no CUDA backend",
              "--device cpu, or build with `cmake --preset cuda` where the CUDA toolkit is installed");
}

int visible_cuda_devices() { return 0; }

}  // namespace alpa
