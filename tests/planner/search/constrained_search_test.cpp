// Plans under constraints: they meet them, and are the best of all plans that do.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "libalpa/base/error.h"
#include "libalpa/plan/compare_plans.h"
#include "libalpa/planner/search/constraints_file.h"
#include "libalpa/planner/search/met_constraints.h"
#include "tests/support/every_plan.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

constexpr double kSumRounding = 1e-9;  ///< sums in another order

/// Searched quickly; what is found is compared, not how good it is.
PlannerOptions under(const std::string& constraints) {
  PlannerOptions options;
  options.effort = PlannerEffort::quick;
  options.constraints = parse_constraints(constraints, "limits.toml");
  options.no_constraint_prices = true;
  return options;
}

bool meets(const PlannerOptions& options, const PlanningModel& model, const Plan& plan) {
  return unmet_constraints(options.constraints, plan, model.graph(plan.micro_batch_samples)).empty();
}

struct BestCase {
  const char* name;
  const char* constraint;
  double flops_per_s = 1e7;
  std::int64_t memory_bytes = small_cluster(2).memory_bytes;  ///< little: a pipeline pays
};

class BestUnderConstraint : public testing::TestWithParam<BestCase> {};

TEST_P(BestUnderConstraint, IsFoundWhereTheBestOfAllIsAgainstIt) {
  const PlanningModel model{"narrow and wide", "", 2,
                            [](std::int64_t samples) { return narrow_and_wide(samples, 2); }};
  Cluster cluster = small_cluster(2);
  cluster.f32_flops_per_s = GetParam().flops_per_s;
  cluster.memory_bytes = GetParam().memory_bytes;
  cluster.memory_bytes_per_s = 1e9;
  cluster.within_node = {1e-7, 1e9};
  const CostModel costs(cluster);
  PlannerOptions options = under(GetParam().constraint);
  options.effort = PlannerEffort::thorough;
  PlannerOptions open = options;
  open.constraints = {};
  EXPECT_FALSE(meets(options, model, plan_quietly(model, cluster, open)));
  EveryPlan every(model, costs, {1, 2},
                  {.plans = 3'000, .choices = 3'000, .wanted = [&](const Plan& plan, const Graph& graph) {
                     return unmet_constraints(options.constraints, plan, graph).empty();
                   }});
  ASSERT_TRUE(every.is_found());
  const EveryPlan::Best best = every.best();
  ASSERT_GT(best.plans, 0);
  const Prediction found = plan_quietly(model, cluster, options).prediction;
  EXPECT_NEAR(found.step_s, best.step_s, kSumRounding * best.step_s);
  EXPECT_LE(found.lower_bound_s, best.step_s * (1 + kSumRounding));
}

INSTANTIATE_TEST_SUITE_P(
    Constraints, BestUnderConstraint,
    testing::Values(BestCase{"two_stages", "stages = 2"}, BestCase{"one_stage", "most_stages = 1", 1e9, 4096},
                    BestCase{"micro_batches", "micro_batches = [2]"},
                    BestCase{"weight_whole", "[[tensor]]\nname = \"layer.1.weight\"\nwhole = true"},
                    BestCase{"weight_split", "[[tensor]]\nname = \"layer.0.weight\"\nsplit = 1", 1e9, 4096},
                    BestCase{"boundary", "[[boundary]]\nafter = \"layer.0\""},
                    BestCase{"together", "[[together]]\nlayers = [\"layer.0\", \"layer.1\"]", 1e9, 4096},
                    BestCase{"apart", "[[apart]]\ndevices = [0, 1]"}),
    [](const auto& best) { return best.param.name; });

