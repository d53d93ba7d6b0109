#include "libalpa/ops/vertex_gradient.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "libalpa/base/error.h"
#include "libalpa/ops/catalog.h"
#include "libalpa/ops/vertex_states.h"

namespace alpa {
namespace {

class VertexDifferentiator {
 public:
  VertexDifferentiator(const VertexBody& body, std::span<const TensorType> operands,
                       const std::vector<bool>& with_gradient)
      : body_(body), g_(vertex_catalog()) {
    for (const TensorType& type : operands)
      gradient_.values.push_back(g_.input(InputKind::data, type, "operand"));
    for (const VertexBody::Step& step : body.steps) {
      std::vector<ValueIndex> of;
      for (const int value : step.of) of.push_back(value_at(value));
      gradient_.values.push_back(g_.add(step.op->name, of, step.attributes));
    }
    gradient_.forward_nodes = static_cast<int>(body.steps.size());
    for (std::size_t r = 0; r < body.results.size(); ++r) {
      const ValueIndex value = value_at(body.results[r]);
      gradient_.of_results.emplace_back();
      if (!with_gradient[r]) continue;
      gradient_.of_results.back() = g_.input(InputKind::data, g_.type(value), "gradient");
      contributions_[value].push_back({gradient_.of_results.back()});
    }
    for (std::size_t s = 0; s < body.states.size(); ++s) {
      const ValueIndex value = value_at(body.states[s]);
      const Attributes of{{"state", static_cast<std::int64_t>(s)}, {"size_d", g_.type(value).shape.back()}};
      contributions_[value].push_back({g_.add("received", {value_at(0), value_at(1)}, of)});
    }
  }

  VertexGradient run() {
    for (int step = gradient_.forward_nodes - 1; step >= 0; --step) differentiate(step);
    for (int operand = 0; operand < body_.operands; ++operand)
      gradient_.of_operands.push_back(total(value_at(operand)));
    gradient_.graph = g_.finish();
    return std::move(gradient_);
  }

 private:
  /// Of a whole value, or of the part of it that begins there.
  struct Contribution {
    ValueIndex value;
    std::int64_t begin = -1;
  };

  ValueIndex value_at(int value) const { return gradient_.values[static_cast<std::size_t>(value)]; }

  void differentiate(int index) {
    const Node node = g_.graph().nodes[NodeIndex(index)];
    const ValueIndex dy = total(node.results[0]);
    if (dy < 0) return;
    if (node.op == &ops::gather) {
      gradient_.returns.push_back(
          {dy, static_cast<int>(node.attributes.integer("state")), node.attributes.integer("sum", 0) != 0});
    } else if (node.op == &ops::slice) {
      contributions_[node.operands[0]].push_back({dy, node.attributes.integer("begin")});
    } else {
      const std::vector<ValueIndex> of = node.op->gradient(g_, node, std::span(&dy, 1));
      for (std::size_t i = 0; i < of.size(); ++i)
        if (of[i] >= 0) contributions_[node.operands[i]].push_back({of[i]});
    }
  }

  ValueIndex added(ValueIndex sum, ValueIndex term) { return sum < 0 ? term : g_.add("add", {sum, term}); }

  /// Parts side by side make one value, without zeros that are added up.
  ValueIndex total(ValueIndex value) {
    const auto found = contributions_.find(value);
    if (found == contributions_.end()) return {};
    ValueIndex sum;
    std::map<std::int64_t, ValueIndex> parts;
    for (const Contribution& each : found->second)
      if (each.begin < 0)
        sum = added(sum, each.value);
      else if (const auto [part, is_new] = parts.try_emplace(each.begin, each.value); !is_new)
        part->second = added(part->second, each.value);
    if (parts.empty()) return sum;
    ValueIndex joined;
    std::int64_t end = 0;
    const auto join = [&](ValueIndex part) {
      end += g_.type(part).shape.back();
      joined = joined < 0 ? part : concat(joined, part);
    };
    for (const auto& [begin, part] : parts) {
      if (begin < end) throw Error(ErrorKind::input, "slices of a value overlap, expected them side by side");
      if (begin > end) join(zeros(value, end, begin - end));
      join(part);
    }
    if (const std::int64_t width = g_.type(value).shape.back(); width > end)
      join(zeros(value, end, width - end));
    return added(sum, joined);
  }

  /// Gates that two values have parts for, as of the input and of the state, are put together once.
  ValueIndex concat(ValueIndex left, ValueIndex right) {
    ValueIndex& both = concats_[{left, right}];
    if (both < 0) both = g_.add("concat", {left, right});
    return both;
  }

  /// The gradient of a part that leads nowhere.
  ValueIndex zeros(ValueIndex of, std::int64_t begin, std::int64_t width) {
    const ValueIndex part = g_.add("slice", {of}, {{"begin", begin}, {"size_c", width}});
    return g_.add("scale", {part}, {{"factor", 0.0}});
  }

  const VertexBody& body_;
  GraphBuilder g_;
  VertexGradient gradient_;
  std::map<ValueIndex, std::vector<Contribution>> contributions_;
  std::map<std::pair<ValueIndex, ValueIndex>, ValueIndex> concats_;
};

}  // namespace

VertexGradient gradient_of(const VertexBody& body, std::span<const TensorType> operands,
                           const std::vector<bool>& with_gradient) {
  return VertexDifferentiator(body, operands, with_gradient).run();
}

std::vector<int> needed_in_backward(const VertexBody& body, std::span<const TensorType> operands) {
  const VertexGradient gradient = gradient_of(body, operands, std::vector<bool>(body.results.size(), true));
  const Graph& graph = gradient.graph;
  std::set<ValueIndex> wanted;
  for (const ValueIndex of : gradient.of_operands)
    if (of >= 0) wanted.insert(of);
  for (const VertexGradient::Return& each : gradient.returns) wanted.insert(each.value);
  for (int i = static_cast<int>(graph.nodes.size()) - 1; i >= 0; --i) {
    const Node& node = graph.nodes[NodeIndex(i)];
    const bool in_backward = i >= gradient.forward_nodes;
    // Of a slice its source is kept.
    if ((in_backward || node.op == &ops::slice) && wanted.contains(node.results[0])) {
      wanted.insert(node.operands.begin(), node.operands.end());
      if (!in_backward) wanted.erase(node.results[0]);
    }
  }
  std::vector<int> needed;
  for (int value = body.operands; value < body.values(); ++value)
    if (wanted.contains(gradient.values[static_cast<std::size_t>(value)])) needed.push_back(value);
  return needed;
}

}  // namespace alpa
