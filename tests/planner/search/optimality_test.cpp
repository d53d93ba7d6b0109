// Plans of random small models on random small clusters, beside the best of all plans there are.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

#include "libalpa/base/error.h"
#include "libalpa/base/units.h"
#include "libalpa/cluster/micro_batch_counts.h"
#include "libalpa/planner/search/stage_search.h"
#include "tests/support/every_plan.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  /// Below `end`; not by a distribution, which every library has its own of.
  int below(int end) { return static_cast<int>(random_() % static_cast<std::uint32_t>(end)); }
  template <class Value>
  Value of(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }
  bool once_in(int times) { return below(times) == 0; }
  /// Between powers of ten.
  double power(double low, double high) { return std::pow(10, low + (high - low) * below(1000) / 1000.0); }

 private:
  std::mt19937 random_;
};

struct SmallLayer {
  enum Kind { linear, gelu, residual, gated, tied } kind = linear;
  std::int64_t width = 8;  ///< of what it makes
};

/// Layers of few operators: most extents are odd, so that there are few ways to split them.
struct SmallNet {
  std::int64_t features = 8;
  std::vector<SmallLayer> layers;
  OptimizerKind optimizer = OptimizerKind::adamw;

  Graph graph(std::int64_t samples) const {
    GraphBuilder g(op_catalog());
    g.graph().samples = samples;
    ValueIndex x{-1}, shared{-1};
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::string name = "layer." + std::to_string(l);
      g.begin_layer(name);
      if (l == 0) x = g.input(InputKind::data, {DType::f32, {samples, features}}, "x");
      const std::int64_t width = g.type(x).shape[1];
      const auto weight = [&](const std::string& which) {
        return g.state(name + which, {DType::f32, {width, layers[l].width}}, {Initializer::Kind::normal, 0.1},
                       true);
      };
      const auto times = [&](ValueIndex w) {
        return g.add("einsum", {x, w}, {{"equation", "b d, d f -> b f"}});
      };
      switch (layers[l].kind) {
        case SmallLayer::linear:
          x = times(shared = weight(".weight"));
          break;
        case SmallLayer::gelu:
          x = g.add("gelu", {times(shared = weight(".weight"))});
          break;
        case SmallLayer::residual:
          x = g.add("add", {x, times(weight(".weight"))});
          break;
        case SmallLayer::gated:
          x = g.add("mul", {times(weight(".left")), times(weight(".right"))});
          break;
        case SmallLayer::tied:  // the weight of the last plain layer, the other way
          x = g.add("einsum", {x, shared}, {{"equation", "b f, d f -> b d"}});
          break;
      }
    }
    g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
    TrainingOptions options;
    options.optimizer = optimizer;
    return training_graph(g.finish(), op_catalog(), options);
  }

  std::string text() const {
    static const char* const words[] = {"linear", "gelu", "residual", "gated", "tied"};
    std::string text = fmt::format("{}", features);
    for (const SmallLayer& layer : layers) text += fmt::format(" {} {}", words[layer.kind], layer.width);
    return text + (optimizer == OptimizerKind::sgd ? ", sgd" : "");
  }
};

/// What is drawn from.
struct Sizes {
  int least_layers = 2, most_layers = 4;
  int one_even_in = 4;  ///< of widths
  std::vector<int> devices{1, 2, 2, 3, 4, 4};
};

SmallNet draw_net(Draw& draw, const Sizes& sizes) {
  SmallNet net;
  const auto width = [&]() -> std::int64_t {
    return draw.once_in(sizes.one_even_in) ? draw.of({4, 6, 8, 16}) : draw.of({3, 5, 7, 9, 15, 33});
  };
  net.features = width();
  net.optimizer = draw.of({OptimizerKind::adamw, OptimizerKind::sgd});
  std::int64_t before = net.features, shared_from = 0, shared_to = 0;
  const int layers = sizes.least_layers + draw.below(sizes.most_layers - sizes.least_layers + 1);
  for (int l = 0; l < layers; ++l) {
    SmallLayer layer{draw.of({SmallLayer::linear, SmallLayer::linear, SmallLayer::gelu, SmallLayer::residual,
                              SmallLayer::gated, SmallLayer::tied}),
                     width()};
    if (layer.kind == SmallLayer::tied && before != shared_to) layer.kind = SmallLayer::linear;
    if (layer.kind == SmallLayer::residual) layer.width = before;
    if (layer.kind == SmallLayer::tied) layer.width = shared_from;
    if (layer.kind == SmallLayer::linear || layer.kind == SmallLayer::gelu)
      shared_from = before, shared_to = layer.width;
    before = layer.width;
    net.layers.push_back(layer);
  }
  return net;
}

