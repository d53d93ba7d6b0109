#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// One loop of an operator's loop nest.
struct Factor {
  std::string name;
  std::int64_t size = 1;
  bool whole = false;    ///< must stay on one device
  bool maximum = false;  ///< results that lack it take the maximum over it, not the sum

  /// Another factor, or -1. It is split only together with that one, along the same axis: its blocks are
  /// passed around the devices, so that each of them meets every block of that factor (see Ring).
  int ring = -1;
};

/// The factors whose product is one dimension, outermost first. Only the outermost can be split.
using DimensionFactors = std::vector<int>;

/// How an operator's loops run over the dimensions of its operands and results, as in index notation:
/// `b s k, k n -> b s n`. Local shapes, the list of strategies, and the collective that a split owes all
/// follow from it: a factor that a result lacks is reduced away, and splitting it leaves that result partial.
struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<std::vector<DimensionFactors>> operands;  ///< [operand][dimension]
  std::vector<std::vector<DimensionFactors>> results;   ///< [result][dimension]

  /// Whether result `r` has no dimension with factor `f`, although some operand has it.
  bool reduces(int result, int factor) const;
};

/// Reads the notation
///
///     operand, operand -> result, result | whole t k | max v | ring t s
///
/// A dimension is a factor name or a product `(g r)`, outermost first. `...` stands for the dimensions that
/// are left in the first operand that has it (the same ones everywhere). `ring t s`: blocks of t are passed
/// around devices that split s (Factor::ring). An empty operand or result is a
/// scalar. Factor sizes follow from the operands' extents; `sizes` names those that appear in results alone.
/// Throws Error(input) where extents contradict each other; the text names the factor.
ShardingRule parse_rule(std::string_view notation, std::span<const TensorType> operands,
                        const std::map<std::string, std::int64_t>& sizes = {});

/// Extents of result `index` under the rule.
Shape result_shape(const ShardingRule&, int index);

}  // namespace alpa
