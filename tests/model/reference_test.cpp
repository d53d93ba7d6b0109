#include "tests/support/reference.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/model/models.h"
#include "tests/support/interpreter.h"

// Training against PyTorch: tests/reference/*.py drew weights and samples, trained in float64 and wrote what
// came out. Losses agree to 1e-4 and each gradient to 1e-4 of its norm: of the GPT and the Llama at every
// step, of the others at the first and the last. How the trainer agrees is tested in
// tests/trainer/reference_test.cpp.
namespace alpa {
namespace {

double norm(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double distance(const Values& a, const Values& b) {
  Values difference;
  for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b.at(i));
  return norm(difference);
}

class ReferenceRun {
 public:
  explicit ReferenceRun(const std::string& name)
      : reference_(name),
        model_(model_file("tests/data/tiny_" + name + ".toml")),
        graph_(training_step_graph(model_, model_.training.batch)),
        device_(make_cpu_device(1)),
        step_(*device_, graph_) {
    for (const State& state : graph_.states) step_.set(state.value, reference_.initial(graph_, state));
  }

  void run() {
    const Values losses = reference_.losses(), norms = reference_.gradient_norms();
    for (std::size_t step = 0; step < losses.size(); ++step) {
      feed(step);
      const RunPoint point{1, static_cast<std::int64_t>(step), 0};
      step_.run_micro_batch(true, point);
      step_.run_update(point);
      EXPECT_NEAR(step_.get(graph_.loss)[0] / reference_.targets(step, model_.training.batch), losses[step],
                  Reference::tolerance * losses[step])
          << "step " << step;
      EXPECT_NEAR(std::sqrt(step_.get(graph_.gradient_square_sum)[0]), norms[step],
                  Reference::tolerance * norms[step])
          << "step " << step;
      if (reference_.file().has("/gradients/" + std::to_string(step))) compare_gradients(step, norms[step]);
      if (reference_.file().has("/slots")) compare_routing(step);
    }
  }

  int gradients_compared() const { return gradients_compared_; }

 private:
  /// Samples of step `step`, and the scalars of the optimizer after `step` steps at a constant rate.
  void feed(std::size_t step) {
    const TrainingOptions& options = model_.training;
    const double t = static_cast<double>(step) + 1;
    for (const Input& input : graph_.inputs) {
      const Value& value = value_of(graph_, input.value);
      if (input.is_of_samples())
        step_.set(input.value, reference_.stored("/" + value.name, value.type.dtype, {step}));
      if (input.kind == InputKind::loss_scale)
        step_.set(input.value, {1.0 / reference_.targets(step, model_.training.batch)});
      if (input.kind == InputKind::update_scalars)
        step_.set(input.value, {options.learning_rate, 1 - std::pow(options.beta1, t),
                                1 - std::pow(options.beta2, t), 0, 1, t});
    }
  }

  /// A gradient that is zero in exact arithmetic (of a key bias, which moves all scores of a query alike) is
  /// rounding alone; it is compared with the gradient of the whole model instead of its own norm.
  void compare_gradients(std::size_t step, double whole_norm) {
    for (const Node& node : graph_.nodes) {
      if (node.op->name != "adamw" && node.op->name != "sgd") continue;
      const std::string& name = value_of(graph_, node.operands[0]).name;
      const Values expected = reference_.file().doubles("/gradients/" + std::to_string(step) + "/" + name);
      const double floor = 1e-3 * whole_norm;
      EXPECT_LE(distance(step_.get(node.operands[1]), expected),
                Reference::tolerance * std::max(norm(expected), floor))
          << name << " at step " << step << ", norm " << norm(expected);
      ++gradients_compared_;
    }
  }

  void compare_routing(std::size_t step) {
    std::size_t routed = 0, balanced = 0;
    for (const Node& node : graph_.nodes) {
      if (node.op->name == "top_k_slots") compare_choices(node, step, routed++);
      if (node.op->name == "balance_loss") compare_balance(node, step, balanced++);
    }
    const auto layers = static_cast<std::size_t>(reference_.file().extent("/slots")[1]);
    EXPECT_THAT((std::vector{routed, balanced}), testing::Each(layers));

    double dropped = 0;
    for (const Metric& metric : graph_.metrics)
      for (const ValueIndex value : metric.values) dropped += step_.get(value)[0];
    EXPECT_EQ(dropped, std::ranges::count(reference_.stored("/slots", DType::i32, {step}), -1.0))
        << "step " << step;
    EXPECT_GT(dropped, 0) << "step " << step;
  }

  /// Logits are closer to the reference's than half of what any two choices of a token are apart, so that it
  /// must go where it went there.
  void compare_choices(const Node& node, std::size_t step, std::size_t layer) {
    const double margin = reference_.stored("/margins", DType::f32, {step, layer})[0];
    EXPECT_THAT(step_.get(node.operands[0]),
                testing::Pointwise(testing::DoubleNear(margin / 2),
                                   reference_.stored("/router_logits", DType::f32, {step, layer})))
        << "layer " << layer << ", step " << step;
    EXPECT_EQ(step_.get(node.results[0]), reference_.stored("/slots", DType::i32, {step, layer}))
        << "layer " << layer << ", step " << step;
  }

  void compare_balance(const Node& node, std::size_t step, std::size_t layer) {
    const Values of_tokens = step_.get(node.results[0]);
    const double sum = std::accumulate(of_tokens.begin(), of_tokens.end(), 0.0),
                 expected = reference_.stored("/balance_losses", DType::f32, {step, layer})[0];
    EXPECT_NEAR(sum / static_cast<double>(of_tokens.size()), expected, Reference::tolerance * expected)
        << "layer " << layer << ", step " << step;
  }