Cluster draw_cluster(Draw& draw, const std::vector<int>& devices) {
  Cluster cluster =
      small_cluster(devices[static_cast<std::size_t>(draw.below(static_cast<int>(devices.size())))]);
  if (cluster.devices_per_node % 2 == 0 && draw.once_in(2)) {
    cluster.nodes = 2;
    cluster.devices_per_node /= 2;
  }
  cluster.f32_flops_per_s = draw.power(7, 10);
  cluster.memory_bytes_per_s = draw.power(8, 10);
  cluster.launch_s = draw.power(-7, -5);
  cluster.within_node = {draw.power(-7, -5), draw.power(8, 10)};
  cluster.between_nodes = {draw.power(-6, -4), draw.power(7, 9)};
  return cluster;
}

struct RandomCase {
  PlanningModel model;
  Cluster cluster;
  std::vector<int> micro_batch_counts;
  bool is_tight = false;  ///< memory
  std::string text;
};

std::int64_t fullest(const Plan& plan) {
  std::int64_t most = 0;
  for (const MeshPrediction& mesh : plan.prediction.meshes) most = std::max(most, mesh.memory.total);
  return most;
}

RandomCase draw_case(Draw& draw, const Sizes& sizes) {
  const SmallNet net = draw_net(draw, sizes);
  RandomCase drawn;
  drawn.model = {"small", "", draw.of({2, 3, 4, 6, 8}),
                 [net](std::int64_t samples) { return net.graph(samples); }};
  drawn.cluster = draw_cluster(draw, sizes.devices);
  drawn.micro_batch_counts = micro_batch_counts(drawn.model.batch, drawn.model.batch);
  drawn.is_tight = draw.once_in(3);
  const double share = 0.6 + 0.1 * draw.below(5);
  if (drawn.is_tight)  // of what the best would take
    drawn.cluster.memory_bytes = static_cast<std::int64_t>(
        share * static_cast<double>(fullest(plan_quietly(drawn.model, drawn.cluster))));
  drawn.text = fmt::format("{}; batch {}; {} x {} devices{}", net.text(), drawn.model.batch,
                           drawn.cluster.nodes, drawn.cluster.devices_per_node,
                           drawn.is_tight ? " of " + bytes_text(drawn.cluster.memory_bytes) : "");
  return drawn;
}

struct Tally {
  int cases = 0, fitting = 0, complete = 0;
  int equal = 0, bounded = 0, within = 0;  ///< of those that fit
  int on_three_axes = 0;                   ///< of these, whose plan has such a mesh
  std::int64_t plans = 0;
};

/// "every plan of 1, 2, 4 micro-batches, cut ..."
bool is_covered(const Prediction& prediction, int micro_batches) {
  std::istringstream text(prediction.bound_covers.substr(std::string("every plan of ").size()));
  for (int count = 0; text >> count; text.ignore(1))
    if (count == micro_batches) return true;
  return false;
}

constexpr double kRounding = 1e-9;  ///< sums in another order

