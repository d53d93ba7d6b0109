#include "libalpa/runtime/executor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "libalpa/schedule/schedule.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

constexpr int kSteps = 20;

/// What the serial plan does with a model.
const TinyCurve& serial_curve(const std::string& model, Precision precision, int steps,
                              std::int64_t batch = TinyCase().batch) {
  static std::map<std::tuple<std::string, Precision, int, std::int64_t>, TinyCurve> known;
  TinyCurve& curve = known[{model, precision, steps, batch}];
  if (curve.losses.empty())
    curve = TinyTraining({.model = model, .method = "serial", .precision = precision, .batch = batch})
                .run_on_threads(steps);
  return curve;
}

double sum_of_five(std::vector<double>::const_iterator first) {
  return std::accumulate(first, first + 5, 0.0);
}

/// Tolerances are relative.
void expect_near(const TinyCurve& run, const TinyCurve& reference, double of_losses, double of_norms) {
  ASSERT_LT(sum_of_five(reference.losses.end() - 5), sum_of_five(reference.losses.begin()))
      << testing::PrintToString(reference.losses);
  for (std::size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(run.losses[i], reference.losses[i], of_losses * reference.losses[i]) << "step " << i;
    EXPECT_NEAR(run.norms[i], reference.norms[i], of_norms * reference.norms[i]) << "step " << i;
  }
  EXPECT_NEAR(run.evaluation, reference.evaluation, of_losses * reference.evaluation);
}

/// Devices along an axis that all did the same would be no test of anything.
void expect_work_is_split(const TinyTraining& training) {
  const Plan& plan = training.plan();
  for (const StageIndex s : plan.stages.indices()) {
    const StagePlan& stage = plan.stages[s];
    std::vector<bool> is_split(plan.mesh_of(s).shape.size());
    for (const NodeIndex n : plan.node_strategy.indices()) {
      const int layer = training.graph().nodes[n].layer;
      if (layer < stage.first_layer || layer >= stage.end_layer) continue;
      for (std::size_t axis = 0; axis < is_split.size(); ++axis)
        is_split[axis] = is_split[axis] || plan.node_strategy[n][axis] >= 0;
    }
    EXPECT_THAT(is_split, testing::Each(true)) << "axes of stage " << s;
  }
}

class SameTraining : public testing::TestWithParam<TinyCase> {};

// Sums of f32 in another order: some hundred terms, each of which rounds, make ten roundings of each. Norms
// of gradients follow the states, whose smallest elements an optimizer moves as far as the largest.
TEST_P(SameTraining, AsSerial) {
  const TinyTraining training(GetParam());
  expect_work_is_split(training);
  const TinyCurve &serial = serial_curve(GetParam().model, Precision::f32, kSteps, GetParam().batch),
                  run = training.run_on_threads(kSteps);
  expect_near(run, serial, 10 * rounding_error(training.graph(), DType::f32), 1e-3);
  // Counts of samples and of routed tokens, or eighths and more of a sample: no choice of these runs is so
  // close that a rounding turns it. What is left is how sums of such fractions round.
  for (std::size_t i = 0; i < kSteps; ++i)
    EXPECT_THAT(run.metrics[i], testing::Pointwise(testing::DoubleNear(1e-4), serial.metrics[i]))
        << "step " << i;
}

class RandomOrders : public testing::TestWithParam<TinyCase> {};

// A checked device runs a step in an order drawn from those that the dependences allow, and watches for lanes
// that nothing keeps apart.
TEST_P(RandomOrders, GiveTheSameBits) {
  const TinyTraining training(GetParam());
  const TinyCurve listed = training.run_on_threads(3),
                  drawn = training.run_on_threads(3, [] { return make_checked_cpu_device(1); });
  EXPECT_EQ(drawn.losses, listed.losses);
  EXPECT_EQ(drawn.norms, listed.norms);
  EXPECT_EQ(drawn.evaluation, listed.evaluation);
  EXPECT_EQ(drawn.states, listed.states);
}

