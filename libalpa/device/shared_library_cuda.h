#pragma once
#include <string>

namespace alpa {

/// A library of NVIDIA's that belongs to the machine and not to this build: loaded when a GPU is first asked
/// for, so that programs built with CUDA start where it is missing. Stays loaded until the process ends.
class SharedLibrary {
 public:
  /// Throws Error(allocation) where the machine has no library of that name.
  explicit SharedLibrary(std::string name);

  /// Calls the library's function of that name, declared as `function`. Throws Error(allocation) where it has
  /// none: it is older than the one built against.
  template <auto& function, class... Arguments>
  auto call(const char* name, Arguments... arguments) const {
    static auto* const found = reinterpret_cast<decltype(&function)>(find(name));
    return found(arguments...);
  }

 private:
  void* find(const char* function) const;

  std::string name_;
  void* handle_;
};

}  // namespace alpa
