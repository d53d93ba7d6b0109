#include "tests/kernels/small_training.h"

#include <cmath>

#include "libalpa/base/philox.h"
#include "tests/support/interpreter.h"
#include "tests/support/source_folder.h"

namespace alpa {
namespace {

Values initial_values(const Graph& graph, const State& state) {
  Values values(static_cast<std::size_t>(element_count(value_of(graph, state.value).type.shape)), 0.0);
  const std::string& name = state.follows.empty() ? state.name : state.follows;
  std::uint64_t stream = 0;
  for (const char c : name) stream = philox_key(stream, static_cast<unsigned char>(c));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (state.initializer.kind == Initializer::Kind::ones)
      values[i] = 1;
    else if (state.initializer.kind == Initializer::Kind::normal)
      values[i] = state.initializer.scale * static_cast<double>(philox_normal_at(stream, 0, i));
  return values;
}

}  // namespace

ModelDefinition small_model(const std::string& base, const std::string& dimensions,
                            const std::string& precision) {
  const std::filesystem::path source = source_folder();
  const std::string text =
      "name = \"small\"\nbase = \"" + base +
      "\"\n[dimensions]\nvocabulary = 29\nmodel = 24\nlayers = 2\nheads = 4\n" + dimensions +
      "[constants]\n[training]\nbatch = 4\nsequence = 13\nlearning_rate = 1e-2\nprecision = \"" + precision +
      "\"\n";
  return parse_model(text, (source / "configs/models/small.toml").string(), {source / "share/blocks"});
}

std::vector<double> losses(Device& device, const ModelDefinition& model, int steps) {
  const Graph graph = training_step_graph(model, 2);
  Interpreter interpreter(device, graph);
  for (const State& state : graph.states) interpreter.set(state.value, initial_values(graph, state));
  const auto value_of_input = [&](InputKind kind) {
    for (const Input& input : graph.inputs)
      if (input.kind == kind) return input.value;
    return ValueIndex();
  };
  const double tokens = 4 * 13;
  interpreter.set(value_of_input(InputKind::loss_scale), {1 / tokens});
  std::vector<double> history;
  for (int step = 1; step <= steps; ++step) {
    double loss = 0;
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      Values ids, targets;
      for (int sample = 0; sample < 2; ++sample)
        for (int i = 0, token = 5 * micro_batch + 7 * sample; i < 13; ++i) {
          ids.push_back(token);
          targets.push_back(token = (3 * token + 1) % 29);
        }
      interpreter.set(value_of_input(InputKind::tokens), ids);
      interpreter.set(value_of_input(InputKind::targets), targets);
      interpreter.run_micro_batch(micro_batch == 0, {1, step, 2 * micro_batch});
      loss += interpreter.get(graph.loss)[0] / tokens;
    }
    interpreter.set(value_of_input(InputKind::update_scalars),
                    {model.training.learning_rate, 1 - std::pow(model.training.beta1, step),
                     1 - std::pow(model.training.beta2, step), 0, 1, static_cast<double>(step)});
    interpreter.run_update({1, step, 0});
    history.push_back(loss);
  }
  return history;
}

}  // namespace alpa