/// Constraints and clusters at random: what is found is, but for one case, no worse than any plan that meets
/// the constraints, as far as these can be looked at, and its bound is not above them.
TEST(ConstrainedSearch, IsAsGoodAsEveryPlanThatMeetsRandomConstraints) {
  const std::vector<std::string> drawn_from{"most_tensor_parallel = 1\n",
                                            "most_zero = 0\n",
                                            "most_zero = 1\n",
                                            "stages = 2\n",
                                            "most_stages = 1\n",
                                            "micro_batches = [1]\n",
                                            "micro_batches = [2]\n",
                                            "recompute = \"never\"\n",
                                            "[[tensor]]\nname = \"layer.0.weight\"\nsplit = 1\n",
                                            "[[tensor]]\nname = \"*.weight\"\nwhole = true\n",
                                            "[[tensor]]\nname = \"layer.1.y\"\nwhole = true\n",
                                            "[[tensor]]\nname = \"layer.0.y\"\nsplit = 0\n",
                                            "[[boundary]]\nafter = \"layer.0\"\n",
                                            "[[together]]\nlayers = [\"layer.0\", \"layer.1\"]\n",
                                            "[[apart]]\ndevices = [0, 1]\n",
                                            "[[gradient]]\nname = \"*\"\nway = \"all-reduce\"\n",
                                            "[[gradient]]\nname = \"layer.1.*\"\nway = \"zero-2\"\n",
                                            "[[gradient]]\nname = \"layer.0.*\"\nway = \"zero-3\"\n",
                                            "[[gradient]]\nname = \"*.weight\"\nway = \"factors\"\n"};
  int met = 0, refused = 0, slower = 0;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t end) { return random() % end; };
    const auto power = [&](double low, double high) {
      return std::pow(10, low + (high - low) * static_cast<double>(below(1000)) / 1000);
    };
    const std::size_t first = below(drawn_from.size() - 1),
                      second = first + 1 + below(drawn_from.size() - first - 1);
    const std::string text = drawn_from[first] + drawn_from[second];
    if (text.find("stages = 2\nmost_stages") != std::string::npos ||
        text.find("]\nmicro") != std::string::npos || text.find("0\nmost_zero") != std::string::npos)
      continue;  // given twice
    const bool has_sharded = text.find("way = \"zero") != std::string::npos;
    if (text.find("[[gradient]]") != text.rfind("[[gradient]]") ||
        (has_sharded &&
         (text.find("most_zero") != std::string::npos || text.find("weight\"\nwhole") != std::string::npos)))
      continue;  // refused
    const PlanningModel model{"narrow and wide", "", 2,
                              [](std::int64_t samples) { return narrow_and_wide(samples, 2); }};
    Cluster cluster = small_cluster(2);
    cluster.f32_flops_per_s = power(7, 10);
    cluster.memory_bytes_per_s = power(8, 10);
    cluster.launch_s = power(-7, -5);
    cluster.within_node = {power(-7, -5), power(8, 10)};
    const CostModel costs(cluster);
    PlannerOptions options = under(text);
    options.effort = PlannerEffort::thorough;
    EveryPlan every(model, costs, {1, 2},
                    {.plans = 2'000, .choices = 2'000, .wanted = [&](const Plan& plan, const Graph& graph) {
                       return unmet_constraints(options.constraints, plan, graph).empty();
                     }});
    ASSERT_TRUE(every.is_found());
    const EveryPlan::Best best = every.best();
    try {
      const Prediction found = plan_quietly(model, cluster, options).prediction;
      ++met;
      slower += found.step_s > best.step_s * (1 + kSumRounding);
      EXPECT_LE(found.lower_bound_s, best.step_s * (1 + kSumRounding)) << text;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::infeasible) throw;
      ++refused;
      EXPECT_EQ(best.step_s, infinity) << text;
    }
  }
  EXPECT_GE(met, 15);
  EXPECT_GE(refused, 1);
  EXPECT_LE(slower, 1);  // sums of several kinds are priced as if they could share a bucket
}

/// On four devices of two nodes.
class GptUnderConstraint : public testing::TestWithParam<BestCase> {};

Cluster two_nodes() {
  Cluster cluster = small_cluster(2);
  cluster.nodes = 2;
  return cluster;
}

double unconstrained_s() {
  PlannerOptions options;
  options.effort = PlannerEffort::quick;
  static const double step_s = plan_quietly(small_model(), two_nodes(), options).prediction.step_s;
  return step_s;
}

TEST_P(GptUnderConstraint, MeetsItAndIsNoFasterThanThePlanWithout) {
  const PlannerOptions options = under(GetParam().constraint);
  const Plan plan = plan_quietly(small_model(), two_nodes(), options);
  EXPECT_TRUE(meets(options, small_model(), plan));
  EXPECT_LE(plan.prediction.lower_bound_s, plan.prediction.step_s);
  EXPECT_GE(plan.prediction.step_s, unconstrained_s() * (1 - kSumRounding));
}