// Whatever order two threads happen to do a step in.
TEST_P(RandomOrders, OfOverlappingLanesGiveTheSameBits) {
  TinyTraining training(GetParam());
  const TinyCurve listed = training.run_on_threads(3);
  for (const Overlap overlap : {Overlap::transfers, Overlap::all}) {
    training.set_overlap(overlap);
    const TinyCurve overlapping = training.run_on_threads(3);
    EXPECT_EQ(overlapping.losses, listed.losses) << overlap_name(overlap);
    EXPECT_EQ(overlapping.norms, listed.norms) << overlap_name(overlap);
    EXPECT_EQ(overlapping.evaluation, listed.evaluation) << overlap_name(overlap);
    EXPECT_EQ(overlapping.states, listed.states) << overlap_name(overlap);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, RandomOrders,
    testing::Values(TinyCase{"gpt", "mixed", 4, 4}, TinyCase{"gpt", "mixed", 4, 4, "split-1f1b"},
                    TinyCase{"gpt", "zero-3", 4, 1}, TinyCase{"gpt", "ring", 2, 2},
                    TinyCase{"gpt", "inter-only", 2, 4, "eager-1f1b", Rematerialize::always},
                    TinyCase{"moe", "mixed", 4, 4, "gpipe"},
                    TinyCase{"unet", "inter-only", 4, 4, "split-1f1b"},
                    TinyCase{"unet", "inter-only", 4, 4, "split-1f1b", Rematerialize::always},
                    TinyCase{"unet", "interleaved", 4, 4, "split-1f1b"},
                    TinyCase{"gpt", "v-shaped", 4, 4, "1f1b", Rematerialize::always},
                    TinyCase{"gpt", "interleaved", 4, 4, "interleaved"},
                    TinyCase{"gpt", "v-shaped", 4, 4, "zero-bubble-v"},
                    TinyCase{"unet", "v-shaped", 4, 4, "v-min"},
                    TinyCase{"llama", "mixed", 4, 4, "split-1f1b", Rematerialize::selective},
                    TinyCase{"adafactor", "zero-3", 4, 1}, TinyCase{"gpt", "data x sequence x tensor", 8, 2}),
    [](const auto& plan) { return plan.param.name(); });

TEST(ModelMetrics, CountWhatAStepDid) {
  const auto sum_of = [](const char* model) {
    double sum = 0;
    for (const std::vector<double>& sums :
         TinyTraining({.model = model, .method = "serial"}).run_on_threads(3).metrics)
      for (const double metric : sums) sum += metric;
    return sum;
  };
  EXPECT_GT(sum_of("image_mlp"), 0);  // predictions that are right
  EXPECT_GT(sum_of("moe"), 0);        // choices without a place
}

/// The optimizer's first moments, one after the other: what the gradients of all steps add up to.
Values moments(const TinyCurve& curve) {
  Values all;
  for (const auto& [name, values] : curve.states)
    if (name.ends_with(".moment1") || name.ends_with(".momentum"))
      all.insert(all.end(), values.begin(), values.end());
  return all;
}

double distance(const Values& a, const Values& b) {
  return std::sqrt(std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus(),
                                         [](double x, double y) { return (x - y) * (x - y); }));
}

class SameTrainingInBf16 : public SameTraining {};

// No two plans round alike, nor do two processors, and twenty steps carry roundings as far as a model is
// chaotic. So what is compared is the first step, which starts from equal states, and the one after the first
// update.
TEST_P(SameTrainingInBf16, AsF32UpToTheRoundingsOfAStep) {
  constexpr int kFewSteps = 2;
  const TinyTraining training(GetParam());
  const TinyCurve run = training.run_on_threads(kFewSteps),
                  &exact = serial_curve(GetParam().model, Precision::f32, kFewSteps);
  const double error = rounding_error(training.graph(), DType::bf16);
  std::string deviations;  // in parts of what is allowed
  const auto expect_near = [&](double value, double wanted, double allowed) {
    EXPECT_NEAR(value, wanted, allowed);
    deviations += fmt::format("{:.4f} ", (value - wanted) / allowed);
  };
  for (std::size_t i = 0; i < kFewSteps; ++i) {
    SCOPED_TRACE(i);
    expect_near(run.losses[i], exact.losses[i], error * exact.losses[i]);
    // Beside what rounds, there are the choices that it turns: ReLUs, and experts of about that share of
    // tokens.
    expect_near(run.norms[i], exact.norms[i], 2 * error * exact.norms[i]);
  }
  expect_near(run.evaluation, exact.evaluation, error * exact.evaluation);
  // A share p of elements that are others moves a vector by sqrt(p) of its length; a sum over two ranks that
  // lacks one of them is half of it or more away. Not so where batch norms over two samples take most of a
  // gradient away: of what they leave, roundings and turned ReLUs are no small share.
  const Values zeros(moments(exact).size());
  if (GetParam().model != "wrn")
    expect_near(distance(moments(run), moments(exact)), 0,
                std::sqrt(error) * distance(moments(exact), zeros));
  RecordProperty("deviations", deviations);  // which scripts/instruction_sets.sh compares
  for (const State& state : training.graph().states) {
    if (state.follows.empty()) continue;
    EXPECT_EQ(run.states.at(state.follows), rounded(run.states.at(state.name), DType::bf16)) << state.name;
  }
}

