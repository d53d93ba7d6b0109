#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/kernels/cpu/kernels_cpu.h"
#include "libalpa/kernels/cpu/matrix_product_cpu.h"
#include "libalpa/kernels/cpu/vector_math.h"
#include "libalpa/kernels/placed_rows.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

constexpr std::int64_t kPassNumbers = 128;  ///< that all functions of a pass work on in turn
constexpr std::int64_t kVectorNumbers =
    16;  ///< of which loops are whole multiples: what is left would go one by one

/// A function of a pass, its places found.
struct PassFunction {
  RowFunction function;
  float factor;
  bool has_b;
  std::array<RowsAt, 3> at;  ///< a, b, to
  std::array<int, 3> lane;   ///< -1: in memory
};

void apply(RowFunction function, float factor, std::int64_t n, const float* a, const float* b, float* to) {
  switch (function) {
    case RowFunction::copy:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i];
      return;
    case RowFunction::add:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] + b[i];
      return;
    case RowFunction::mul:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] * b[i];
      return;
    case RowFunction::scale:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = factor * a[i];
      return;
    case RowFunction::sigmoid:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = alpa::sigmoid(a[i]);
      return;
    case RowFunction::tanh:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = fast_tanh(a[i]);
      return;
    case RowFunction::relu:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] > 0.0f ? a[i] : 0.0f;
      return;
    case RowFunction::sigmoid_grad:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] * (b[i] * (1.0f - b[i]));
      return;
    case RowFunction::tanh_grad:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] * (1.0f - b[i] * b[i]);
      return;
    case RowFunction::relu_grad:
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) to[i] = b[i] > 0.0f ? a[i] : 0.0f;
      return;
  }
}

/// One call on the rows of one group of samples.
class GroupRun {
 public:
  /// `functions` has room for those of any pass.
  GroupRun(const VertexProgram& program, const KernelCall& call, std::int64_t group,
           std::span<PassFunction> functions)
      : p_(program), functions_(functions), at_(program, call, group), structure_(at_.structure()) {}

  void run() {
    std::fill_n(at_.scratch(), p_.received, 0.0f);
    const std::int64_t end = for_rounds(p_, structure_, [this](std::int64_t begin, std::int64_t round_end) {
      begin_ = begin;
      count_ = round_end - begin;
      for (const auto& step : p_.steps) std::visit([this](const auto& of) { do_step(of); }, step);
      for (const ReturnRows& each : p_.returns) give_back(each);
    });
    for (std::size_t r = 0; r < p_.result_widths.size(); ++r)
      std::fill_n(at_.result(r, end), (p_.rows - end) * p_.result_widths[r], 0.0f);
  }

 private:
  /// The row in the group of a child; -1: there is none.
  std::int64_t child(std::int64_t row, int which) const {
    const std::int32_t at = structure_[row * (p_.children + 1) + which];
    return at < 0 || at >= begin_ ? -1 : at;
  }

  RowsAt all(const RowPlace& place) const { return at_.all(place); }
  RowsAt of_round(const RowPlace& place) const { return at_.of_round(place, begin_); }