/// What make_plan finds, with all numbers of micro-batches looked at, beside the best plan there is. Cases
/// with too much to look at are drawn again.
void try_case(std::uint32_t seed, const EveryPlan::Limits& limits, Tally& tally, const Sizes& sizes = {}) {
  Draw draw(seed);
  RandomCase drawn;
  std::unique_ptr<CostModel> costs;
  std::unique_ptr<EveryPlan> every;
  do {
    drawn = draw_case(draw, sizes);
    costs = std::make_unique<CostModel>(drawn.cluster);
    EveryPlan::Limits own = limits;
    own.recomputes = drawn.is_tight;
    every = std::make_unique<EveryPlan>(drawn.model, *costs, drawn.micro_batch_counts, own);
  } while (!every->is_found());
  const EveryPlan::Best best = every->best();
  ++tally.cases;
  tally.complete += every->is_complete();
  tally.plans += best.plans;
  std::optional<Plan> plan;
  try {
    PlannerOptions options;
    options.effort = PlannerEffort::thorough;
    plan = plan_quietly(drawn.model, drawn.cluster, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::infeasible) throw;
    EXPECT_EQ(best.step_s, infinity) << "seed " << seed << ": " << error.happened() << "; " << drawn.text;
    return;
  }
  const Prediction& found = plan->prediction;
  EXPECT_LE(fullest(*plan), drawn.cluster.memory_bytes) << "seed " << seed;
  ++tally.fitting;
  const double best_s = std::min(best.step_s, found.step_s);
  double bounded_best_s = infinity;  // of the numbers of micro-batches that the bound covers
  for (const auto& [count, seconds] : best.of_count)
    if (is_covered(found, count)) bounded_best_s = std::min(bounded_best_s, seconds);
  const bool is_equal = found.step_s <= best_s * (1 + kRounding);
  const bool is_bounded = found.lower_bound_s <= bounded_best_s * (1 + kRounding);
  const bool is_within = found.step_s <= best_s * (1 + found.gap().value()) * (1 + kRounding);
  tally.equal += is_equal;
  tally.bounded += is_bounded;
  tally.within += is_within;
  tally.on_three_axes +=
      std::ranges::any_of(plan->meshes, [](const DeviceMesh& mesh) { return mesh.shape.size() == 3; });
  if (!is_equal || !is_bounded || !is_within)
    fmt::print(
        "seed {}: {}{}{}best {} with {} x {}; found {:.6f} of that with {} x {}, estimated {:.6f}, bound "
        "{:.6f}; {}\n",
        seed, is_equal ? "" : "slower; ", is_bounded ? "" : "bound above; ",
        is_within ? "" : "gap too small; ", seconds_text(best_s), best.plan.stages.size(),
        best.plan.micro_batches, found.step_s / best_s, plan->stages.size(), plan->micro_batches,
        found.estimate_s / best_s, found.lower_bound_s / best_s, drawn.text);
}

/// Of the cases that fit: how many plans may be slower than the best, as these still are. Twelve of the
/// fifteen have several stages. What the search minimises (pipeline_seconds) is not the step of a pipeline:
/// it has every stage wait for the first micro-batch in each other one, and take the norm of its gradients
/// after the last of all, while later stages do that earlier; stages are searched for under the first
/// schedule. And messages are priced before it is known who sends them. Sums of gradients are priced as if
/// all of them could share a bucket, without gaps between them. Eight of the fifteen are short of memory,
/// where layers may be recomputed in either form.
struct Known {
  int slower = 0;
};

void expect(const Tally& tally, const Known& known) {
  fmt::print(
      "{} cases, of which {} have plans that fit; {} plans lowered: in {} cases all there are\n"
      "equal to the best: {} ({:.1f} %); bound not above it: {}; within the printed gap: {}\n",
      tally.cases, tally.fitting, tally.plans, tally.complete, tally.equal,
      100.0 * tally.equal / tally.fitting, tally.bounded, tally.within);
  EXPECT_LE(tally.fitting - tally.equal, known.slower);
  EXPECT_EQ(tally.bounded, tally.fitting);
  EXPECT_EQ(tally.within, tally.fitting);
}

TEST(Optimality, OfFewSmallCases) {
  Tally tally;
  for (std::uint32_t seed = 0; seed < 16; ++seed) try_case(seed, {.plans = 200, .choices = 100}, tally);
  expect(tally, {.slower = 2});
}

// Eight devices are the fewest that three axes have.
TEST(Optimality, OfManySmallCasesOnUpToThreeAxes) {
  Tally tally;
  for (std::uint32_t seed = 0; seed < 40; ++seed)
    try_case(seed, {.plans = 200, .choices = 100}, tally,
             {.least_layers = 1, .most_layers = 2, .one_even_in = 2, .devices = {8}});
  expect(tally, {.slower = 1});
  EXPECT_GT(tally.on_three_axes, 0);
}

TEST(Optimality, OfManySmallCases) {
  Tally tally;
  for (std::uint32_t seed = 1000; seed < 1300; ++seed) try_case(seed, {.plans = 1000, .choices = 400}, tally);
  expect(tally, {.slower = 15});
}

}  // namespace
}  // namespace alpa
