#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/kernels/cuda/cuda_kernel.cuh"
#include "libalpa/kernels/cuda/kernels_cuda.h"
#include "libalpa/kernels/cuda/matrix_product_cuda.h"
#include "libalpa/kernels/cuda/round_streams.h"
#include "libalpa/kernels/cuda/row_pass.cuh"
#include "libalpa/kernels/placed_rows.h"
#include "libalpa/ops/catalog.h"

namespace alpa::ops {
namespace {

/// Rows of the structure from the round's first on: children that were computed before it count.
struct RoundRows {
  const std::int32_t* structure;
  std::int64_t begin, count;
  int children;

  /// The row in the group of a child; -1: there is none.
  __device__ std::int64_t child(std::int64_t row, std::int64_t which) const {
    const std::int32_t at = structure[row * (children + 1) + which];
    return at < 0 || at >= begin ? -1 : at;
  }
};

__global__ void gather_rows(RoundRows round, RowsAt from, RowsAt to, std::int64_t width, bool sum) {
  const std::int64_t wide = sum ? width : width * round.children;
  for_elements(round.count * wide, [=](std::int64_t i) {
    const std::int64_t row = i / wide, column = i % wide;
    float value = 0.0f;
    for (std::int64_t c = sum ? 0 : column / width; c < (sum ? round.children : column / width + 1); ++c)
      if (const std::int64_t at = round.child(row, c); at >= 0)
        value += from.data[at * from.stride + column % width];
    to.data[row * to.stride + column] = value;
  });
}

/// No two rows of the round have a child in common.
__global__ void return_rows(RoundRows round, RowsAt from, RowsAt to, std::int64_t width, bool to_each) {
  const std::int64_t wide = width * round.children;
  for_elements(round.count * wide, [=](std::int64_t i) {
    const std::int64_t row = i / wide, column = i % wide, at = round.child(row, column / width);
    if (at >= 0)
      to.data[at * to.stride + column % width] +=
          from.data[row * from.stride + (to_each ? column % width : column)];
  });
}

/// Some have: one thread adds all rows of a column, in their order.
__global__ void return_rows_in_order(RoundRows round, RowsAt from, RowsAt to, std::int64_t width,
                                     bool to_each) {
  for_elements(width, [=](std::int64_t column) {
    for (std::int64_t row = 0; row < round.count; ++row)
      for (int c = 0; c < round.children; ++c)
        if (const std::int64_t at = round.child(row, c); at >= 0)
          to.data[at * to.stride + column] +=
              from.data[row * from.stride + column + (to_each ? 0 : c * width)];
  });
}

/// One thread adds the rows of a column, in their order.
__global__ void sum_rows(RowsAt of, std::int64_t rows, std::int64_t width, float* to) {
  for_elements(width, [=](std::int64_t column) {
    float sum = to[column];
    for (std::int64_t row = 0; row < rows; ++row) sum += of.data[row * of.stride + column];
    to[column] = sum;
  });
}

/// Bytes to which rows of a place lie aligned, whichever round and group they are of.
std::int64_t alignment_of(const RowPlace& place) {
  const std::int64_t bits = kAlignment | 4 * (place.begin | place.offset | place.stride);
  return bits & -bits;
}

class RoundsCuda final : public Kernel {
 public:
  RoundsCuda(Device& device, VertexProgram program, std::int64_t alignment)
      : device_(device),
        alignment_(alignment),
        program_(std::move(program)),
        streams_(device, program_),
        structure_(device.allocate_staging(structure_bytes())),
        last_parent_(static_cast<std::size_t>(program_.rows)) {}

  /// Whether kernels take all of its passes.
  bool prepare() {
    for (const auto& step : program_.steps) {
      passes_.emplace_back();
      const auto* const pass = std::get_if<RowPass>(&step);
      if (!pass) continue;
      std::optional<PreparedPass> ready = prepared(*pass);
      if (!ready) return false;
      passes_.back() = std::move(*ready);
    }
    return true;
  }

