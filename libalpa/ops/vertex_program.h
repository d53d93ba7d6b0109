#pragma once
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "libalpa/graph/op.h"

namespace alpa {

/// What an operator does to single numbers of a row: to = f(a, b).
enum class RowFunction {
  copy,
  add,
  mul,
  scale,
  sigmoid,
  tanh,
  relu,
  sigmoid_grad,  ///< (dy, y), as the operator; likewise the others
  tanh_grad,
  relu_grad,
};
/// nullopt: it has another form.
std::optional<RowFunction> row_function_of(const OpDef&);

/// Whether b counts.
bool takes_two(RowFunction);

/// Whether a program can do it for single rows: products with a weight, and what works element by element.
bool works_on_rows(const OpDef&, const OpCall&);

/// Whether it sums up rows, or products of two values' rows, as gradients of weights are made.
bool sums_up_rows(const OpDef&, const OpCall&);

/// Where the rows of a value lie.
struct RowPlace {
  enum class In {
    operand,   ///< of the call; rows of all vertices, or with stride 0 one that all have in common (a bias)
    result,    ///< of the call: rows of all vertices
    received,  ///< scratch: what the parents gave back of state `index`; rows of all vertices of a group
    window,    ///< scratch: rows of a round, or of all (VertexProgram::windows_of_all_rounds)
    lane,      ///< numbers of one pass over a row alone (RowPass)
  } in = In::lane;
  int index = 0;
  std::int64_t begin = 0;   ///< window: its first number in the scratch; lane: which
  std::int64_t offset = 0;  ///< of the value's first number in the row
  std::int64_t stride = 0;  ///< from row to row
  bool operator==(const RowPlace&) const = default;
};

/// As many places has a pass for numbers that no other needs; what is left goes through memory.
inline constexpr int kMostRowLanes = 32;

struct GatherRows {
  RowPlace from, to;
  std::int64_t width = 0;
  bool sum = false;
};

/// to = left weight, of [rows sum] and [sum columns], or of [columns sum] where transposed.
struct MultiplyRows {
  RowPlace left, to;
  int weight = 0;  ///< operand
  bool transposed = false;
  std::int64_t sum = 0, columns = 0, leading = 0;
};

/// result [left_width width] += left^T right, over the rows of a round; without left the sum of right's rows.
struct SumRows {
  std::optional<RowPlace> left;
  RowPlace right;
  int result = 0;
  std::int64_t left_width = 1, width = 0;
};

/// One pass over rows of `width`: all of `functions` on some numbers, then on the next. (Cavs fuses such
/// groups by compiling them.)
struct RowPass {
  struct Function {
    RowFunction function = RowFunction::copy;
    RowPlace a, b, to;
    float factor = 1;
  };
  std::int64_t width = 0;
  std::vector<Function> functions;
};

struct ReturnRows {
  RowPlace from, to;
  std::int64_t width = 0;
  bool to_each = false;
};

/// Which of a round's steps can go on beside those of other rounds (Cavs, ATC'18, section 3.5): each round's
/// in the order early, leading, late; early ones of all rounds one after another, and so the others.
enum class RoundStream {
  early,    ///< waits for nothing of other rounds
  leading,  ///< from what other rounds gave to what others take: states, and what is given back
  late,     ///< no other round takes it
};
inline constexpr RoundStream kRoundStreams[] = {RoundStream::early, RoundStream::leading, RoundStream::late};

/// All steps on one stream, where passes are the longest, or on up to three streams.
enum class RoundOrder { one_stream, streams };

/// A vertex body ready for kernels: its steps in an order in which what works element by element comes
/// together.
struct VertexProgram {
  std::int64_t groups = 0, rows = 0;  ///< rows of a group
  int children = 0;
  bool against = false;  ///< from the last round to the first
  std::vector<std::variant<GatherRows, MultiplyRows, SumRows, RowPass>> steps;
  std::vector<RoundStream> streams;  ///< [step]
  std::vector<ReturnRows> returns;   ///< leading
  /// Windows have the rows of all rounds, so that none overwrites what another has; else those of each round
  /// from the first on, which stay in the caches.
  bool windows_of_all_rounds = false;
  std::vector<std::int64_t> result_widths;  ///< [result] of a row; 0: a sum over rows
  std::int64_t scratch = 0;                 ///< numbers
  std::int64_t received = 0;                ///< so many of them are what parents give back

  std::int64_t scratch_bytes() const { return 4 * scratch; }
  bool uses(RoundStream) const;  ///< always the leading one; others where they have steps
  int streams_used() const;
};

/// Of a call of `rounds` or `rounds_grad`. The one stream is the leading one.
VertexProgram vertex_program(const OpCall&, RoundOrder = RoundOrder::one_stream);

}  // namespace alpa