class TrainingInBf16 : public testing::TestWithParam<const char*> {};

TEST_P(TrainingInBf16, Learns) {
  const TinyCurve& serial = serial_curve(GetParam(), Precision::bf16, kSteps);
  EXPECT_LT(sum_of_five(serial.losses.end() - 5), sum_of_five(serial.losses.begin()))
      << testing::PrintToString(serial.losses);
}

/// Plans split the sequences of token models. Of images and of arrays they know the samples only.
bool has_sequences(const std::string& model) {
  return model == "gpt" || model == "llama" || model == "mlp" || model == "bert" || model == "moe" ||
         model == "deepseek_moe";
}

/// The plans of every model, with no model in them yet.
std::vector<TinyCase> plans_of_a_model() {
  std::vector<TinyCase> plans{{"", "serial", 1, 4},
                              {"", "serial", 1, 2, "1f1b", Rematerialize::always},
                              {"", "serial", 1, 2, "1f1b", Rematerialize::selective},
                              {"", "data-parallel", 2, 1},
                              {"", "data-parallel", 4, 2},
                              {"", "data-parallel", 2, 4},
                              {"", "zero-1", 2, 1},
                              {"", "zero-2", 2, 2},
                              {"", "zero-3", 2, 2},
                              {"", "zero-3", 4, 1},
                              {"", "tensor", 2, 1},
                              {"", "sequence", 2, 1},
                              {"", "sequence", 4, 1},
                              {"", "ring", 2, 2},
                              {"", "ring", 4, 1},
                              {"", "inter-only", 2, 4},
                              {"", "inter-only", 2, 4, "gpipe"},
                              {"", "inter-only", 2, 4, "1f1b", Rematerialize::always},
                              {"", "inter-only", 2, 4, "split-1f1b", Rematerialize::always},
                              {"", "inter-only", 2, 4, "split-1f1b", Rematerialize::selective},
                              {"", "inter-only", 4, 8},
                              {"", "mixed", 4, 4, "1f1b", Rematerialize::automatic},
                              {"", "mixed", 4, 4, "1f1b", Rematerialize::selective},
                              {"", "interleaved", 4, 4},
                              {"", "interleaved", 4, 4, "gpipe", Rematerialize::always},
                              {"", "v-shaped", 4, 4, "eager-1f1b"},
                              {"", "v-shaped", 4, 4, "1f1b", Rematerialize::selective},
                              {"", "v-shaped", 4, 2, "split-1f1b", Rematerialize::always},
                              {"", "interleaved", 4, 4, "interleaved"},
                              {"", "interleaved", 4, 2, "interleaved", Rematerialize::automatic},
                              {"", "v-shaped", 4, 4, "zero-bubble-v"},
                              {"", "v-shaped", 4, 4, "v-half", Rematerialize::selective},
                              {"", "v-shaped", 4, 4, "v-min"},
                              {"", "intra-only", 4, 1},
                              {"", "search", 4, 1},
                              {"", "search", 4, 2}};
  for (const std::string& schedule : schedule_names(1)) {
    plans.push_back({"", "mixed", 4, 4, schedule});
    plans.push_back({"", "inter-only", 4, 4, schedule});
  }
  return plans;
}

std::vector<TinyCase> every_plan(std::initializer_list<const char*> models, Precision precision) {
  std::vector<TinyCase> cases;
  for (const char* model : models)
    for (const TinyCase& plan : plans_of_a_model()) {
      if ((plan.method == "sequence" || plan.method == "ring") && !has_sequences(model)) continue;
      // Micro-batches of one group, whose samples are split (tokens are routed within a rank).
      if (plan.method == "data-parallel" && plan.micro_batches == 4 && model != std::string("wrn")) continue;
      // What stages of one mesh hand to each other: within layers, past layers, with a state, with routing.
      if ((plan.method == "interleaved" || plan.method == "v-shaped") && model != std::string("gpt") &&
          model != std::string("moe") && model != std::string("wrn") && model != std::string("unet"))
        continue;
      // What only skip connections add: values that pass stages by.
      if (plan.method == "inter-only" && plan.devices == 4 && model != std::string("unet")) continue;
      // Two groups of samples (of a batch norm, of routed tokens) are too few for four ranks.
      if (plan.method == "data-parallel" && plan.devices == 4 &&
          (model == std::string("wrn") || model == std::string("moe")))
        continue;
      // Precisions differ in kernels and in what is sent, not in plans: a few for each model but the first.
      if (precision == Precision::bf16 && model != *models.begin() && plan.devices != 2 &&
          plan.method != "mixed")
        continue;
      cases.push_back(plan);
      cases.back().model = model;
      cases.back().precision = precision;
    }
  return cases;
}