  void run(Stream& stream, std::span<const Tile> operands, std::span<const Tile> results, void* workspace,
           bool accumulate, const RunPoint& point) override {
    const KernelCall call{operands, results, workspace, accumulate, point};
    streams_.begin(stream);
    auto* const structure = static_cast<std::int32_t*>(structure_->data());
    stream.copy_to_host(structure, call.operand<std::int32_t>(1), structure_bytes());
    stream.synchronize();
    if (std::all_of(structure, structure + structure_bytes() / 4, [](std::int32_t at) { return at == 0; }))
      load(call);
    for (const auto& step : program_.steps)
      if (const auto* const sum = std::get_if<SumRows>(&step))
        stream.fill_zero(call.result<float>(static_cast<std::size_t>(sum->result)),
                         4 * sum->left_width * sum->width);
    for (std::int64_t group = 0; group < program_.groups; ++group) {
      const PlacedRows at(program_, call, group);
      const std::int32_t* const of_group = structure + group * program_.rows * (program_.children + 1);
      stream.fill_zero(at.scratch(), 4 * program_.received);
      std::ranges::fill(last_parent_, -1);
      streams_.order(RoundStream::leading, RoundStream::early);
      const std::int64_t end =
          for_rounds(program_, of_group, [&](std::int64_t begin, std::int64_t round_end) {
            run_round(at, begin, round_end - begin,
                      program_.returns.empty() || children_are_apart(of_group, begin, round_end - begin));
          });
      streams_.order(RoundStream::late, RoundStream::leading);
      for (std::size_t r = 0; r < program_.result_widths.size(); ++r)
        if (end < program_.rows)
          stream.fill_zero(at.result(r, end), 4 * (program_.rows - end) * program_.result_widths[r]);
    }
  }

 private:
  std::int64_t structure_bytes() const {
    return 4 * program_.groups * program_.rows * (program_.children + 1);
  }

  /// No batch has a structure of zeros alone: it is that of the call before the first message, for which CUDA
  /// loads kernels that have not been queued yet. Rounds of all orders of size, as products of few rows may
  /// take other kernels than those of many. What they make is overwritten, like all rows that no vertex has.
  void load(const KernelCall& call) {
    const PlacedRows at(program_, call, 0);
    streams_.order(RoundStream::leading, RoundStream::early);
    for (std::int64_t count = 1; count <= program_.rows; count *= 2)
      for (const bool apart : {true, false}) run_round(at, 0, count, apart);
    streams_.order(RoundStream::late, RoundStream::leading);
  }

  /// `apart`: no two rows of the round have a child in common.
  void run_round(const PlacedRows& at, std::int64_t begin, std::int64_t count, bool apart) {
    const RoundRows round{at.structure() + begin * (program_.children + 1), begin, count, program_.children};
    run_steps(RoundStream::early, at, round);
    streams_.order(RoundStream::early, RoundStream::leading);
    run_steps(RoundStream::leading, at, round);
    give_back(at, round, apart);
    streams_.order(RoundStream::leading, RoundStream::late);
    run_steps(RoundStream::late, at, round);
  }

  void run_steps(RoundStream which, const PlacedRows& at, const RoundRows& round) {
    const auto stream = static_cast<cudaStream_t>(streams_[which].native());
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      if (program_.streams[s] != which) continue;
      if (const auto* const g = std::get_if<GatherRows>(&program_.steps[s]))
        launch(stream, grid_for(round.count * g->width * (g->sum ? 1 : round.children)), kThreads,
               gather_rows, round, at.all(g->from), at.of_round(g->to, round.begin), g->width, g->sum);
      else if (const auto* const m = std::get_if<MultiplyRows>(&program_.steps[s]))
        multiply(s, product_of(*m, round.count), at.of_round(m->left, round.begin).data, at.weight(m->weight),
                 at.of_round(m->to, round.begin).data, at);
      else if (const auto* const sum = std::get_if<SumRows>(&program_.steps[s]))
        add_up(s, *sum, at, round, stream);
      else
        pass(passes_[s], at, round, stream);
    }
  }

  void give_back(const PlacedRows& at, const RoundRows& round, bool apart) {
    const auto stream = static_cast<cudaStream_t>(streams_[RoundStream::leading].native());
    const auto [unused, begin, count, children] = round;
    for (const ReturnRows& r : program_.returns) {
      const RowsAt from = at.of_round(r.from, begin), to = at.all(r.to);
      if (apart)
        launch(stream, grid_for(count * r.width * children), kThreads, return_rows, round, from, to, r.width,
               r.to_each);
      else
        launch(stream, grid_for(r.width), kThreads, return_rows_in_order, round, from, to, r.width,
               r.to_each);
    }
  }

  /// Whether no child has two parents in the round.
  bool children_are_apart(const std::int32_t* structure, std::int64_t begin, std::int64_t count) {
    bool apart = true;
    for (std::int64_t row = begin; row < begin + count; ++row)
      for (int c = 0; c < program_.children; ++c) {
        const std::int32_t child = structure[row * (program_.children + 1) + c];
        if (child < 0 || child >= begin) continue;
        std::int64_t& last = last_parent_[static_cast<std::size_t>(child)];
        apart = apart && (last < begin || last >= begin + count);  // of another round
        last = row;
      }
    return apart;
  }

  /// A product of a round of so many rows.
  struct RoundProduct {
    MatrixProduct of;
    std::int64_t count, alignment;
    bool adds;  ///< to the result
  };

