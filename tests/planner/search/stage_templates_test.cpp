// What is said of stages before any is solved: bounds that hold for every range of layers, and parts of
// templates that are near what solving finds.
#include "libalpa/planner/search/stage_templates.h"

#include <gmock/gmock.h>

#include <array>
#include <random>
#include <span>

#include "libalpa/base/infinity.h"
#include "libalpa/model/model.h"
#include "libalpa/planner/search/stage_estimates.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;

struct TemplateCase {
  const char* model;  ///< of tests/data
  MeshShape mesh;
};
void PrintTo(const TemplateCase& c, std::ostream* out) { *out << c.model << " on " << mesh_text(c.mesh); }

class Templates : public testing::TestWithParam<TemplateCase> {
 protected:
  Templates() {
    const std::filesystem::path source = ALPA_SOURCE_DIR;
    graph_ = training_step_graph(
        read_model(source / "tests/data" / ("tiny_" + std::string(GetParam().model) + ".toml"),
                   {source / "share/blocks"}),
        4);
    planning_ = std::make_unique<PlanningGraph>(prepare(graph_));
    mesh_costs_ = std::make_unique<MeshCosts>(graph_, GetParam().mesh, costs_);
  }

  static Cluster cluster() {
    Cluster cluster = small_cluster(4);
    cluster.f32_flops_per_s = 1e9;  // slow devices: what is split, and how, shows
    return cluster;
  }

  std::unique_ptr<TemplateFront> front(LayerForm form) const {
    TemplateOptions options;
    options.micro_batches = kMicroBatches;
    options.rematerialize = form;
    options.most_in_flight = 8;
    auto front = std::make_unique<TemplateFront>(*planning_, *mesh_costs_, options);
    front->find_bound({0, 1}, Deadline(1e6));
    front->find_templates(Deadline(1e6));
    return front;
  }

  StageEstimates estimates() const {
    StageEstimates estimates(*planning_, costs_, kMicroBatches);
    std::vector<std::unique_ptr<TemplateFront>> fronts;
    fronts.push_back(front(std::nullopt));
    for (const RecomputeForm form : kForms) fronts.push_back(front(form));
    const MemoryPrice price = price_of(fronts);
    for (const auto& found : fronts) {
      found->find_bound(price, Deadline(1e6));
      for (const StageBound& bound : found->bounds()) estimates.add(bound);
      for (const StageTemplate& whole : found->templates())
        estimates.add(whole, {*planning_, all_layers(*planning_, found->rematerializes())});
    }
    return estimates;
  }

  /// Of memory, where there is half of what the fastest takes.
  MemoryPrice price_of(std::span<const std::unique_ptr<TemplateFront>> fronts) const {
    std::vector<TemplatePoint> points;
    for (const auto& front : fronts)
      for (const StageTemplate& whole : front->templates())
        points.push_back(point_of(whole, kMicroBatches, 0, static_cast<int>(graph_.layers.size())));
    return binding_price(points, 1, points.front().bytes(1) / 2);
  }

  StageSolution solved(int first, int end, int recomputed, RecomputeForm form = RecomputeForm::full) const {
    const StageRequest request{.first_layer = first,
                               .end_layer = end,
                               .mesh = GetParam().mesh,
                               .micro_batches = kMicroBatches,
                               .recomputed_layers = recomputed,
                               .recompute_form = form};
    return solve_stage(*planning_, request, *mesh_costs_, {});
  }

  template <class Visit>
  void for_ranges(const Visit& visit) const {
    const int layers = static_cast<int>(graph_.layers.size());
    for (int first = 0; first < layers; ++first)
      for (int end = first + 1; end <= layers; ++end) visit(first, end);
  }

  static constexpr int kMicroBatches = 4;
  static constexpr std::array kForms{RecomputeForm::full, RecomputeForm::selective};
  Graph graph_;
  std::unique_ptr<PlanningGraph> planning_;
  CostModel costs_{cluster()};
  std::unique_ptr<MeshCosts> mesh_costs_;
};

TEST_P(Templates, BoundEveryStageFromBelow) {
  const StageEstimates said = estimates();
  for_ranges([&](int first, int end) {
    for (int i = 0; i <= 2 * (end - first); ++i) {
      const RecomputeForm form = kForms[static_cast<std::size_t>(i % 2)];
      const int recomputed = (i + 1) / 2;
      const StageSolution solution = solved(first, end, recomputed, form);
      ASSERT_TRUE(solution.feasible) << first << " to " << end;
      const StageEstimates::Least least = said.least(GetParam().mesh, form, recomputed, first, end, 1);
      EXPECT_LE(least.step_s, solution.step_s * (1 + 1e-9)) << first << " to " << end;
      EXPECT_LE(least.micro_batch_s, solution.micro_batch_s * (1 + 1e-9)) << first << " to " << end;
      EXPECT_LE(least.weighed_s,
                (kMicroBatches * solution.micro_batch_s + kUpdateTimes * solution.update_s) * (1 + 1e-9))
          << first << " to " << end;
      // Bounds that are worth something; single layers may do no more than bring values to others.
      EXPECT_GT(least.step_s, 0.5 * solution.step_s) << first << " to " << end;
      if (end - first > 1) {
        EXPECT_GT(least.micro_batch_s, 0.4 * solution.micro_batch_s) << first << " to " << end;
      }
    }
  });
}

