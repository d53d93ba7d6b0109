#pragma once
#include "libalpa/kernels/host_kernel.h"
#include "libalpa/ops/vertex_program.h"

namespace alpa {

/// Rows from one on, `stride` numbers apart.
struct RowsAt {
  float* data = nullptr;
  std::int64_t stride = 0;
};

/// Where the values of a vertex program lie in one call, for one group of samples. Keeps references.
class PlacedRows {
 public:
  PlacedRows(const VertexProgram& program, const KernelCall& call, std::int64_t group)
      : program_(program), call_(call), first_(group * program.rows) {}

  /// Rows of the group from 0 on, or of a window from its first on.
  RowsAt all(const RowPlace& place) const {
    const auto index = static_cast<std::size_t>(place.index);
    switch (place.in) {
      case RowPlace::In::operand:
        return {const_cast<float*>(call_.operand<float>(index)) + first_ * place.stride + place.offset,
                place.stride};
      case RowPlace::In::result:
        return {call_.result<float>(index) + first_ * place.stride + place.offset, place.stride};
      case RowPlace::In::received:
      case RowPlace::In::window:
        return {scratch() + place.begin + place.offset, place.stride};
      case RowPlace::In::lane:
        break;
    }
    return {};
  }
  /// Rows of the round that begins there, from its first on.
  RowsAt of_round(const RowPlace& place, std::int64_t begin) const {
    RowsAt rows = all(place);
    if (place.in != RowPlace::In::window || program_.windows_of_all_rounds) rows.data += begin * rows.stride;
    return rows;
  }

  const float* weight(int operand) const { return call_.operand<float>(static_cast<std::size_t>(operand)); }

  float* scratch() const { return static_cast<float*>(call_.workspace); }

  /// [row of the group, children + 1] as PackedRows::structure has it.
  const std::int32_t* structure() const {
    return call_.operand<std::int32_t>(1) + first_ * (program_.children + 1);
  }
  float* sum(int result) const { return call_.result<float>(static_cast<std::size_t>(result)); }
  /// Rows of result r from `row` of the group on.
  float* result(std::size_t r, std::int64_t row) const {
    return call_.result<float>(r) + (first_ + row) * program_.result_widths[r];
  }

 private:
  const VertexProgram& program_;
  const KernelCall& call_;
  std::int64_t first_;
};

/// The rounds of a group as its structure has them: calls round(begin, end) for each, against their order
/// where the program runs so. The result is how many rows there are.
template <class Round>
std::int64_t for_rounds(const VertexProgram& program, const std::int32_t* structure, Round&& round) {
  const auto end_of = [&](std::int64_t i) -> std::int64_t {
    return structure[i * (program.children + 1) + program.children];
  };
  std::int64_t end = 0, rounds = 0;
  for (; rounds < program.rows && end_of(rounds) > end && end_of(rounds) <= program.rows; ++rounds)
    end = end_of(rounds);
  for (std::int64_t i = 0; i < rounds; ++i) {
    const std::int64_t at = program.against ? rounds - 1 - i : i;
    round(at == 0 ? 0 : end_of(at - 1), end_of(at));
  }
  return end;
}

}  // namespace alpa