INSTANTIATE_TEST_SUITE_P(
    Constraints, GptUnderConstraint,
    testing::Values(BestCase{"tensor_parallel", "most_tensor_parallel = 1\nmost_zero = 0\nstages = 2"},
                    BestCase{"zero_1", "most_zero = 1\nmost_stages = 1\nmicro_batches = [1]"},
                    BestCase{"always_recomputed", "recompute = \"always\"\nschedule = \"gpipe\"\nstages = 4"},
                    BestCase{"recomputed_selectively", "recompute = \"selective\"\nstages = 2"},
                    BestCase{"one_block_only",
                             "[[tensor]]\nname = \"block.1.up\"\nsplit = 1\n"
                             "[[tensor]]\nname = \"block.0.down\"\nwhole = true"},
                    BestCase{"results", "[[tensor]]\nname = \"b s d, d f -> b s f\"\nwhole = true\n"},
                    BestCase{"tied_table_split", "stages = 2\n[[tensor]]\nname = \"table\"\nsplit = 0"},
                    BestCase{"tied_table_zero", "stages = 2\nmost_zero = 0\n[[boundary]]\nbefore = \"head\""},
                    BestCase{"within_nodes", "[[apart]]\ndevices = [0, 2]"},
                    BestCase{"cut",
                             "[[boundary]]\nafter = \"embedding\"\n"
                             "[[together]]\nlayers = [\"block.0\", \"head\"]"}),
    [](const auto& best) { return best.param.name; });

TEST(ConstrainedSearch, BaselinesAgainstAConstraintAreNoCandidates) {
  PlannerOptions options = under("\nmost_zero = 1");
  const Plan plan = plan_quietly(small_model(), small_cluster(4), options);
  int against = 0;
  for (const Candidate& candidate : plan.prediction.candidates)
    if (candidate.method.starts_with("zero-2") || candidate.method.starts_with("zero-3")) {
      EXPECT_EQ(candidate.verdict, "violates a constraint: ZeRO at most 1 (limits.toml:2)");
      EXPECT_EQ(candidate.step_s, 0);
      ++against;
    }
  EXPECT_EQ(against, 2);
}

TEST(ConstrainedSearch, IsTheSameWhateverTheThreads) {
  PlannerOptions options =
      under("most_tensor_parallel = 1\nmost_zero = 1\n[[boundary]]\nafter = \"block.0\"");
  options.no_constraint_prices = false;
  options.threads = 1;
  const Plan one = plan_quietly(small_model(), small_cluster(4), options);
  options.threads = 4;
  EXPECT_EQ(one, plan_quietly(small_model(), small_cluster(4), options));
}

// --- prices

TEST(ConstraintPrices, AreStepsOfThePlansFoundWithoutEach) {
  const auto step_s = [](const std::string& constraints) {
    return plan_quietly(small_model(), small_cluster(4), under(constraints)).prediction.step_s;
  };
  PlannerOptions options = under("stages = 2\nmicro_batches = [8]");
  options.no_constraint_prices = false;
  const Prediction priced = plan_quietly(small_model(), small_cluster(4), options).prediction;
  PlannerOptions open = options;
  open.constraints = {};
  const double open_s = plan_quietly(small_model(), small_cluster(4), open).prediction.step_s;
  ASSERT_LT(open_s, priced.step_s);
  EXPECT_EQ(priced.unconstrained_s, open_s);
  EXPECT_EQ(
      priced.constraints,
      (std::vector<ConstraintPrice>{
          {"2 pipeline stages", "limits.toml:1", std::min(priced.step_s, step_s("micro_batches = [8]"))},
          {"8 micro-batches", "limits.toml:2", std::min(priced.step_s, step_s("stages = 2"))}}));
}

TEST(ConstraintPrices, AreNothingWhereThePlanIsTheSameWithoutAny) {
  PlannerOptions options = under("most_stages = 4\nmost_zero = 3");
  options.no_constraint_prices = false;
  const Prediction priced = plan_quietly(small_model(), small_cluster(4), options).prediction;
  EXPECT_EQ(priced.unconstrained_s, priced.step_s);
  ASSERT_EQ(priced.constraints.size(), 2u);
  for (const ConstraintPrice& price : priced.constraints) EXPECT_EQ(price.step_without_s, priced.step_s);
}

