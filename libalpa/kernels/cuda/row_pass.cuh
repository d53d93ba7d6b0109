#pragma once
// Passes over rows (RowPass) on GPUs.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/run_time_compiler.h"
#include "libalpa/kernels/placed_rows.h"
#include "libalpa/kernels/row_pass_source.h"

namespace alpa::ops {
namespace {

// A pass that no run-time compiler has compiled: its functions one after another, for each number.

constexpr int kMostFunctions = 96, kMostPlaces = 96;

struct PassCode {
  struct Function {
    std::int16_t a, b, to;  ///< a place, or below 0: lane -1 - that
    std::int16_t function;
    float factor;
  };
  int functions = 0;
  Function of[kMostFunctions];
};
struct PassPlaces {
  RowsAt at[kMostPlaces];
};

__device__ inline float applied(RowFunction function, float factor, float a, float b) {
  switch (function) {
    case RowFunction::copy:
      return a;
    case RowFunction::add:
      return a + b;
    case RowFunction::mul:
      return a * b;
    case RowFunction::scale:
      return factor * a;
    case RowFunction::sigmoid:
      return 1.0f / (1.0f + expf(-a));
    case RowFunction::tanh:
      return tanhf(a);
    case RowFunction::relu:
      return a > 0.0f ? a : 0.0f;
    case RowFunction::sigmoid_grad:
      return a * (b * (1.0f - b));
    case RowFunction::tanh_grad:
      return a * (1.0f - b * b);
    case RowFunction::relu_grad:
      return b > 0.0f ? a : 0.0f;
  }
  return 0.0f;
}

__global__ void run_pass(PassCode code, PassPlaces places, std::int64_t rows, std::int64_t width) {
  for_elements(rows * width, [&](std::int64_t i) {
    const std::int64_t row = i / width, column = i % width;
    float lanes[kMostRowLanes];
    const auto at = [&](int place) -> float& {
      return place < 0 ? lanes[-1 - place] : places.at[place].data[row * places.at[place].stride + column];
    };
    for (int f = 0; f < code.functions; ++f) {
      const PassCode::Function& of = code.of[f];
      const float a = at(of.a), b = at(of.b);
      at(of.to) = applied(static_cast<RowFunction>(of.function), of.factor, a, b);
    }
  });
}

/// A pass, compiled where that can be.
struct PreparedPass {
  std::int64_t width = 0;
  std::vector<RowPlace> places;
  PassCode code;
  std::shared_ptr<CompiledKernel> compiled;
};

/// Nothing where a pass has more than a kernel takes.
std::optional<PreparedPass> prepared(const RowPass& pass) {
  RowPassSource source = row_pass_source(pass);
  if (source.places.size() > kMostPlaces || pass.functions.size() > kMostFunctions) return std::nullopt;
  PreparedPass result{pass.width, std::move(source.places), {}, compiled_kernel(source.text, "row_pass")};
  const auto place = [&](const RowPlace& of) {
    const auto found = std::ranges::find(result.places, of);
    return static_cast<std::int16_t>(of.in == RowPlace::In::lane ? -1 - of.begin
                                                                 : found - result.places.begin());
  };
  for (const RowPass::Function& each : pass.functions) {
    PassCode::Function& of = result.code.of[result.code.functions++];
    of = {place(each.a), 0, place(each.to), static_cast<std::int16_t>(each.function), each.factor};
    of.b = takes_two(each.function) ? place(each.b) : of.a;
  }
  return result;
}

}  // namespace
}  // namespace alpa::ops
