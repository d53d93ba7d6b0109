#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "libalpa/base/limits.h"
#include "libalpa/graph/op.h"
#include "libalpa/model/definition.h"
#include "libalpa/model/expression.h"
#include "libalpa/model/faults.h"

namespace alpa {

/// Bounds on what a model may unfold to; they stop a slip of the pen from filling the memory.
inline constexpr int kMaxBlockDepth = 32;
inline constexpr std::int64_t kMaxSteps = kMostLayers, kMaxWeights = 10'000;

inline constexpr ValueIndex kPoisoned;  ///< the value of a faulty step

/// Thrown when a bound is reached, after its fault was noted: going on would only take memory.
struct BoundReached {};

/// What the steps of one use of a block see. What its expressions are not is noted in `faults`.
struct Frame {
  ModelFaults& faults;
  std::string path;   ///< "block.3.attention", "" for the model itself
  std::string layer;  ///< "gpt.toml:12"
  int depth = 0;
  Numbers numbers;
  std::map<std::string, ValueIndex> values;
  std::map<std::string, ValueIndex> published = {};  ///< by a vertex function, by state

  std::string below(const std::string& name) const { return path.empty() ? name : path + "." + name; }
  std::string within() const;
  void fault(const SourceLocation&, const std::string& text) const;  ///< within() goes before

  std::optional<Number> number(const std::string& text, const SourceLocation&) const;
  /// An integer from 1 to `most`; `what` is what the message calls it.
  std::optional<std::int64_t> positive(const std::string& text, const SourceLocation&,
                                       const std::string& what, std::int64_t most = kMostElements) const;
  bool holds(const std::string& when, const SourceLocation&) const;
};

}  // namespace alpa
