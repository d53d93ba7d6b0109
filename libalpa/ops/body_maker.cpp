#include "libalpa/ops/body_maker.h"

#include <algorithm>

#include "libalpa/ops/vertex_states.h"

namespace alpa {
namespace {

std::vector<ValueIndex> mapped(std::vector<ValueIndex> values, const std::map<ValueIndex, ValueIndex>& map) {
  for (ValueIndex& value : values)
    if (const auto found = map.find(value); found != map.end()) value = found->second;
  return values;
}

}  // namespace

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
  if (made_.contains(value) || value == row_operands_[1]) return;  // the structure is there
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
  for (const ValueIndex value : given_) body.results.push_back(number(value));
  return body;
}

std::vector<ValueIndex> BodyMaker::operands() const {
  std::vector<ValueIndex> all = row_operands_;
  all.insert(all.end(), weights_.begin(), weights_.end());
  return all;
}

bool BodyMaker::is_row(ValueIndex value) const {
  const Value& of = graph_.values[value];
  return of.kind != ValueKind::state && has_rows(of.type, graph_.values[row_operands_[1]].type);
}

void BodyMaker::give(ValueIndex value) {
  if (made_.contains(value) && std::ranges::find(given_, value) == given_.end()) given_.push_back(value);
}

void BodyMaker::add_node(GraphBuilder& g, const char* op, const VertexBody& body, std::int64_t group,
                         const std::string& name, std::map<ValueIndex, ValueIndex>& map) const {
  Attributes attributes{{"rows", std::ssize(row_operands_)}, {"size_b", group}};
  set_body(attributes, body);
  const std::vector<ValueIndex> results = g.add_all(op, mapped(operands(), map), attributes, name);
  for (std::size_t i = 0; i < given_.size(); ++i) map[given_[i]] = results[i];
}

void add_again(GraphBuilder& g, const Node& node, std::map<ValueIndex, ValueIndex>& map) {
  const std::vector<ValueIndex> results =
      g.add_all(node.op->name, mapped(node.operands, map), node.attributes, node.name);
  for (std::size_t i = 0; i < results.size(); ++i) map[node.results[i]] = results[i];
}

}  // namespace alpa