const auto kModels = {"gpt",       "llama", "mlp", "bert", "image_mlp", "moe", "deepseek_moe",
                      "conformer", "lstm",  "gru", "vit",  "wrn",       "unet"};
constexpr auto kPlanName = [](const auto& plan) { return plan.param.name(); };
INSTANTIATE_TEST_SUITE_P(Plans, SameTraining, testing::ValuesIn(every_plan(kModels, Precision::f32)),
                         kPlanName);
INSTANTIATE_TEST_SUITE_P(Plans, SameTrainingInBf16, testing::ValuesIn(every_plan(kModels, Precision::bf16)),
                         kPlanName);

/// Eight ranks in three axes: one of each way to split that a model has, or two of one; and stages of these
/// beside others.
std::vector<TinyCase> three_axes() {
  std::vector<TinyCase> cases;
  for (const char* model : {"gpt", "llama", "bert", "moe", "deepseek_moe"})
    for (const char* method : {"data x sequence x tensor", "tensor x ring x data"})
      cases.push_back({model, method, 8, 2});
  for (const char* model : {"moe", "deepseek_moe"})
    for (const char* method : {"data x expert x tensor", "expert x tensor x data"})
      cases.push_back({model, method, 8, 1});
  for (const char* model : {"mlp", "image_mlp", "conformer", "lstm", "gru", "vit", "wrn", "unet", "adafactor",
                            "vgg", "densenet", "googlenet", "ncf", "lm1b"})
    cases.push_back({model, "data x data x tensor", 8, 1});
  cases.push_back({"gpt", "free x free x free", 8, 4, "1f1b", Rematerialize::always});
  for (const char* model : {"gpt", "unet"})
    cases.push_back({model, "data x data x tensor, tensor x data", 12, 2, "1f1b", Rematerialize::automatic});
  return cases;
}

/// Of other systems' evaluations: what their graphs add are values that are joined again, losses on the side,
/// tables beside each other and a product of weights; so a plan of each kind stands for all. Plans of the
/// Inception network are in tests/trainer/reference_test.cpp: through its 39 batch norms twenty steps carry a
/// rounding too far.
std::vector<TinyCase> plans_of_networks() {
  std::vector<TinyCase> cases;
  for (const char* model : {"vgg", "densenet", "googlenet", "ncf", "lm1b"})
    for (TinyCase plan :
         {TinyCase{"", "serial", 1, 4}, TinyCase{"", "data-parallel", 2, 2}, TinyCase{"", "zero-2", 2, 2},
          TinyCase{"", "tensor", 2, 1}, TinyCase{"", "inter-only", 2, 4, "1f1b", Rematerialize::always},
          TinyCase{"", "mixed", 4, 4}}) {
      plan.model = model;
      cases.push_back(plan);
    }
  return cases;
}

/// Of models over graphs, of which two samples are packed together.
std::vector<TinyCase> plans_of_graphs() {
  std::vector<TinyCase> cases;
  for (const char* model :
       {"tree_lstm", "nary_tree_lstm", "tree_fc", "var_lstm", "graph_gru", "tree_pair", "tree_rounds"})
    for (TinyCase plan :
         {TinyCase{"", "serial", 1, 4}, TinyCase{"", "zero-3", 4, 1}, TinyCase{"", "tensor", 2, 1},
          TinyCase{"", "inter-only", 2, 4, "1f1b", Rematerialize::always},
          TinyCase{"", "inter-only", 2, 4, "split-1f1b", Rematerialize::selective},
          TinyCase{"", "mixed", 4, 2}, TinyCase{"", "search", 4, 1}}) {
      // Nothing of a GRU's stage is worth splitting by tensors.
      if (plan.method == "mixed" && std::set<std::string>{"tree_pair", "tree_rounds"}.contains(model))
        plan = {"", "data-parallel", 4, 1};
      plan.model = model;
      cases.push_back(plan);
    }
  cases.push_back({"tree_pair", "zero-2", 2, 2});
  return cases;
}

