#include "tests/kernels/emulation/emulated_compiler.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/kernels/cuda/run_time_compiler.h"
#include "tests/h5/temporary_folder.h"
#include "tests/kernels/emulation/emulated_stream.h"

namespace alpa {
namespace {

using Function = void (*)(const void* argument);

/// A grid of one thread.
constexpr const char* before = R"(
extern "C" float expf(float);
extern "C" float tanhf(float);
#define __global__
static const struct { unsigned x; } threadIdx{0}, blockIdx{0}, blockDim{1}, gridDim{1};
)";
constexpr const char* after = R"(
extern "C" void run(const void* argument) { row_pass(*static_cast<const Arguments*>(argument)); }
)";

std::map<std::string, Function>& compiled() {
  static std::map<std::string, Function> texts;
  return texts;
}

Function compile(const std::string& text) {
  const TemporaryFolder folder;
  const std::string source = (folder.path() / "pass.cpp").string(),
                    library = (folder.path() / "pass.so").string();
  std::ofstream(source) << before << text << after;
  if (std::system(
          fmt::format("{} -O0 -shared -fPIC -Wall -Werror -o {} {}", ALPA_CXX, library, source).c_str()) != 0)
    throw Error(ErrorKind::run_time, "the host's compiler refuses:\n" + text);
  void* const handle = dlopen(library.c_str(), RTLD_NOW);
  return handle ? reinterpret_cast<Function>(dlsym(handle, "run")) : nullptr;
}

class HostCompiledKernel final : public CompiledKernel {
 public:
  explicit HostCompiledKernel(Function function) : function_(function) {}
  void launch(void* stream, unsigned blocks, unsigned, std::span<const std::byte> argument) override {
    if (blocks > 0)
      emulation::queue(static_cast<CUstream_st*>(stream),
                       [function = function_, of = std::vector(argument.begin(), argument.end())] {
                         function(of.data());
                       });
  }

 private:
  Function function_;
};

}  // namespace

int emulation::texts_compiled() { return static_cast<int>(compiled().size()); }

std::unique_ptr<CompiledKernel> compiled_kernel(const std::string& text, const char*) {
  if (!emulation::compiles) return nullptr;
  Function& function = compiled()[text];
  if (!function) function = compile(text);
  return std::make_unique<HostCompiledKernel>(function);
}

}  // namespace alpa
