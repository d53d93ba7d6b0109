#include "libalpa/kernels/row_pass_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

namespace alpa {
namespace {

/// As ops/elementwise has them on GPUs.
std::string expression(const RowPass::Function& of, const std::string& a, const std::string& b) {
  switch (of.function) {
    case RowFunction::copy:
      return a;
    case RowFunction::add:
      return fmt::format("{} + {}", a, b);
    case RowFunction::mul:
      return fmt::format("{} * {}", a, b);
    case RowFunction::scale:
      return fmt::format("{:.9e}f * {}", of.factor, a);
    case RowFunction::sigmoid:
      return fmt::format("1.0f / (1.0f + expf(-{}))", a);
    case RowFunction::tanh:
      return fmt::format("tanhf({})", a);
    case RowFunction::relu:
      return fmt::format("{0} > 0.0f ? {0} : 0.0f", a);
    case RowFunction::sigmoid_grad:
      return fmt::format("{0} * ({1} * (1.0f - {1}))", a, b);
    case RowFunction::tanh_grad:
      return fmt::format("{0} * (1.0f - {1} * {1})", a, b);
    case RowFunction::relu_grad:
      return fmt::format("{1} > 0.0f ? {0} : 0.0f", a, b);
  }
  return {};
}

class SourceWriter {
 public:
  RowPassSource write(const RowPass& pass) {
    for (const RowPass::Function& each : pass.functions) {
      const std::string a = value_at(each.a), b = takes_two(each.function) ? value_at(each.b) : "";
      lines_ += fmt::format("    const float v{} = {};\n", values_, expression(each, a, b));
      if (each.to.in != RowPlace::In::lane)
        lines_ += fmt::format("    {} = v{};\n", element(each.to), values_);
      known_.emplace_back(each.to, fmt::format("v{}", values_++));
    }
    source_.text = fmt::format(
        "struct Arguments {{ struct {{ float* data; long long stride; }} at[{}]; long long rows; }};\n"
        "extern \"C\" __global__ void row_pass(Arguments a) {{\n"
        "  const long long step = 1LL * gridDim.x * blockDim.x;\n"
        "  for (long long i = 1LL * blockIdx.x * blockDim.x + threadIdx.x; i < a.rows * {}; i += step) {{\n"
        "    const long long row = i / {}, column = i % {};\n"
        "{}  }}\n}}\n",
        source_.places.size(), pass.width, pass.width, pass.width, lines_);
    return std::move(source_);
  }

 private:
  /// What was made there last, or is in memory.
  std::string value_at(const RowPlace& place) {
    const auto found =
        std::find_if(known_.rbegin(), known_.rend(), [&](const auto& each) { return each.first == place; });
    if (found != known_.rend()) return found->second;
    assert(place.in != RowPlace::In::lane && "a lane is written before it is read");
    lines_ += fmt::format("    const float v{} = {};\n", values_, element(place));
    known_.emplace_back(place, fmt::format("v{}", values_));
    return fmt::format("v{}", values_++);
  }

  std::string element(const RowPlace& place) {
    const auto found = std::ranges::find(source_.places, place);
    const auto index = found - source_.places.begin();
    if (found == source_.places.end()) source_.places.push_back(place);
    return fmt::format("a.at[{0}].data[row * a.at[{0}].stride + column]", index);
  }

  RowPassSource source_;
  std::string lines_;
  std::vector<std::pair<RowPlace, std::string>> known_;
  int values_ = 0;
};

}  // namespace

RowPassSource row_pass_source(const RowPass& pass) { return SourceWriter().write(pass); }

}  // namespace alpa
