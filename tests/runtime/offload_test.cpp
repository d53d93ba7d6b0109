// States and activations that rest in the host's memory.
#include <gtest/gtest.h>

#include "libalpa/plan/check_plan.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/verify.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

/// All that may rest on the host, or every so many-th of them.
std::vector<ValueIndex> of_updates_alone(const Graph& graph, std::size_t each = 1) {
  const std::vector<ValueIndex> all = states_of_updates_alone(GraphUses(graph));
  std::vector<ValueIndex> some;
  for (std::size_t i = 0; i < all.size(); i += each) some.push_back(all[i]);
  return some;
}

std::int64_t device_bytes(const Program& program) {
  std::int64_t most = 0;
  for (const MeshProgram& mesh : program.meshes) most = std::max(most, mesh.memory.total);
  return most;
}

void expect_same(const TinyCurve& run, const TinyCurve& reference) {
  EXPECT_EQ(run.losses, reference.losses);
  EXPECT_EQ(run.norms, reference.norms);
  EXPECT_EQ(run.evaluation, reference.evaluation);
  ASSERT_EQ(run.states.size(), reference.states.size());
  for (const auto& [name, values] : reference.states) EXPECT_EQ(run.states.at(name), values) << name;
}

class StatesOnTheHost : public testing::TestWithParam<TinyCase> {};

TEST_P(StatesOnTheHost, TrainToTheBitAsThoseOnTheDeviceDo) {
  TinyTraining training(GetParam());
  const TinyCurve reference = training.run_on_threads(4);
  for (const std::size_t each : {1, 2}) {
    training.set_on_host(of_updates_alone(training.graph(), each));
    check_plan(training.plan(), training.graph());
    for (const Overlap overlap : {Overlap::none, Overlap::transfers, Overlap::all}) {
      training.set_overlap(overlap);
      const Program program = lower(training.graph(), training.plan());
      verify(program);
      expect_same(training.run_on_threads(4), reference);
      if (HasFailure()) return;
    }
    // Lanes in any order that their waits allow, under vector clocks.
    expect_same(training.run_on_threads(4, [] { return make_checked_cpu_device(1); }), reference);
  }
}

TEST_P(StatesOnTheHost, TakeNoMoreOfTheDeviceThanWhatIsStaged) {
  TinyTraining training(GetParam());
  const std::int64_t before = device_bytes(training.program());
  training.set_on_host(of_updates_alone(training.graph()));
  const Program program = lower(training.graph(), training.plan());
  EXPECT_LT(device_bytes(program), before);
  for (const MeshProgram& mesh : program.meshes) {
    std::int64_t on_host = 0;
    for (const Buffer& buffer : mesh.buffers)
      if (buffer.space == MemorySpace::host) on_host += buffer.bytes;
    EXPECT_EQ(mesh.memory.host, on_host);
    EXPECT_GT(on_host, 0);
    // A forward's running averages stay.
    EXPECT_TRUE(mesh.memory.optimizer == 0 || GetParam().model == std::string("wrn"));
  }
}

TEST_P(StatesOnTheHost, TrainToTheBitWithParametersToo) {
  TinyTraining training(GetParam());
  const TinyCurve reference = training.run_on_threads(4);
  const std::vector<ValueIndex> all = states_that_may_rest_on_host(GraphUses(training.graph()));
  EXPECT_GT(all.size(), of_updates_alone(training.graph()).size());
  training.set_on_host(all);
  check_plan(training.plan(), training.graph());
  for (const Overlap overlap : {Overlap::none, Overlap::all}) {
    training.set_overlap(overlap);
    verify(lower(training.graph(), training.plan()));
    expect_same(training.run_on_threads(4), reference);
    if (HasFailure()) return;
  }
  expect_same(training.run_on_threads(4, [] { return make_checked_cpu_device(1); }), reference);
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, StatesOnTheHost,
    testing::Values(TinyCase{"gpt", "serial"}, TinyCase{"gpt", "data-parallel", 4, 1},
                    TinyCase{"gpt", "zero-1", 4, 1}, TinyCase{"gpt", "zero-3", 4, 1},
                    TinyCase{"gpt", "inter-only", 4, 4}, TinyCase{"gpt", "v-shaped", 4, 4, "zero-bubble-v"},
                    TinyCase{"vit", "mixed", 4, 4},
                    TinyCase{"llama", "mixed", 4, 4, "split-1f1b", Rematerialize::always, Precision::bf16},
                    TinyCase{"adafactor", "zero-3", 4, 1}, TinyCase{"adafactor", "mixed", 4, 4},
                    TinyCase{"wrn", "data-parallel", 2, 4}),
    [](const auto& each) { return each.param.name(); });