TEST(ConstraintPrices, AreNotLookedForWhereTheyAreNotWanted) {
  const Prediction plain = plan_quietly(small_model(), small_cluster(4), under("stages = 2")).prediction;
  EXPECT_EQ(plain.constraints, (std::vector<ConstraintPrice>{{"2 pipeline stages", "limits.toml:1", 0}}));
  EXPECT_EQ(plain.unconstrained_s, 0);
}

// --- constraints that cannot be met

struct Refused {
  const char* name;
  std::string constraints;
  ErrorKind kind;
  const char* message;
};

class RefusedConstraints : public testing::TestWithParam<Refused> {};

TEST_P(RefusedConstraints, AreNamedByTheirLines) {
  PlannerOptions options = under(GetParam().constraints);
  options.micro_batches = 1;
  try {
    plan_quietly(small_model(), small_cluster(4), options);
    ADD_FAILURE() << "a plan was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), GetParam().kind);
    EXPECT_THAT(error.happened(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Constraints, RefusedConstraints,
    testing::Values(
        Refused{"Layers", "[[boundary]]\nafter = \"blok.1\"\n[[boundary]]\nbefore = \"tail\"",
                ErrorKind::input,
                "limits.toml:1: the model has no layer 'blok.1'; did you mean 'block.1'?\n"
                "limits.toml:3: the model has no layer 'tail'; "},
        Refused{"Tensor", "\n[[tensor]]\nname = \"block.1.upp\"\nwhole = true", ErrorKind::input,
                "limits.toml:2: no parameter or activation of the model is called 'block.1.upp'; "
                "did you mean 'block.1.up'?"},
        Refused{"Dimension", "[[tensor]]\nname = \"block.*.up\"\nsplit = 2", ErrorKind::input,
                "limits.toml:1: 'block.0.up' has 2 dimensions, there is no dimension 2"},
        Refused{"MicroBatches", "micro_batches = [1, 3]", ErrorKind::input,
                "limits.toml:1: a batch of 8 does not divide into 3 micro-batches"},
        Refused{"Device", "[[apart]]\ndevices = [0, 4]", ErrorKind::input,
                "limits.toml:1: there is no device 4, devices are 0 to 3"},
        Refused{"Stages", "stages = 5", ErrorKind::input,
                "5 pipeline stages asked for, 4 layers and 4 devices allow 4"},
        Refused{"Gradient", "\n[[gradient]]\nname = \"block.*.upp\"\nway = \"zero-1\"", ErrorKind::input,
                "limits.toml:2: no parameter of the model is called 'block.*.upp'; did you mean 'block."},
        Refused{
            "GradientOfTiedWeights", "[[gradient]]\nname = \"table\"\nway = \"zero-1\"", ErrorKind::input,
            "limits.toml:1: the gradient of 'table' cannot be synchronised by zero-1: it is added to others"},
        Refused{"GradientWithoutFactors", "[[gradient]]\nname = \"block.1.up*\"\nway = \"factors\"",
                ErrorKind::input,
                "limits.toml:1: the gradient of 'block.1.up.bias' cannot be synchronised by factors: it is "
                "not a product of two factors; 'all-reduce' takes any"},
        Refused{"GradientInTwoWays",
                "[[gradient]]\nname = \"block.0.*\"\nway = \"zero-1\"\n"
                "[[gradient]]\nname = \"block.*.down\"\nway = \"zero-2\"",
                ErrorKind::input,
                "limits.toml:4: the gradient of 'block.0.down' by zero-2 together with gradients of "
                "'block.0.*' by "
                "zero-1 (limits.toml:1); one of the two without the other"},
        Refused{"GradientAboveTheLevel", "most_zero = 1\n[[gradient]]\nname = \"*.up\"\nway = \"zero-2\"",
                ErrorKind::input,
                "the gradient of 'block.0.up' by zero-2 together with ZeRO at most 1 (limits.toml:1)"},
        Refused{"GradientOfAWholeTensor",
                "[[tensor]]\nname = \"*.up\"\nwhole = true\n[[gradient]]\nname = \"*.up\"\nway = \"zero-3\"",
                ErrorKind::input, "'block.0.up' by zero-3 together with '*.up' whole (limits.toml:1)"},
        Refused{
            "Contradiction",
            "most_zero = 1\n[[boundary]]\nafter = \"block.0\"\n"
            "[[together]]\nlayers = [\"embedding\", \"head\"]",
            ErrorKind::infeasible,
            "no plan meets these together: limits.toml:2 (a stage ends with layer 'block.0'), limits.toml:4 "
            "(layers 'embedding' to 'head' on one stage)"},
        Refused{"Impossible",
                "most_zero = 1\n[[tensor]]\nname = \"block.0.norm1.bias\"\nsplit = 0\n"
                "[[apart]]\ndevices = [0, 1]",
                ErrorKind::infeasible,
                "no plan meets limits.toml:2 ('block.0.norm1.bias' split in dimension 0)"}),
    [](const auto& refused) { return refused.param.name; });

TEST(ConstrainedSearch, RefusesOptionsThatSayOtherwise) {
  const auto refuses = [](const PlannerOptions& options, const char* message) {
    try {
      plan_quietly(small_model(), small_cluster(4), options);
      ADD_FAILURE() << "a plan was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.happened(), HasSubstr(message));
    }
  };
  PlannerOptions options = under("micro_batches = [4, 8]\nrecompute = \"never\"\nschedule = \"gpipe\"");
  options.micro_batches = 2;
  refuses(options, "--micro-batches 2 together with limits.toml:1: 4 or 8 micro-batches");
  options.micro_batches = 4;
  options.rematerialize = Rematerialize::always;
  refuses(options, "--rematerialize always together with limits.toml:2: nothing recomputed");
  options.rematerialize = Rematerialize::selective;
  refuses(options, "--rematerialize selective together with limits.toml:2: nothing recomputed");
  options.rematerialize = Rematerialize::never;
  options.schedule = "zero-bubble";
  refuses(options, "--schedule zero-bubble together with limits.toml:3: schedule gpipe");
  options = under("overlap = \"all\"\nsync = \"ddp\"");
  options.sync = "one";
  refuses(options, "--sync one together with limits.toml:2: sync ddp");
  options.pin = parse_pin("[[stage]]\nlayers = 4\nmesh = [4]\n", "pin.toml");
  options.schedule = PlannerOptions{}.schedule, options.micro_batches = 0;
  refuses(options, "--constraints together with --pin");
}

// A search would have meshes of 2 and 4 devices.
TEST(ConstrainedSearch, HoldsAWayAgainstTheMeshOfThePinnedStageAlone) {
  const auto plan_of = [](std::int64_t width, const char* parameter, const char* mesh_of_first) {
    PlannerOptions options =
        under(std::string("[[gradient]]\nname = \"") + parameter + "\"\nway = \"zero-1\"");
    options.pin = parse_pin(std::string("[[stage]]\nlayers = 3\nmesh = ") + mesh_of_first +
                                "\n[[stage]]\nlayers = 1\nmesh = []\n",
                            "pin.toml");
    const auto graph = [=](std::int64_t samples) {
      return training_graph(tiny_gpt_forward(samples, 2, 8, width, 1), op_catalog(), {});
    };
    return plan_quietly({"tiny", "", 8, graph}, small_cluster(4), options);
  };
  EXPECT_THAT([&] { plan_of(16, "block.*.up", "[3]"); },
              testing::ThrowsMessage<Error>(HasSubstr(
                  "none of its dimensions (16 x 64) divides by 3 devices; 'all-reduce' takes any")));
  EXPECT_EQ(plan_of(16, "block.*.up", "[2]").stages.size(), 2);
  EXPECT_EQ(plan_of(15, "block.0.norm1.gain", "[3]").stages.size(), 2);
  EXPECT_EQ(plan_of(16, "norm.gain", "[3]").stages.size(), 2);  // of the stage on one device
}

TEST(ConstrainedSearch, ConstraintsThatAreNotWhyAreNotBlamed) {
  Cluster cluster = small_cluster(2);
  cluster.memory_bytes = 10'000;
  try {
    plan_quietly(small_model(), cluster, under("most_zero = 2"));
    ADD_FAILURE() << "a plan was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::infeasible);
    EXPECT_THAT(error.happened(), AllOf(HasSubstr("no plan fits"), Not(HasSubstr("limits.toml"))));
  }
}

}  // namespace
}  // namespace alpa
