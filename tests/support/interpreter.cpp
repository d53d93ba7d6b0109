#include "tests/support/interpreter.h"

#include <algorithm>

#include "libalpa/kernels/make_kernel.h"

namespace alpa {
Interpreter::Interpreter(Device& device, const Graph& graph)
    : graph_(graph), stream_(device.make_stream()), data_(graph.values.size(), nullptr) {
  std::int64_t workspace_bytes = 0;
  for (const ValueIndex v : graph.values.indices()) {
    if (graph.values[v].kind == ValueKind::computed) continue;
    memory_.push_back(device.allocate(byte_count(graph.values[v].type)));
    data_[v] = memory_.back()->data();
  }
  for (const Node& node : graph.nodes) {
    KernelShape shape{operand_types(graph, node), {}, node.attributes};
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const ValueIndex result = node.results[r];
      shape.results.push_back(value_of(graph, result).type);
      const int overwritten = node.op->overwritten(r);
      if (overwritten >= 0) {
        data_[result] = data_[node.operands[overwritten]];
        continue;
      }
      memory_.push_back(device.allocate(byte_count(shape.results.back())));
      data_[result] = memory_.back()->data();
    }
    workspace_bytes =
        std::max(workspace_bytes, workspace_of(*node.op, {shape.operands, node.attributes}, device.kind()));
    kernels_.push_back(make_kernel(device, *node.op, shape));
  }
  workspace_ = device.allocate(workspace_bytes);
}

void Interpreter::set(ValueIndex value, const Values& elements) {
  const std::vector<std::byte> bytes = packed(elements, value_of(graph_, value).type.dtype);
  stream_->copy_to_device(data_[value], bytes.data(), static_cast<std::int64_t>(bytes.size()));
  stream_->synchronize();
}

Values Interpreter::get(ValueIndex value) const {
  const TensorType& type = value_of(graph_, value).type;
  std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(type)));
  stream_->copy_to_host(bytes.data(), data_[value], static_cast<std::int64_t>(bytes.size()));
  stream_->synchronize();
  return unpacked(bytes, type.dtype);
}

void Interpreter::run_node(NodeIndex n, bool accumulate, const RunPoint& point) {
  const Node& node = graph_.nodes[n];
  std::vector<Tile> operands, results;
  for (const ValueIndex value : node.operands) operands.push_back({data_[value], {}, {}});
  for (const ValueIndex value : node.results) results.push_back({data_[value], {}, {}});
  kernels_[n]->run(*stream_, operands, results, workspace_->data(), accumulate, point);
}

void Interpreter::run_micro_batch(bool first, const RunPoint& point) {
  for (const NodeIndex n : graph_.nodes.indices()) {
    const Node& node = graph_.nodes[n];
    if (node.phase != Phase::update) run_node(n, !first && node.op->sums_micro_batches, point);
  }
}

void Interpreter::run_forward(const RunPoint& point) {
  for (const NodeIndex n : graph_.nodes.indices())
    if (graph_.nodes[n].phase == Phase::forward) run_node(n, false, point);
}

void Interpreter::run_update(const RunPoint& point) {
  for (const NodeIndex n : graph_.nodes.indices())
    if (graph_.nodes[n].phase == Phase::update) run_node(n, false, point);
}

}  // namespace alpa