// Where updates come in the next forward, they and it would both fetch parameters.
TEST(StatesOnTheHostInTheNextForward, HasNoParametersAmongThem) {
  TinyCase c{"gpt", "zero-1", 4, 2};
  c.gradient_clip = 0;
  c.updates = UpdateOrder::next_forward;
  TinyTraining training(c);
  const TinyCurve reference = training.run_on_threads(4);
  training.set_on_host(states_that_may_rest_on_host(GraphUses(training.graph())));
  EXPECT_FALSE(lower(training.graph(), training.plan()).defers_updates);
  EXPECT_EQ(training.run_on_threads(4).losses, reference.losses);
}

TEST(StatesOnTheHostInTheNextForward, TrainToTheBitAsThoseOnTheDeviceDo) {
  for (TinyCase c : {TinyCase{"gpt", "zero-1", 4, 2}, TinyCase{"vit", "inter-only", 4, 4, "eager-1f1b"}}) {
    c.gradient_clip = 0;
    c.updates = UpdateOrder::next_forward;
    TinyTraining training(c);
    ASSERT_TRUE(training.program().defers_updates);
    const TinyCurve reference = training.run_on_threads(4);
    training.set_on_host(of_updates_alone(training.graph()));
    for (const Overlap overlap : {Overlap::none, Overlap::all}) {
      training.set_overlap(overlap);
      const TinyCurve run = training.run_on_threads(4);
      EXPECT_EQ(run.losses, reference.losses);
      EXPECT_EQ(run.states, reference.states);
    }
    const TinyCurve run = training.run_on_threads(4, [] { return make_checked_cpu_device(1); });
    EXPECT_EQ(run.losses, reference.losses);
    EXPECT_EQ(run.states, reference.states);
  }
}

class ActivationsOnTheHost : public testing::TestWithParam<TinyCase> {};

TEST_P(ActivationsOnTheHost, TrainToTheBitAsThoseOnTheDeviceDo) {
  TinyTraining training(GetParam());
  const TinyCurve reference = training.run_on_threads(4);
  for (const bool half : {false, true}) {
    training.set_activations_on_host(half);
    check_plan(training.plan(), training.graph());
    for (const Overlap overlap : {Overlap::none, Overlap::transfers, Overlap::all}) {
      training.set_overlap(overlap);
      verify(lower(training.graph(), training.plan()));
      expect_same(training.run_on_threads(4), reference);
      if (HasFailure()) return;
    }
    // Lanes in any order that their waits allow, under vector clocks.
    expect_same(training.run_on_threads(4, [] { return make_checked_cpu_device(1); }), reference);
  }
}

TEST_P(ActivationsOnTheHost, TakeSlotsThereForTheMicroBatchesInFlight) {
  TinyTraining training(GetParam());
  const Program before = training.program();
  training.set_activations_on_host();
  training.set_overlap(Overlap::none);
  const Program program = lower(training.graph(), training.plan());
  for (const MeshIndex m : program.meshes.indices()) {
    const MeshProgram& mesh = program.meshes[m];
    std::int64_t on_host = 0;
    for (const Buffer& buffer : mesh.buffers)
      if (buffer.space == MemorySpace::host) on_host += buffer.slots * buffer.bytes;
    EXPECT_GT(on_host, 0);
    EXPECT_EQ(mesh.memory.host, on_host);
    // On the device stages that share a mesh have slots in common.
    const std::int64_t moved = before.meshes[m].memory.activations - mesh.memory.activations;
    EXPECT_GT(moved, 0);
    EXPECT_LE(moved, on_host);
    EXPECT_TRUE(moved == on_host || mesh.has_several_stages());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, ActivationsOnTheHost,
    testing::Values(TinyCase{"gpt", "serial"}, TinyCase{"gpt", "data-parallel", 4, 2},
                    TinyCase{"gpt", "zero-3", 4, 2}, TinyCase{"gpt", "inter-only", 4, 4},
                    TinyCase{"gpt", "v-shaped", 4, 4, "zero-bubble-v"},
                    TinyCase{"gpt", "interleaved", 4, 4, "interleaved"}, TinyCase{"vit", "mixed", 4, 4},
                    TinyCase{"llama", "mixed", 4, 4, "split-1f1b", Rematerialize::never, Precision::bf16},
                    TinyCase{"moe", "mixed", 4, 2}, TinyCase{"wrn", "data-parallel", 2, 4}),
    [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace alpa