  void do_step(const GatherRows& g) {
    const RowsAt from = all(g.from), to = of_round(g.to);
    for_ranges(count_, row_grain(g.width * p_.children), [&, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float* row = to.data + i * to.stride;
        if (g.sum) std::fill_n(row, g.width, 0.0f);
        for (int c = 0; c < p_.children; ++c) {
          const std::int64_t at = child(begin_ + i, c);
          if (at < 0) {
            if (!g.sum) std::fill_n(row + c * g.width, g.width, 0.0f);
          } else if (g.sum) {
            add_row(from.data + at * from.stride, g.width, row);
          } else {
            std::copy_n(from.data + at * from.stride, g.width, row + c * g.width);
          }
        }
      }
    });
  }

  static void add_row(const float* of, std::int64_t width, float* to) {
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) to[j] += of[j];
  }

  void do_step(const MultiplyRows& m) {
    const RowsAt left = of_round(m.left), to = of_round(m.to);
    multiply_on_all_threads({count_, m.columns, m.sum}, {{false, left.stride}, left.data},
                            {{m.transposed, m.leading}, at_.weight(m.weight)}, 0.0f, {to.data, to.stride});
  }

  void do_step(const SumRows& s) {
    const RowsAt right = of_round(s.right);
    float* const sum = at_.sum(s.result);
    if (s.left) {
      const RowsAt left = of_round(*s.left);
      multiply_on_all_threads({s.left_width, s.width, count_}, {{true, left.stride}, left.data},
                              {{false, right.stride}, right.data}, 1.0f, {sum, s.width});
      return;
    }
    for_ranges(s.width, row_grain(count_), [&, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < count_; ++i)
        add_row(right.data + i * right.stride + begin, end - begin, sum + begin);
    });
  }

  void do_step(const RowPass& pass) {
    const std::span<PassFunction> functions = functions_.first(pass.functions.size());
    for (std::size_t f = 0; f < functions.size(); ++f) {
      const RowPass::Function& each = pass.functions[f];
      PassFunction& of = functions[f];
      of.function = each.function;
      of.factor = each.factor;
      of.has_b = takes_two(each.function);
      const RowPlace* const places[] = {&each.a, &each.b, &each.to};
      for (std::size_t i = 0; i < 3; ++i) {
        const bool in_lane = places[i]->in == RowPlace::In::lane;
        of.lane[i] = in_lane ? static_cast<int>(places[i]->begin) : -1;
        of.at[i] = in_lane ? RowsAt{} : of_round(*places[i]);
      }
    }
    const std::int64_t width = pass.width;
    for_ranges(count_, row_grain(width * std::ssize(functions)), [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float lanes[kMostRowLanes][kPassNumbers];
      alignas(64) float edges[3][kVectorNumbers] = {};  // in place of narrow rows, with zeros behind them
      const bool is_narrow = width < kVectorNumbers;
      for (std::int64_t row = begin; row < end; ++row)
        for (std::int64_t done = 0; done < width;) {
          const Stretch next = is_narrow ? Stretch{0, kVectorNumbers} : stretch_from(done, width);
          for (const PassFunction& of : functions) {
            const auto in_memory = [&](std::size_t i) {
              return of.at[i].data + row * of.at[i].stride + next.begin;
            };
            const auto at = [&](std::size_t i) {
              return of.lane[i] >= 0 ? lanes[of.lane[i]] : is_narrow ? edges[i] : in_memory(i);
            };
            if (is_narrow && of.lane[0] < 0) std::copy_n(in_memory(0), width, edges[0]);
            if (is_narrow && of.has_b && of.lane[1] < 0) std::copy_n(in_memory(1), width, edges[1]);
            apply(of.function, of.factor, next.count, at(0), at(1), at(2));
            if (is_narrow && of.lane[2] < 0) std::copy_n(edges[2], width, in_memory(2));
          }
          done = next.begin + next.count;
        }
    });
  }

  struct Stretch {
    std::int64_t begin, count;
  };
  /// Whole vectors of a row, from the first number that is not done: at its end with some of those before,
  /// which come to the same again, as no function reads what another overwrites.
  static Stretch stretch_from(std::int64_t done, std::int64_t width) {
    const std::int64_t left = (width - done + kVectorNumbers - 1) / kVectorNumbers * kVectorNumbers;
    const std::int64_t count = std::min({kPassNumbers, left, width / kVectorNumbers * kVectorNumbers});
    return {std::min(done, width - count), count};
  }

  /// By ranges of numbers, as a child may have several parents: whatever the threads, they add in one order.
  void give_back(const ReturnRows& r) {
    const RowsAt from = of_round(r.from), to = all(r.to);
    const std::int64_t work = std::max<std::int64_t>(1, count_ * p_.children);
    for_ranges(r.width, std::max<std::int64_t>(16, kElementGrain / work),
               [&, this](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = 0; i < count_; ++i)
                   for (int c = 0; c < p_.children; ++c) {
                     const std::int64_t at = child(begin_ + i, c);
                     if (at < 0) continue;
                     const float* of = from.data + i * from.stride + (r.to_each ? 0 : c * r.width);
                     add_row(of + begin, end - begin, to.data + at * to.stride + begin);
                   }
               });
  }

  const VertexProgram& p_;
  std::span<PassFunction> functions_;
  PlacedRows at_;
  const std::int32_t* structure_;
  std::int64_t begin_ = 0, count_ = 0;  ///< rows of the round at hand
};

std::unique_ptr<Kernel> rounds_kernel(const OpDef& op, const KernelShape& shape) {
  for (std::size_t i = 0; i < shape.operands.size(); ++i)
    if (shape.operands[i].dtype != (static_cast<int>(i) == op.ids ? DType::i32 : DType::f32)) return nullptr;
  VertexProgram program = vertex_program({shape.operands, shape.attributes});
  std::size_t most = 0;
  for (const auto& step : program.steps)
    if (const auto* const pass = std::get_if<RowPass>(&step)) most = std::max(most, pass->functions.size());
  return host_kernel([program = std::move(program),
                      functions = std::vector<PassFunction>(most)](const KernelCall& call) mutable {
    for (const auto& step : program.steps)
      if (const auto* const sum = std::get_if<SumRows>(&step))
        std::fill_n(call.result<float>(static_cast<std::size_t>(sum->result)), sum->left_width * sum->width,
                    0.0f);
    for (std::int64_t group = 0; group < program.groups; ++group)
      GroupRun(program, call, group, functions).run();
  });
}

}  // namespace

std::unique_ptr<Kernel> rounds_cpu(const KernelShape& shape) { return rounds_kernel(rounds, shape); }
std::unique_ptr<Kernel> rounds_grad_cpu(const KernelShape& shape) {
  return rounds_kernel(rounds_grad, shape);
}

}  // namespace alpa::ops
