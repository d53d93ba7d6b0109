// Every way in which gradients get to their updates under every schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

#include "libalpa/planner/gradient_owners.h"
#include "libalpa/planner/stage/stage_problem.h"
#include "libalpa/schedule/schedule.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

struct Kind {
  const char* name;
  std::function<void(TinyCase&)> before = {};       ///< it is planned
  std::function<void(TinyTraining&)> planned = {};  ///< what is run, else
  const char* axis = "data";
};

std::string way_of(const char* parameters, const char* way) {
  return std::string("[[gradient]]\nname = \"") + parameters + "\"\nway = \"" + way + "\"\n";
}

Kind way(const char* name, const char* axis = "data") {
  return {name, [name](TinyCase& c) { c.constraints = way_of("*.up", name); }, {}, axis};
}

void with_sparse_tables(TinyCase& c) {
  c.model = "llama";
  c.sparse = c.wire_bound = true;
  c.constraints = way_of("embedding.*", "factors");
}

Kind owners(const char* name, OwnerRule rule) {
  return {name, {}, [rule](TinyTraining& training) {
            training.set_sync(with_owners(training.plan(), GraphUses(training.graph()), rule));
            ASSERT_TRUE(training.plan().has_owners());
          }};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      way("all-reduce"),
      way("zero-1"),
      way("zero-2"),
      way("zero-3"),
      way("factors", "factors"),
      {"rows-that-differ", with_sparse_tables, {}, "rows"},
      {"buckets", [](TinyCase& c) { c.sync = "one"; }},
      owners("owners", OwnerRule::even),
      owners("owners-of-parts", OwnerRule::uneven),
      {"before-norm", [](TinyCase& c) { c.updates = UpdateOrder::before_norm; }},
      {"low-rank", [](TinyCase& c) { c.compression_rank = 2; }},
      {"delayed", [](TinyCase& c) { c.gradient_delay = 1; }},
      {"states-on-host",
       {},
       [](TinyTraining& training) {
         training.set_on_host(states_of_updates_alone(GraphUses(training.graph())));
       }},
      {"activations-on-host", {}, [](TinyTraining& training) { training.set_activations_on_host(); }}};
  return all;
}

struct KindUnderSchedule {
  std::size_t kind, schedule;
  Overlap overlap;

  std::string name() const {
    std::string text =
        std::string(kinds()[kind].name) + "_" + schedules()[schedule].name + "_" + overlap_name(overlap);
    std::ranges::replace(text, '-', '_');
    return text;
  }
};

/// Two stages of two devices each, or, where two share a mesh, four on two meshes.
TinyCase case_of(const KindUnderSchedule& of) {
  const PipelineSchedule& schedule = schedules()[of.schedule];
  const Kind& kind = kinds()[of.kind];
  const std::string two = std::string(kind.axis) + ", " + kind.axis;
  TinyCase c{"image_mlp", schedule.shares_meshes() ? two + ", " + two : two, 4, 4};
  c.schedule = schedule.name;
  c.gradient_clip = 1;
  if (kind.before) kind.before(c);
  return c;
}

TinyCase alone(TinyCase c) {
  TinyCase serial{c.model, "serial"};
  serial.gradient_clip = c.gradient_clip;
  serial.compression_rank = c.compression_rank;
  serial.gradient_delay = c.gradient_delay;
  return serial;
}

class KindsUnderSchedules : public testing::TestWithParam<KindUnderSchedule> {};

// What loses something loses the same on one device.
TEST_P(KindsUnderSchedules, TrainAsOneDeviceDoes) {
  const TinyCase c = case_of(GetParam());
  TinyTraining training(c);
  if (const auto& planned = kinds()[GetParam().kind].planned) planned(training);
  training.set_overlap(GetParam().overlap);
  const TinyCurve curve = training.run_on_threads(5), reference = TinyTraining(alone(c)).run_on_threads(5);
  EXPECT_EQ(training.run_on_threads(5).losses, curve.losses) << "not the same bits twice";
  ASSERT_EQ(curve.losses.size(), reference.losses.size());
  for (std::size_t step = 0; step < curve.losses.size(); ++step)
    EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * std::abs(reference.losses[step]));
  EXPECT_NEAR(curve.norms[0], reference.norms[0], 1e-5 * reference.norms[0]);
}

void PrintTo(const KindUnderSchedule& of, std::ostream* out) { *out << of.name(); }

std::vector<KindUnderSchedule> every() {
  std::vector<KindUnderSchedule> all;
  for (std::size_t kind = 0; kind < kinds().size(); ++kind)
    for (std::size_t schedule = 0; schedule < schedules().size(); ++schedule)
      all.push_back({kind, schedule, static_cast<Overlap>((kind + schedule) % 3)});
  return all;
}

std::string name_of(const testing::TestParamInfo<KindUnderSchedule>& info) { return info.param.name(); }

INSTANTIATE_TEST_SUITE_P(Every, KindsUnderSchedules, testing::ValuesIn(every()), name_of);

}  // namespace
}  // namespace alpa
