#include "tests/support/reference.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "libalpa/runtime/executor.h"
#include "libalpa/trainer/step_runner.h"
#include "tests/trainer/own_samples.h"
#include "tests/trainer/tiny_training.h"

// The trainer against PyTorch: programs, the executor and what StepRunner feeds it, from PyTorch's weights on
// its samples. tests/model/reference_test.cpp compares the gradients of the same steps one by one, without a
// plan.
namespace alpa {
namespace {

/// Of every step of a reference, in its order.
class ReferenceBatches final : public BatchReader {
 public:
  ReferenceBatches(const Reference& reference, const Graph& graph, const TrainingOptions& options)
      : BatchReader(SampleOrder::of_rows(kSteps * options.batch, options, 0)), batch_(options.batch) {
    for (const Input& input : graph.inputs) {
      if (!input.is_of_samples()) continue;
      const Value& value = value_of(graph, input.value);
      inputs_.push_back(packed(reference.stored("/" + value.name, value.type.dtype, {}), value.type.dtype));
    }
    for (std::size_t step = 0; step < kSteps; ++step)
      targets_.push_back(static_cast<std::int64_t>(reference.targets(step, batch_)));
  }

  void fill(Split, std::int64_t first_sample, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override {
    std::vector<std::span<const std::byte>> batch;
    for (const std::vector<std::byte>& input : inputs_)
      batch.push_back(std::as_bytes(std::span(input))
                          .subspan(step_of(first_sample) * input.size() / kSteps, input.size() / kSteps));
    const OwnSamples own(samples, batch);
    for (std::size_t i = 0; i < into.size(); ++i) std::ranges::copy(own.spans()[i], into[i].begin());
  }

  std::int64_t target_count(Split, std::int64_t first_sample, std::int64_t) const override {
    return targets_[step_of(first_sample)];
  }

  std::string description() const override { return "samples of a reference"; }
  std::int64_t length() const override { return kSteps * batch_; }

  static constexpr std::size_t kSteps = 10;

 private:
  std::size_t step_of(std::int64_t sample) const { return static_cast<std::size_t>(sample / batch_); }

  std::int64_t batch_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::int64_t> targets_;
};

/// Gives the executor its tiles of these, each the whole tensor of a state.
void write_states(Executor& executor, const Graph& graph, const std::vector<Values>& states) {
  for (const StateTile& tile : executor.state_tiles()) {
    const StateIndex state = tile.state;
    const Shape& whole = value_of(graph, graph.states[state].value).type.shape;
    const Values mine = slice(states[state], whole, tile.origin, tile.tile.shape);
    executor.write_state(tile, packed(mine, tile.tile.dtype).data());
  }
}

class ReferenceTraining : public testing::TestWithParam<TinyCase> {};

TEST_P(ReferenceTraining, AsPyTorch) {
  const Reference reference(GetParam().model);
  const TinyTraining training(GetParam());
  const Graph& graph = training.graph();
  ReferenceBatches all_batches(reference, graph, training.options());
  std::vector<Values> states;
  for (const State& state : graph.states) states.push_back(reference.initial(graph, state));

  Values losses, norms;
  run_on_threads(training.plan().devices(), [&](int rank, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(graph, {&training.program()}, *device, world, 1);
    write_states(executor, graph, states);
    ReferenceBatches batches = all_batches;
    StepRunner runner(graph, executor, batches, batches, training.options());
    for (std::size_t step = 0; step < ReferenceBatches::kSteps; ++step) {
      const auto done = static_cast<std::int64_t>(step);
      const StepMetrics m = *runner.train(done, done * training.options().batch);
      if (rank != 0) continue;
      losses.push_back(m.loss);
      norms.push_back(m.gradient_norm);
    }
  });

  const auto near = [](const Values& expected) {
    std::vector<testing::Matcher<double>> matchers;
    for (const double value : expected)
      matchers.push_back(testing::DoubleNear(value, Reference::tolerance * value));
    return testing::ElementsAreArray(matchers);
  };
  EXPECT_THAT(losses, near(reference.losses()));
  EXPECT_THAT(norms, near(reference.gradient_norms()));
}

std::vector<TinyCase> serial_and_mixed() {
  std::vector<TinyCase> cases;
  for (const char* model : {"gpt", "llama", "bert", "moe", "deepseek_moe", "conformer", "lstm", "gru", "vit",
                            "wrn", "unet", "vgg", "densenet", "googlenet", "ncf", "lm1b", "documents"})
    for (const char* method : {"serial", "mixed"})
      cases.push_back({model, method, std::string(method) == "mixed" ? 4 : 1, 4});
  // Whose batch norms take four samples together, or whose graphs are packed by twos.
  for (const char* model : {"inception", "tree_lstm", "nary_tree_lstm", "tree_fc", "var_lstm", "graph_gru"})
    for (const TinyCase& plan :
         {TinyCase{"", "serial", 1, 2}, TinyCase{"", "mixed", 4, 2}, TinyCase{"", "data-parallel", 2, 1},
          TinyCase{"", "zero-2", 2, 2}, TinyCase{"", "tensor", 2, 1}, TinyCase{"", "inter-only", 2, 2}}) {
      cases.push_back(plan);
      cases.back().model = model;
    }
  // The copy of a tied table comes from the other node once, for all devices of this one.
  cases.push_back(
      {.model = "gpt", .method = "tensor x data, data x data", .devices = 8, .micro_batches = 2, .nodes = 2});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Plans, ReferenceTraining, testing::ValuesIn(serial_and_mixed()),
                         [](const auto& plan) { return plan.param.name(); });

}  // namespace
}  // namespace alpa