/// Every two of model, policy, method, ranks and micro-batches in every combination: their numbers are those
/// of an orthogonal array. The packing has no part in the meaning: the serial plan has frontiers.
std::vector<TinyCase> packings_of_graphs() {
  constexpr const char* kGraphModels[] = {"tree_lstm", "tree_fc", "var_lstm", "graph_gru"};
  constexpr int kTwice[] = {0, 2, 3, 1}, kThreeTimes[] = {0, 3, 1, 2};  // in the field of four elements
  constexpr int kMicroBatches[] = {1, 2, 4, 4};
  std::vector<TinyCase> cases;
  for (int policy = 0; policy < 4; ++policy)
    for (int model = 0; model < 4; ++model) {
      TinyCase& c = cases.emplace_back();
      c.model = kGraphModels[model];
      c.batching = static_cast<BatchingPolicy>(policy);
      c.micro_batches = kMicroBatches[policy ^ model];
      c.devices = (policy ^ kTwice[model]) < 2 ? 2 : 4;
      c.method = (policy ^ kThreeTimes[model]) < 2 ? "data-parallel" : "zero-2";
      c.batch = 32;  // four ranks' groups of two samples in each of four micro-batches
    }
  return cases;
}

/// Of sequences of several documents, of which each stage finds the starts by itself.
std::vector<TinyCase> plans_of_documents() {
  std::vector<TinyCase> cases{
      {"", "serial", 1, 4}, {"", "zero-3", 2, 2},
      {"", "tensor", 2, 1}, {"", "sequence", 2, 1},
      {"", "ring", 2, 2},   {"", "inter-only", 2, 4, "split-1f1b", Rematerialize::selective},
      {"", "mixed", 4, 4}};
  for (TinyCase& each : cases) each.model = "documents";
  return cases;
}

/// Updates that take sums over rows and columns, of parameters that are split in every way.
std::vector<TinyCase> adafactor_plans(Precision precision) {
  std::vector<TinyCase> cases{{"adafactor", "data-parallel", 2, 1}, {"adafactor", "zero-2", 2, 2},
                              {"adafactor", "zero-3", 4, 1},        {"adafactor", "tensor", 2, 1},
                              {"adafactor", "inter-only", 2, 4},    {"adafactor", "mixed", 4, 4},
                              {"adafactor", "search", 4, 2}};
  for (TinyCase& each : cases) each.precision = precision;
  return cases;
}

/// Gradients that are summed in the type of the weights.
const TinyCase kRoundedSums[] = {
    {"bf16_sums", "data-parallel", 2, 1, "1f1b", Rematerialize::never, Precision::bf16},
    {"bf16_sums", "zero-2", 2, 2, "1f1b", Rematerialize::never, Precision::bf16},
    {"bf16_sums", "mixed", 4, 4, "1f1b", Rematerialize::never, Precision::bf16}};

INSTANTIATE_TEST_SUITE_P(ThreeAxes, SameTraining, testing::ValuesIn(three_axes()), kPlanName);
INSTANTIATE_TEST_SUITE_P(Networks, SameTraining, testing::ValuesIn(plans_of_networks()), kPlanName);
INSTANTIATE_TEST_SUITE_P(Graphs, SameTraining, testing::ValuesIn(plans_of_graphs()), kPlanName);
INSTANTIATE_TEST_SUITE_P(Packings, SameTraining, testing::ValuesIn(packings_of_graphs()), kPlanName);
INSTANTIATE_TEST_SUITE_P(Documents, SameTraining, testing::ValuesIn(plans_of_documents()), kPlanName);
INSTANTIATE_TEST_SUITE_P(RoundedSums, SameTrainingInBf16, testing::ValuesIn(kRoundedSums), kPlanName);
INSTANTIATE_TEST_SUITE_P(Adafactor, SameTraining, testing::ValuesIn(adafactor_plans(Precision::f32)),
                         kPlanName);
INSTANTIATE_TEST_SUITE_P(Adafactor, SameTrainingInBf16, testing::ValuesIn(adafactor_plans(Precision::bf16)),
                         kPlanName);
INSTANTIATE_TEST_SUITE_P(Models, TrainingInBf16, testing::ValuesIn(kModels),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace alpa
