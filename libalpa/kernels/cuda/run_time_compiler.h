#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace alpa {

/// A kernel compiled while the program runs; owns its code.
class CompiledKernel {
 public:
  virtual ~CompiledKernel() = default;

  /// Queues it on a cudaStream_t with its one argument, which is copied.
  virtual void launch(void* stream, unsigned blocks, unsigned threads,
                      std::span<const std::byte> argument) = 0;
};

/// Machine code of CUDA C++ for devices of that compute capability (90: 9.0); "" where the machine has no
/// run-time compiler (libnvrtc, of the toolkit that this was built with). Throws Error(run_time) with the
/// compiler's words where it refuses the text.
std::string compiled_code(const std::string& text, int compute_capability);

/// The kernel `name` of a text, for the current device; nullptr where the machine has no run-time compiler.
std::unique_ptr<CompiledKernel> compiled_kernel(const std::string& text, const char* name);

}  // namespace alpa
