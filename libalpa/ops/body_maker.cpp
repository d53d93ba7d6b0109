#include "libalpa/ops/body_maker.h"

#include <algorithm>

namespace alpa {

BodyMaker::BodyMaker(const Graph& graph, ValueIndex rows, ValueIndex structure)
    : graph_(graph), row_operands_{rows, structure} {}

void BodyMaker::take(const std::vector<NodeIndex>& nodes) {
  for (const NodeIndex n : nodes)
    for (const ValueIndex result : graph_.nodes[n].results) made_.insert(result);
  for (const NodeIndex n : nodes)
    for (const ValueIndex operand : graph_.nodes[n].operands) note(operand);
  nodes_ = nodes;
}

void BodyMaker::note(ValueIndex value) {
  if (made_.contains(value)) return;
  std::vector<ValueIndex>& list = is_row(value) ? row_operands_ : weights_;
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

int BodyMaker::number(ValueIndex value) const {
  const auto place = [value](const std::vector<ValueIndex>& list) {
    return static_cast<int>(std::ranges::find(list, value) - list.begin());
  };
  if (const int at = place(row_operands_); at < std::ssize(row_operands_)) return at;
  const int rows = static_cast<int>(row_operands_.size());
  if (const int at = place(weights_); at < std::ssize(weights_)) return rows + at;
  int number = rows + static_cast<int>(weights_.size());
  for (const NodeIndex n : nodes_) {
    if (graph_.nodes[n].results[0] == value) return number;
    ++number;
  }
  return -1;
}

VertexBody BodyMaker::body() const {
  VertexBody body;
  body.operands = static_cast<int>(row_operands_.size() + weights_.size());
  for (const NodeIndex n : nodes_) {
    const Node& node = graph_.nodes[n];
    body.steps.push_back({node.op, node.attributes, {}});
    for (const ValueIndex operand : node.operands) body.steps.back().of.push_back(number(operand));
  }
  return body;
}

std::vector<ValueIndex> BodyMaker::operands() const {
  std::vector<ValueIndex> all = row_operands_;
  all.insert(all.end(), weights_.begin(), weights_.end());
  return all;
}

bool BodyMaker::is_row(ValueIndex value) const {
  const Shape &shape = graph_.values[value].type.shape,
              &structure = graph_.values[row_operands_[1]].type.shape;
  return graph_.values[value].kind != ValueKind::state && shape.size() == 3 && shape[0] == structure[0] &&
         shape[1] == structure[1];
}

void add_again(GraphBuilder& g, const Node& node, std::map<ValueIndex, ValueIndex>& map) {
  std::vector<ValueIndex> operands;
  for (const ValueIndex operand : node.operands) {
    const auto found = map.find(operand);
    operands.push_back(found == map.end() ? operand : found->second);
  }
  const std::vector<ValueIndex> results =
      g.add_all(node.op->name, std::move(operands), node.attributes, node.name);
  for (std::size_t i = 0; i < results.size(); ++i) map[node.results[i]] = results[i];
}

}  // namespace alpa