// A bound at a price of memory holds for what fits into the memory that is paid for.
TEST_P(Templates, BoundStagesThatMemoryLimits) {
  const auto found = front(std::nullopt);
  const MemoryPrice price = price_of(std::span(&found, 1));
  ASSERT_GT(price.per_byte_s, 0) << "memory is worth nothing here";
  found->find_bound(price, Deadline(1e6));
  for_ranges([&](int first, int end) {
    const StageSolution solution = solved(first, end, 0);
    const double bytes =
        static_cast<double>(solution.resident_bytes) + static_cast<double>(solution.micro_batch_bytes);
    for (const StageBound& bound : found->bounds()) {
      double least = -bound.price.per_byte_s * bytes;
      for (int layer = first; layer < end; ++layer) least += bound.step_s[layer];
      EXPECT_LE(least, solution.step_s * (1 + 1e-9)) << first << " to " << end;
    }
  });
}

TEST_P(Templates, HavePartsThatAreNearWhatSolvingFinds) {
  const StageEstimates said = estimates();
  for_ranges([&](int first, int end) {
    std::map<std::pair<LayerForm, int>, double> best;  // by form and recomputed layers
    said.for_each_way(GetParam().mesh, first, end, [&](const StageWay& way) {
      const TemplateMix mix = said.mix_of(way.id);
      const LayerForm form = mix.recomputing < 0
                                 ? std::nullopt
                                 : said.templates()[static_cast<std::size_t>(mix.recomputing)].rematerialize;
      double& known = best.try_emplace({form, mix.recomputed_layers}, infinity).first->second;
      if (way.most_in_flight > 0) known = std::min(known, step_s(way.seconds));
    });
    EXPECT_EQ(std::ssize(best), 2 * (end - first) + 1);
    for (const auto& [form, seconds] : best) {
      const double step_s = solved(first, end, form.second, form.first.value_or(RecomputeForm::full)).step_s;
      // Of a single layer a third may be what it does at its borders, among others and alone.
      EXPECT_LE(seconds, 1.5 * step_s) << first << " to " << end;
      EXPECT_GE(seconds, 0.8 * step_s) << first << " to " << end;
    }
  });
}

// A part that the stage has all choices of is a solution that needs no time to be found.
TEST_P(Templates, HavePartsThatSolvingStartsFrom) {
  const auto keeping = front(std::nullopt);
  SelectionOptions no_time;
  no_time.time_limit_s = 0;
  const int layers = static_cast<int>(graph_.layers.size());
  StageRequest all{.end_layer = layers, .mesh = GetParam().mesh, .micro_batches = kMicroBatches};
  const StageScope keeps(*planning_, all_layers(*planning_, std::nullopt));
  for (const RecomputeForm form : kForms) {
    const StageScope recomputes(*planning_, all_layers(*planning_, form));
    const auto recomputing = front(form);
    all.recompute_form = form;
    for (const StageTemplate& first : recomputing->templates())
      for (const StageTemplate& second : keeping->templates())
        for (int recomputed = 0; recomputed <= layers; ++recomputed) {
          std::vector<TemplatePart> parts;
          if (recomputed > 0) parts.push_back({first, recomputes, 0, recomputed});
          if (recomputed < layers) parts.push_back({second, keeps, recomputed, layers});
          all.recomputed_layers = recomputed;
          const StageSolution start = solution_of(parts);
          EXPECT_TRUE(solve_stage(*planning_, all, *mesh_costs_, no_time, &start).feasible) << recomputed;
        }
  }
}

/// The highest bound on mixes of points, at the prices at which two of them are worth the same.
double highest_bound(const std::vector<TemplatePoint>& points, int in_flight, double bytes, double price) {
  double least = infinity;
  for (const TemplatePoint& point : points)
    least = std::min(least, point.step_s + price * (point.bytes(in_flight) - bytes));
  return least;
}

TEST(BindingPrice, HasTheHighestBoundOfAll) {
  std::mt19937 draw(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<TemplatePoint> points(1 + draw() % 6);
    for (TemplatePoint& point : points) point = {1.0 + draw() % 20, 1.0 * (draw() % 20), 1.0 * (draw() % 5)};
    const int in_flight = 1 + static_cast<int>(draw() % 4);
    const double bytes = 1.0 * (draw() % 40);
    const auto of_bytes = [&](const TemplatePoint& point) { return point.bytes(in_flight); };
    if (of_bytes(*std::ranges::min_element(points, {}, of_bytes)) > bytes) continue;  // none fits
    const MemoryPrice price = binding_price(points, in_flight, bytes);
    EXPECT_EQ(price.in_flight, in_flight);
    const double found = highest_bound(points, in_flight, bytes, price.per_byte_s);
    EXPECT_GE(found, highest_bound(points, in_flight, bytes, 0) - 1e-9) << "round " << round;
    for (const TemplatePoint& a : points)
      for (const TemplatePoint& b : points)
        if (const double saved = of_bytes(a) - of_bytes(b); saved > 0 && b.step_s > a.step_s) {
          const double other = (b.step_s - a.step_s) / saved;
          EXPECT_GE(found, highest_bound(points, in_flight, bytes, other) - 1e-9) << "round " << round;
        }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Templates,
                         testing::Values(TemplateCase{"gpt", {2}}, TemplateCase{"gpt", {2, 2}},
                                         TemplateCase{"moe", {4}}, TemplateCase{"wrn", {2}}),
                         [](const auto& test) {
                           std::string name = test.param.model;
                           for (const int extent : test.param.mesh) name += "_" + std::to_string(extent);
                           return name;
                         });

}  // namespace
}  // namespace alpa
