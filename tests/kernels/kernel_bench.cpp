// bench_kernels [MODEL.toml] [f32|bf16] [threads] [steps] [cpu|cuda]: runs a model's training step operator
// by operator on one device and prints what each kind of call costs, with its rates, and the tokens per
// second that this amounts to: of all of it, and of products alone.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <vector>

#include "libalpa/base/error.h"
#include "libalpa/model/model.h"
#include "tests/support/interpreter.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Small random weights, tokens of a small vocabulary, targets, sequences of full length; nothing that makes
/// a kernel's work special.
void fill(Interpreter& interpreter, const Graph& graph) {
  for (const State& state : graph.states) {
    const std::int64_t count = element_count(value_of(graph, state.value).type.shape);
    const bool moment = !state.is_parameter && state.follows.empty();
    interpreter.set(state.value, moment ? Values(static_cast<std::size_t>(count), 0.0)
                                        : uniform_values(count, -0.03, 0.03, 1));
  }
  for (const Input& input : graph.inputs) {
    Values values(static_cast<std::size_t>(element_count(value_of(graph, input.value).type.shape)), 1.0);
    if (input.kind == InputKind::tokens || input.kind == InputKind::targets)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 101);
    if (input.below > 0) std::fill(values.begin(), values.end(), static_cast<double>(input.below - 1));
    if (input.kind == InputKind::loss_scale) values[0] = 1e-3;
    if (input.kind == InputKind::update_scalars) values = {1e-6, 0.5, 0.5, 0, 1, 1};
    interpreter.set(input.value, values);
  }
}

/// All nodes with the same operator and operand shapes.
struct Line {
  int count = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print_step(const Graph& graph, const Indexed<NodeIndex, std::vector<double>>& seconds) {
  std::map<std::string, Line> lines;
  std::map<std::string, Line> by_op;
  double total = 0, of_products = 0;
  for (const NodeIndex n : graph.nodes.indices()) {
    const Node& node = graph.nodes[n];
    const std::vector<TensorType> operands = operand_types(graph, node);
    const OpCall call{operands, node.attributes};
    const std::string signature =
        node.op->reduces_globally ? std::string(node.op->name) : signature_of(*node.op, call);
    const double time = median(seconds[n]);
    for (Line* line : {&lines[signature], &by_op[std::string(node.op->name)]}) {
      ++line->count;
      line->seconds += time;
      line->flops += flops_of(*node.op, call);
      line->bytes += static_cast<double>(bytes_moved_by(*node.op, call));
    }
    total += time;
    if (node.op->is_product) of_products += time;
  }
  const auto slowest_first = [](const std::map<std::string, Line>& from) {
    std::vector<std::pair<std::string, Line>> sorted(from.begin(), from.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    return sorted;
  };
  fmt::print("{:>6} {:>9} {:>9} {:>8} {:>7}  call\n", "calls", "ms each", "ms all", "GFLOP/s", "GB/s");
  for (const auto& [signature, line] : slowest_first(lines))
    fmt::print("{:>6} {:>9.3f} {:>9.2f} {:>8.1f} {:>7.1f}  {}\n", line.count, 1e3 * line.seconds / line.count,
               1e3 * line.seconds, 1e-9 * line.flops / line.seconds, 1e-9 * line.bytes / line.seconds,
               signature.substr(0, 150));
  fmt::print("\n");
  for (const auto& [op, line] : slowest_first(by_op))
    fmt::print("{:>9.2f} ms {:>5.1f} % {:>9.1f} GFLOP/s {:>7.1f} GB/s  {}\n", 1e3 * line.seconds,
               100 * line.seconds / total, 1e-9 * line.flops / line.seconds, 1e-9 * line.bytes / line.seconds,
               op);
  for (const Input& input : graph.inputs)
    if (input.kind == InputKind::tokens) {
      const double tokens = static_cast<double>(element_count(value_of(graph, input.value).type.shape));
      fmt::print("{:>9.2f} ms in all, {:.0f} tokens/s\n", 1e3 * total, tokens / total);
      fmt::print("{:>9.2f} ms of products alone, {:.0f} tokens/s\n", 1e3 * of_products, tokens / of_products);
    }
}

int run(int argc, char** argv) {
  const std::filesystem::path source = source_folder();
  ModelDefinition model = read_model(argc > 1 ? argv[1] : (source / "configs/models/gpt-bench.toml").string(),
                                     {source / "share/blocks"});
  if (argc > 2) model.training.precision = std::string(argv[2]) == "bf16" ? Precision::bf16 : Precision::f32;
  const int steps = argc > 4 ? std::atoi(argv[4]) : 5;
  const Graph graph = training_step_graph(model, model.training.batch);
  const bool on_gpu = argc > 5 && std::string(argv[5]) == "cuda";
  const auto device = on_gpu ? make_cuda_device(0) : make_cpu_device(argc > 3 ? std::atoi(argv[3]) : 2);
  Interpreter interpreter(*device, graph);
  fill(interpreter, graph);
  Indexed<NodeIndex, std::vector<double>> seconds(graph.nodes.size());
  for (int step = 0; step <= steps; ++step)
    for (const NodeIndex n : graph.nodes.indices()) {
      const double start = seconds_now();
      interpreter.run_node(n, false, {1, step, 0});
      interpreter.synchronize();
      if (step > 0) seconds[n].push_back(seconds_now() - start);  // the first step takes the pages
    }
  fmt::print("{}, loss {}\n", device->description(), interpreter.get(graph.loss)[0]);
  print_step(graph, seconds);
  return 0;
}

}  // namespace
}  // namespace alpa

int main(int argc, char** argv) {
  try {
    return alpa::run(argc, argv);
  } catch (const alpa::Error& error) {
    fmt::print(stderr, "bench_kernels: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
}
