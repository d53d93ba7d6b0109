#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/core.h>
#include <nvrtc.h>

#include "libalpa/base/error.h"
#include "libalpa/device/cuda_check.h"
#include "libalpa/device/shared_library_cuda.h"
#include "libalpa/kernels/cuda/run_time_compiler.h"

namespace alpa {
namespace {

/// Found by name as cuBLASLt is; nullptr: the machine has none, and does without.
const SharedLibrary* nvrtc() {
  static const std::unique_ptr<SharedLibrary> library = []() -> std::unique_ptr<SharedLibrary> {
    try {
      return std::make_unique<SharedLibrary>(fmt::format("libnvrtc.so.{}", CUDA_VERSION / 1000));
    } catch (const Error&) {
      return nullptr;
    }
  }();
  return library.get();
}

class NvrtcProgram {
 public:
  NvrtcProgram(const SharedLibrary& library, const std::string& text) : library_(library) {
    check(library_.call<nvrtcCreateProgram>("nvrtcCreateProgram", &program_, text.c_str(), "row_pass.cu", 0,
                                            nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~NvrtcProgram() { library_.call<nvrtcDestroyProgram>("nvrtcDestroyProgram", &program_); }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  std::string code_for(int compute_capability) {
    const std::string architecture = fmt::format("--gpu-architecture=sm_{}", compute_capability);
    const char* const options[] = {architecture.c_str(), "--fmad=true"};
    const nvrtcResult result =
        library_.call<nvrtcCompileProgram>("nvrtcCompileProgram", program_, 2, options);
    if (result != NVRTC_SUCCESS)
      throw Error(ErrorKind::run_time,
                  fmt::format("the run-time compiler refuses a fused pass of a vertex function: {}", log()),
                  "LD_LIBRARY_PATH without the folder of libnvrtc: passes are then not compiled");
    std::size_t bytes = 0;
    check(library_.call<nvrtcGetCUBINSize>("nvrtcGetCUBINSize", program_, &bytes), "nvrtcGetCUBINSize");
    std::string code(bytes, '\0');
    check(library_.call<nvrtcGetCUBIN>("nvrtcGetCUBIN", program_, code.data()), "nvrtcGetCUBIN");
    return code;
  }

 private:
  void check(nvrtcResult result, const char* call) const {
    if (result == NVRTC_SUCCESS) return;
    throw Error(
        ErrorKind::run_time,
        fmt::format("{} failed: {}", call, library_.call<nvrtcGetErrorString>("nvrtcGetErrorString", result)),
        "LD_LIBRARY_PATH without the folder of libnvrtc: passes are then not compiled");
  }

  std::string log() const {
    std::size_t bytes = 0;
    check(library_.call<nvrtcGetProgramLogSize>("nvrtcGetProgramLogSize", program_, &bytes),
          "nvrtcGetProgramLogSize");
    std::string text(bytes, '\0');
    check(library_.call<nvrtcGetProgramLog>("nvrtcGetProgramLog", program_, text.data()),
          "nvrtcGetProgramLog");
    return text.c_str();  // it ends with a 0
  }

  const SharedLibrary& library_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string compiled_code(const std::string& text, int compute_capability) {
  const SharedLibrary* const library = nvrtc();
  return library ? NvrtcProgram(*library, text).code_for(compute_capability) : std::string();
}

// Runtimes before 12.8 load no code.
#if CUDART_VERSION >= 12080
namespace {

/// Owns the library that it is of.
class NvrtcKernel final : public CompiledKernel {
 public:
  NvrtcKernel(const std::string& code, const char* name) {
    check_cuda(cudaLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
               "cudaLibraryLoadData");
    check_cuda(cudaLibraryGetKernel(&kernel_, library_, name), "cudaLibraryGetKernel");
  }
  ~NvrtcKernel() override { (void)cudaLibraryUnload(library_); }
  NvrtcKernel(const NvrtcKernel&) = delete;
  NvrtcKernel& operator=(const NvrtcKernel&) = delete;

  void launch(void* stream, unsigned blocks, unsigned threads, std::span<const std::byte> argument) override {
    void* arguments[] = {const_cast<std::byte*>(argument.data())};
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(kernel_), dim3(blocks), dim3(threads),
                                arguments, 0, static_cast<cudaStream_t>(stream)),
               "cudaLaunchKernel");
  }

 private:
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
};

}  // namespace

std::unique_ptr<CompiledKernel> compiled_kernel(const std::string& text, const char* name) {
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "cudaDeviceGetAttribute");
  const std::string code = compiled_code(text, 10 * major + minor);
  if (code.empty()) return nullptr;
  return std::make_unique<NvrtcKernel>(code, name);
}
#else
std::unique_ptr<CompiledKernel> compiled_kernel(const std::string&, const char*) { return nullptr; }
#endif

}  // namespace alpa
