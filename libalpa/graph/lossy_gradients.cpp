#include "libalpa/graph/lossy_gradients.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/graph/low_rank.h"

namespace alpa {
namespace {

/// A state of the optimizer that starts as zeros, unless it says otherwise.
StateIndex add_state(GraphBuilder& builder, State added, const TensorType& type) {
  const ValueIndex value = builder.state(added.name, type, added.initializer, false);
  State& state = builder.graph().states.back();
  added.value = value;
  state = std::move(added);
  return builder.graph().states.index_of(state);
}

/// A parameter whose gradient is compressed.
class Compression {
 public:
  Compression(GraphBuilder& builder, ParameterGradient& gradient, std::int64_t rank)
      : builder_(builder),
        gradient_(gradient),
        shape_(builder.type(gradient.value).shape),
        rows_(low_rank_rows(shape_, rank)),
        rank_(rank) {}

  bool pays() const {
    return rows_ > 0 && 2 * LowRankExtents(shape_, rows_).factor_elements(rank_) <= element_count(shape_);
  }

  void multiply_by_right_factor() {
    if (builder_.type(gradient_.value).dtype != DType::f32)
      throw Error(ErrorKind::input,
                  fmt::format("the gradient of '{}' is summed in {}, and compressed ones are f32", name(),
                              dtype_name(builder_.type(gradient_.value).dtype)),
                  "gradient_sum = \"f32\", or gradient_compression = \"none\"");
    const Shape unpadded = parameter().unpadded;
    State error{name() + ".error"}, right{name() + ".factor"};
    error.unpadded = unpadded;
    error.holds_terms = true;
    right.initializer = {Initializer::Kind::normal, 1.0};
    if (!unpadded.empty()) right.unpadded = with_rank(unpadded);
    error_ = add_state(builder_, std::move(error), {DType::f32, shape_});
    right_ = add_state(builder_, std::move(right), {DType::f32, with_rank(shape_)});
    place();
    left_ = builder_.add("low_rank_product", {gradient_.value, at(error_).value, at(right_).value},
                         attributes(false), name() + ".left");
    send_as_gradient(left_);
  }

  void multiply_by_left_factor() {
    place();
    left_ = builder_.add("orthonormal_columns", {left_}, {}, name() + ".left.orthonormal");
    new_right_ = builder_.add("low_rank_product", {gradient_.value, at(error_).value, left_},
                              attributes(true), name() + ".right");
    send_as_gradient(new_right_);
  }

  void renew() {
    place();
    const ValueIndex right =
        builder_.add("renewed_columns", {at(right_).value, new_right_}, {}, name() + ".factor.update");
    at(right_).next = right;
    const ValueIndex low_rank =
        builder_.add("einsum", {left_, right}, {{"equation", product()}}, name() + ".low_rank");
    const std::vector<ValueIndex> of_error{at(error_).value, gradient_.value, new_right_, left_};
    at(error_).next = builder_.add("error_feedback", of_error, attributes(false), name() + ".error.update");
    gradient_.value = low_rank;
  }

 private:
  State& at(StateIndex state) { return builder_.graph().states[state]; }
  const State& parameter() { return at(gradient_.parameter); }
  const std::string& name() { return parameter().name; }
  void send_as_gradient(ValueIndex factor) {
    auto& values = builder_.graph().values;
    values[factor].wire = values[gradient_.value].wire;
  }
  void place() { builder_.set_place(Phase::update, gradient_.layer); }

  Attributes attributes(bool transposed) const {
    Attributes of{{"rows", static_cast<std::int64_t>(rows_)}};
    if (transposed) of.set("transposed", std::int64_t{1});
    return of;
  }

  /// Of a right factor.
  Shape with_rank(const Shape& shape) const {
    Shape factor(shape.begin() + rows_, shape.end());
    factor.push_back(rank_);
    return factor;
  }

