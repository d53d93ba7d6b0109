#include "libalpa/device/shared_library_cuda.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <utility>

#include "libalpa/base/error.h"

namespace alpa {

SharedLibrary::SharedLibrary(std::string name)
    : name_(std::move(name)), handle_(dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_)
    throw Error(ErrorKind::allocation, fmt::format("GPUs need {}: {}", name_, dlerror()),
                "install it, or add its folder to LD_LIBRARY_PATH; --device cpu does without");
}

void* SharedLibrary::find(const char* function) const {
  if (void* address = dlsym(handle_, function)) return address;
  throw Error(ErrorKind::allocation, fmt::format("the {} of this machine has no {}", name_, function),
              "a newer one, its folder first in LD_LIBRARY_PATH");
}

}  // namespace alpa
