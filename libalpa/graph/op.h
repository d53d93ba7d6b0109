#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/device_kind.h"
#include "libalpa/base/index.h"
#include "libalpa/base/tensor_type.h"
#include "libalpa/graph/attributes.h"
#include "libalpa/graph/sharding_rule.h"

namespace alpa {

class GraphBuilder;
struct Node;
using ValueIndex = Index<struct Value>;  ///< of a graph's, as the next two
using NodeIndex = Index<Node>;
using StateIndex = Index<struct State>;

/// What an operator is applied to: operand types (whole or local tiles) and settings.
struct OpCall {
  std::span<const TensorType> operands;
  const Attributes& attributes;
};

/// Of OpDef::linear_operands: all of them, as of add.
constexpr std::size_t kAllOperands = std::numeric_limits<std::size_t>::max();

/// Everything the library knows about one operator, except its kernels.
///
/// Shape inference, local shapes and every sharding strategy follow from the rule; nothing lists strategies
/// by hand.
struct OpDef {
  std::string_view name;  ///< as written in model files

  /// The rule's notation (see parse_rule). Empty where `make_rule` builds it from the attributes.
  std::string_view rule;
  ShardingRule (*make_rule)(const OpCall&) = nullptr;

  /// Element types of the results, "same" (as the operand that it overwrites, or as operand 0) or a type
  /// name, comma separated. Empty: all "same".
  std::string_view result_types = "";

  /// So many of its first operands it is linear in, taken together: op(x + y, u + v, ...) = op(x, u, ...) +
  /// op(y, v, ...). Terms of sums that are yet to be added up (partial values) may pass through them: all of
  /// them are partial then, or none.
  std::size_t linear_operands = 0;

  /// FLOPs of one innermost iteration: times the product of all factors. `flops` replaces it where that is
  /// not right.
  double flops_per_point = 1;
  double (*flops)(const OpCall&) = nullptr;

  /// The part of them that computes again what an operator of the forward had: work, but not the model's.
  double recomputed_share = 0;

  /// Bytes moved to and from memory. Null: all operands and results once.
  std::int64_t (*bytes_moved)(const OpCall&) = nullptr;

  /// Bounds on the memory that a kernel may use beside operands and results, in bytes, on CPUs and with CUDA.
  /// Null: none. What oneDNN takes by itself is not in it.
  std::int64_t (*cpu_workspace_bytes)(const OpCall&) = nullptr;
  std::int64_t (*cuda_workspace_bytes)(const OpCall&) = nullptr;

  /// Result i overwrites the buffer of operand overwrites[i] (optimizer state); -1: a buffer of its own.
  std::array<int, 4> overwrites{-1, -1, -1, -1};
  int overwritten(std::integral auto result) const {
    return static_cast<std::size_t>(result) < overwrites.size() ? overwrites[static_cast<std::size_t>(result)]
                                                                : -1;
  }

  /// Takes operands in any layout that is not partial and gives one value for all ranks of all stages (the
  /// global gradient norm); it has one strategy.
  bool reduces_globally = false;

  /// The result is the sum over the micro-batches of the step.
  bool sums_micro_batches = false;

  /// The result is the sum of all elements of the operand, as a loss has to be.
  bool is_total = false;

  /// The result adds up products of the two operands' elements; where both and the result lead with one
  /// factor, it is a product for each of its indices (of experts, see factor_roles).
  bool is_product = false;

  /// The operand that is the running average of operand 0, a state without gradient: training brings it up to
  /// date by `running_update` with the attributes `momentum` and `correction` (default 1). -1: none.
  int running_average = -1;

  /// The result is a thin factor of operand 0, a gradient, in place of which it is sent; its last dimension
  /// is the rank.
  bool factors_gradient = false;

  /// The result is the operand, a gradient, kept for the next step. It takes the place of the one of the step
  /// before once all else has taken that.
  bool holds_gradient_back = false;

  /// Makes rows and their ids of others that stand for the same: added up at their ids, both give the same
  /// table. Which rows those are is up to each device, so that its tiles are not those of the whole.
  /// Kernels make the ids alone where result 0 has no memory.
  bool joins_rows = false;

  /// The gradient of operand 0, a table, is a sum of rows at their ids.
  bool looks_up_rows = false;
  /// The result is that sum.
  bool adds_up_rows = false;

  /// Passes its operand through unchanged in evaluation.
  bool only_in_training = false;

  /// Kernels can add to result 0 instead of overwriting it (gradients summed over micro-batches).
  bool accumulates = false;

  /// Gradients for each operand (-1: none), given the gradient of each result (-1: none). Null: not
  /// differentiable; the operator then stops gradients.
  std::vector<ValueIndex> (*gradient)(GraphBuilder&, const Node&,
                                      std::span<const ValueIndex> result_gradients) = nullptr;

  /// What a model file may set: "name:kind" separated by spaces. Kinds are text, number, positive, share
  /// (from 0 to below 1), integer (1 or more), count (0 or more) and flag (0 or 1); "?" after the kind: may
  /// be left out; "*" at the end of a name: any ending.
  std::string_view settings = "";

  /// The operand that holds token ids (i32). All others are floating point.
  int ids = -1;

  /// An id of -1 stands for none: a target that is not there, of which there is no loss.
  bool takes_no_id = false;

  /// The ids are the structure of graphs (ops/vertex.h), by which rows are worked out round by round.
  bool runs_rounds = false;

  /// The ids are lengths: of this factor each sample has so many. Timings take all of it. Empty: they pick.
  std::string_view lengths_of = "";

  /// The ids are where each place begins to see this factor. Timings take all of it.
  std::string_view starts_of = "";

  /// "first second": does at once what these two do where the second has the first's result 0 as an operand,
  /// and nothing else has it (`with_fused_operators`). Its operands are the first's and the second's others,
  /// its results the second's and the first's others, its attributes those of whichever has some.
  std::string_view fuses = "";

  /// Made by autodiff and fusion alone; model files may not name it.
  bool internal = false;

  /// Draws random numbers while training and passes its operand through otherwise, and where its "rate" is 0.
  /// The attribute "stream" keeps the draws of two such nodes of a model apart.
  bool random = false;

  /// Attributes that do not change how long the operator takes, separated by spaces. Signatures leave them
  /// out, so that a measurement serves whatever they are.
  std::string_view untimed = "";
};

/// Sizes of factors that no operand shows: the attributes named "size_<factor>". Where a factor is split, its
/// attribute is divided with it.
std::map<std::string, std::int64_t> size_attributes(const Attributes&);

/// The rule of this call. Throws Error(input) naming the operator where operands do not fit.
ShardingRule rule_of(const OpDef&, const OpCall&);
std::vector<TensorType> result_types(const OpDef&, const OpCall&);
std::vector<TensorType> result_types(const OpDef&, const OpCall&, const ShardingRule&);  ///< its rule_of

double flops_of(const OpDef&, const OpCall&);
std::int64_t bytes_moved_by(const OpDef&, const OpCall&);
std::int64_t workspace_of(const OpDef&, const OpCall&, DeviceKind);

/// "einsum equation='b s k, k n -> b s n' f32[2x256x384] f32[384x1536]": what a profile knows a measurement
/// by.
std::string signature_of(const OpDef&, const OpCall&);

/// The operators by name.
class OpCatalog {
 public:
  explicit OpCatalog(std::span<const OpDef* const> ops) : ops_(ops) {}
  std::span<const OpDef* const> all() const { return ops_; }
  /// Throws Error(input) with the nearest name.
  const OpDef& find(std::string_view name) const;

 private:
  std::span<const OpDef* const> ops_;
};

}  // namespace alpa