  /// "a k, b k -> a b"
  std::string product() const {
    std::string rows, columns;
    for (int d = 0; d < static_cast<int>(shape_.size()); ++d)
      (d < rows_ ? rows : columns) += fmt::format("d{} ", d);
    return rows + "k, " + columns + "k -> " + rows + columns;
  }

  GraphBuilder& builder_;
  ParameterGradient& gradient_;
  Shape shape_;
  int rows_;  ///< leading dimensions
  std::int64_t rank_;
  StateIndex error_, right_;
  ValueIndex left_, new_right_;
};

}  // namespace

DelayedGradients::DelayedGradients(GraphBuilder& builder, std::int64_t steps,
                                   std::vector<ParameterGradient>& gradients) {
  for (ParameterGradient& gradient : gradients) {
    Held& held = held_.emplace_back(Held{gradient, {}});
    for (std::int64_t before = 1; before <= steps; ++before) {
      const State& parameter = builder.graph().states[gradient.parameter];
      State state{fmt::format("{}.gradient_before{}", parameter.name, before)};
      state.unpadded = parameter.unpadded;
      state.holds_terms = true;
      held.states.push_back(add_state(builder, std::move(state), builder.type(gradient.value)));
    }
    const ValueIndex oldest = builder.graph().states[held.states.back()].value;
    builder.graph().values[oldest].wire = builder.graph().values[gradient.value].wire;
    gradient.value = oldest;
  }
}

void DelayedGradients::keep(GraphBuilder& builder) {
  auto& states = builder.graph().states;
  for (const auto& [gradient, held] : held_) {
    builder.set_place(Phase::update, gradient.layer);
    for (std::size_t i = held.size(); i-- > 0;) {  // the oldest first, whose memory the next one takes over
      const ValueIndex newer = i > 0 ? states[held[i - 1]].value : gradient.value;
      const std::string name = states[held[i]].name + ".update";
      const ValueIndex next = builder.add("held_back", {newer}, {}, name);
      states[held[i]].next = next;
    }
  }
}

std::string lossy_gradients_text(const Graph& graph) {
  std::vector<std::string> ways;
  const auto add = [&](const std::string& way) {
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  };
  for (const Node& node : graph.nodes) {
    const Value& made = graph.values[node.results[0]];
    if (made.wire.sum_type) add(fmt::format("sent in {}", dtype_name(*made.wire.sum_type)));
    if (node.op->factors_gradient)
      add(fmt::format("sent as factors of rank {} (PowerSGD)", made.type.shape.back()));
  }
  // Of each gradient as many are held back as there are steps; the first of them takes none of the others.
  int held = 0, gradients = 0;
  for (const Node& node : graph.nodes)
    if (node.op->holds_gradient_back) {
      ++held;
      gradients += graph.values[node.operands[0]].kind != ValueKind::state ? 1 : 0;
    }
  const int delay = gradients > 0 ? held / gradients : 0;
  if (delay > 0) ways.push_back(fmt::format("used {} step{} later", delay, delay == 1 ? "" : "s"));
  return ways.empty() ? "" : fmt::format("gradients are {}", fmt::join(ways, ", "));
}

void compress_gradients(GraphBuilder& builder, std::int64_t rank, std::vector<ParameterGradient>& gradients) {
  std::vector<Compression> compressed;
  for (ParameterGradient& gradient : gradients)
    if (Compression each(builder, gradient, rank); each.pays()) compressed.push_back(std::move(each));
  if (compressed.empty())
    throw Error(ErrorKind::input,
                fmt::format("factors of rank {} have more than half of the elements of each gradient", rank),
                "a smaller compression_rank, or gradient_compression = \"none\"");
  // In this order the sums over devices of one parameter go on while others are multiplied.
  for (Compression& each : compressed) each.multiply_by_right_factor();
  for (Compression& each : compressed) each.multiply_by_left_factor();
  for (Compression& each : compressed) each.renew();
}

}  // namespace alpa