  RoundProduct product_of(const MultiplyRows& m, std::int64_t count) const {
    MatrixProduct of;
    of.rows = count;
    of.columns = m.columns;
    of.sum = m.sum;
    of.left = {false, m.left.stride};
    of.right = {m.transposed, m.leading};
    of.result_leading = m.to.stride;
    return {of, count, std::min({alignment_, alignment_of(m.left), alignment_of(m.to)}), false};
  }

  RoundProduct product_of(const SumRows& s, std::int64_t count) const {
    MatrixProduct of;
    of.rows = s.left_width;
    of.columns = s.width;
    of.sum = count;
    of.left = {true, s.left->stride};
    of.right = {false, s.right.stride};
    of.result_leading = s.width;
    return {of, count, std::min({alignment_, alignment_of(*s.left), alignment_of(s.right)}), true};
  }

  void add_up(std::size_t step, const SumRows& s, const PlacedRows& at, const RoundRows& round,
              cudaStream_t stream) {
    const RowsAt right = at.of_round(s.right, round.begin);
    float* const sum = at.sum(s.result);
    if (s.left)
      multiply(step, product_of(s, round.count), at.of_round(*s.left, round.begin).data, right.data, sum, at);
    else
      launch(stream, grid_for(s.width), kThreads, sum_rows, right, round.count, s.width, sum);
  }

  /// Products are prepared once for each number of rows that a round has had.
  void multiply(std::size_t step, const RoundProduct& each, const float* left, const float* right, float* to,
                const PlacedRows& at) {
    std::unique_ptr<CudaProduct>& product = products_[{step, each.count}];
    if (!product) {
      product = make_cuda_product(device_, each.of, DType::f32, DType::f32, each.alignment);
      if (!product)
        throw Error(ErrorKind::run_time,
                    "cuBLASLt has no product of " + std::to_string(each.of.rows) + " by " +
                        std::to_string(each.of.sum) + " with " + std::to_string(each.of.columns) + " columns",
                    "CUBLASLT_LOG_LEVEL=2 shows what it tried");
    }
    const RoundStream stream = program_.streams[step];
    product->run(streams_[stream].native(), left, right, to, each.adds,
                 at.scratch() + numbers_before_products(program_.scratch) +
                     streams_.number(stream) * (kMatrixProductBytes / 4));
  }

  void pass(const PreparedPass& of, const PlacedRows& at, const RoundRows& round, cudaStream_t stream) {
    // As RowPassSource lays its argument out: as many places as there are, then the rows.
    std::array<std::int64_t, 2 * kMostPlaces + 1> argument;
    PassPlaces places{};
    std::size_t next = 0;
    for (std::size_t p = 0; p < of.places.size(); ++p) {
      places.at[p] = at.of_round(of.places[p], round.begin);
      argument[next++] = reinterpret_cast<std::intptr_t>(places.at[p].data);
      argument[next++] = places.at[p].stride;
    }
    argument[next] = round.count;
    const dim3 grid = grid_for(round.count * of.width);
    if (of.compiled)
      of.compiled->launch(stream, grid.x, kThreads, std::as_bytes(std::span(argument).first(next + 1)));
    else
      launch(stream, grid, kThreads, run_pass, of.code, places, round.count, of.width);
  }

  Device& device_;
  std::int64_t alignment_;  ///< of tiles
  VertexProgram program_;
  RoundStreams streams_;
  std::unique_ptr<DeviceMemory> structure_;  ///< on the host, of the call at hand
  std::vector<std::int64_t> last_parent_;    ///< [row of the group] of those that have been
  std::vector<PreparedPass> passes_;         ///< [step]; empty where a step is none
  std::map<std::pair<std::size_t, std::int64_t>, std::unique_ptr<CudaProduct>> products_;
};

std::unique_ptr<Kernel> rounds_kernel(Device& device, const OpDef& op, const KernelShape& shape) {
  for (std::size_t i = 0; i < shape.operands.size(); ++i)
    if (shape.operands[i].dtype != (static_cast<int>(i) == op.ids ? DType::i32 : DType::f32)) return nullptr;
  auto kernel = std::make_unique<RoundsCuda>(
      device, vertex_program({shape.operands, shape.attributes}, RoundOrder::streams), shape.alignment);
  if (!kernel->prepare()) return nullptr;
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> rounds_cuda(Device& device, const KernelShape& shape) {
  return rounds_kernel(device, rounds, shape);
}
std::unique_ptr<Kernel> rounds_grad_cuda(Device& device, const KernelShape& shape) {
  return rounds_kernel(device, rounds_grad, shape);
}

}  // namespace alpa::ops