  Reference reference_;
  ModelDefinition model_;
  Graph graph_;
  std::unique_ptr<Device> device_;
  Interpreter step_;
  int gradients_compared_ = 0;
};

TEST(Reference, TenStepsOfTheTinyGptAreThoseOfPyTorch) {
  ReferenceRun run("gpt");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 10 * (2 + 4 * 16 + 2));
}

TEST(Reference, TenStepsOfTheTinyLlamaAreThoseOfPyTorch) {
  ReferenceRun run("llama");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 10 * (1 + 4 * 9 + 2));
}

/// Attention keeps the documents of a sequence apart.
TEST(Reference, TenStepsOfTheTinyLlamaOnDocumentsAreThoseOfPyTorch) {
  ReferenceRun run("documents");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 4 * 9 + 2));
}

/// Each step has another number of targets.
TEST(Reference, TenStepsOfTheTinyBertAreThoseOfPyTorch) {
  ReferenceRun run("bert");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (4 + 2 * 16 + 5));
}

/// Where tokens go, and what is dropped, too.
TEST(Reference, TenStepsOfTheTinyMixtureOfExpertsAreThoseOfPyTorch) {
  ReferenceRun run("moe");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (2 + 2 * 16 + 2 * (4 + 8 + 3) + 2));
}

/// With more choices, gated and shared experts.
TEST(Reference, TenStepsOfTheTinyFineGrainedMixtureAreThoseOfPyTorch) {
  ReferenceRun run("deepseek_moe");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 9 + 3 * (2 + 4 + 4 + 3) + 2));
}

TEST(Reference, TenStepsOfTheTinyConformerAreThoseOfPyTorch) {
  ReferenceRun run("conformer");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (6 + 2 * (6 + 10 + 12 + 6 + 2) + 2));
}

TEST(Reference, TenStepsOfTheTinyVisionTransformerAreThoseOfPyTorch) {
  ReferenceRun run("vit");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (3 + 2 * 16 + 4));
}

/// With Nesterov's momentum, and statistics over groups of two samples.
TEST(Reference, TenStepsOfTheTinyWideResnetAreThoseOfPyTorch) {
  ReferenceRun run("wrn");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (3 + 4 * 9 + 2 * 3 + 2));
}

/// Against layers that are given packed sequences, without padding.
TEST(Reference, TenStepsOfTheTinyLstmAreThoseOfPyTorch) {
  ReferenceRun run("lstm");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (2 * 2 * 3 + 2));
}

TEST(Reference, TenStepsOfTheTinyGruAreThoseOfPyTorch) {
  ReferenceRun run("gru");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (2 * 2 * 4 + 2));
}

TEST(Reference, TenStepsOfTheTinyVggAreThoseOfPyTorch) {
  ReferenceRun run("vgg");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (11 * 2 + 2 * 3));
}

TEST(Reference, TenStepsOfTheTinyDenseNetAreThoseOfPyTorch) {
  ReferenceRun run("densenet");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (3 * 10 + 2 + 2));
}

/// With the classifier on the side.
TEST(Reference, TenStepsOfTheTinyInceptionNetworkAreThoseOfPyTorch) {
  ReferenceRun run("inception");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (3 * (1 + 7 + 4 + 10 + 2 + 6 + 9) + 2 * 2));
}

/// With two classifiers on the side.
TEST(Reference, TenStepsOfTheTinyGoogLeNetAreThoseOfPyTorch) {
  ReferenceRun run("googlenet");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (3 * (3 + 2 * 6 + 2) + 2 * 4 + 2));
}

/// Against binary cross-entropy of one score.
TEST(Reference, TenStepsOfTheTinyNcfAreThoseOfPyTorch) {
  ReferenceRun run("ncf");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (4 + 3 * 2 + 2));
}

/// Against an LSTM that projects its state at each step.
TEST(Reference, TenStepsOfTheTinyModelOfWordsAreThoseOfPyTorch) {
  ReferenceRun run("lm1b");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 4 + 2));
}

/// Vertex by vertex: groups of graphs, some of whose vertices have several parents.
TEST(Reference, TenStepsOfTheTinyTreeLstmAreThoseOfPyTorch) {
  ReferenceRun run("tree_lstm");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 4 + 2));
}

TEST(Reference, TenStepsOfTheTinyNaryTreeLstmAreThoseOfPyTorch) {
  ReferenceRun run("nary_tree_lstm");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 3 + 2));
}

TEST(Reference, TenStepsOfTheTinyTreeFcAreThoseOfPyTorch) {
  ReferenceRun run("tree_fc");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 3 + 2));
}

/// Against PyTorch's cell of an LSTM, over sequences without padding.
TEST(Reference, TenStepsOfTheTinyVarLstmAreThoseOfPyTorch) {
  ReferenceRun run("var_lstm");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 3 + 2));
}

/// Against PyTorch's cell of a GRU.
TEST(Reference, TenStepsOfTheTinyGraphGruAreThoseOfPyTorch) {
  ReferenceRun run("graph_gru");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * (1 + 4 + 2));
}

TEST(Reference, TenStepsOfTheTinyUnetAreThoseOfPyTorch) {
  ReferenceRun run("unet");
  run.run();
  EXPECT_EQ(run.gradients_compared(), 2 * 343);
}

}  // namespace
}  // namespace alpa
