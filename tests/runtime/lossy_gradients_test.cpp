// Gradients that are compressed, or used late ([training] gradient_compression, gradient_delay).
#include <gtest/gtest.h>

#include <cmath>

#include "libalpa/graph/low_rank.h"
#include "libalpa/program/lower/lower.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

/// Where bytes count, so that factors are what devices send.
TinyCase compressed(TinyCase c, std::int64_t rank) {
  c.compression_rank = rank;
  c.wire_bound = true;
  return c;
}

TinyCase delayed(TinyCase c, std::int64_t steps) {
  c.gradient_delay = steps;
  return c;
}

TinyCase ordered(TinyCase c, UpdateOrder updates) {
  c.updates = updates;
  return c;
}

TinyCase serial(TinyCase c) {
  c.method = "serial";
  c.devices = c.micro_batches = 1;
  c.schedule = "1f1b";
  c.updates = UpdateOrder::after_norm;
  return c;
}

constexpr auto lossy_case = [](const auto& each) {
  std::string name = each.param.name() + "_" + update_order_name(each.param.updates);
  std::ranges::replace(name, '-', '_');
  return name;
};

class LossyGradients : public testing::TestWithParam<TinyCase> {};

// What is computed is the same whatever the plan: sums in another order, as everywhere.
TEST_P(LossyGradients, TrainAsOnOneDevice) {
  const TinyTraining training(GetParam()), alone(serial(GetParam()));
  const TinyCurve curve = training.run_on_threads(5), reference = alone.run_on_threads(5);
  for (std::size_t step = 0; step < curve.losses.size(); ++step) {
    EXPECT_NEAR(curve.losses[step], reference.losses[step], 1e-5 * std::abs(reference.losses[step])) << step;
    EXPECT_NEAR(curve.norms[step], reference.norms[step], 1e-5 * reference.norms[step]) << step;
  }
}

class LossyGradientsOnLanes : public testing::TestWithParam<TinyCase> {};

TEST_P(LossyGradientsOnLanes, HaveTheSameBitsInAnyOrder) {
  TinyTraining training(GetParam());
  expect_same_bits_in_any_order(training);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, LossyGradients,
    testing::Values(compressed({"gpt", "data-parallel", 2, 1}, 2),
                    compressed({"gpt", "data-parallel", 4, 2}, 3), compressed({"gpt", "zero-1", 2, 2}, 2),
                    compressed({"gpt", "zero-3", 2, 1}, 2), compressed({"gpt", "tensor", 2, 1}, 2),
                    compressed({"gpt", "data x tensor", 4, 2}, 2), compressed({"gpt", "mixed", 4, 4}, 2),
                    compressed({"wrn", "data-parallel", 2, 1}, 2), compressed({"moe", "search", 2, 2}, 2),
                    delayed({"gpt", "data-parallel", 2, 1}, 1), delayed({"gpt", "data-parallel", 2, 2}, 2),
                    delayed({"gpt", "zero-3", 2, 1}, 1), delayed({"gpt", "mixed", 4, 4}, 1),
                    delayed({"adafactor", "data-parallel", 2, 1}, 1),
                    ordered(compressed({"gpt", "data-parallel", 2, 2}, 2), UpdateOrder::before_norm),
                    ordered(compressed({"gpt", "zero-1", 2, 1}, 2), UpdateOrder::next_forward),
                    ordered(delayed({"gpt", "data-parallel", 2, 2}, 1), UpdateOrder::before_norm),
                    ordered(delayed({"gpt", "data-parallel", 2, 1}, 1), UpdateOrder::next_forward),
                    ordered(unclipped(delayed({"gpt", "zero-3", 2, 1}, 2)), UpdateOrder::next_forward)),
    lossy_case);

INSTANTIATE_TEST_SUITE_P(Plans, LossyGradientsOnLanes,
                         testing::Values(compressed({"gpt", "data-parallel", 2, 2}, 2),
                                         delayed({"gpt", "zero-1", 2, 2}, 1),
                                         delayed(compressed({"gpt", "mixed", 4, 4}, 2), 1)),
                         lossy_case);

using StatesByName = std::map<std::string, std::vector<std::byte>>;

StatesByName parameters_of(const TinyTraining& training, Executor& executor) {
  StatesByName parameters;
  for (const StateTile& tile : executor.state_tiles()) {
    const State& state = training.graph().states[tile.state];
    if (!state.is_parameter) continue;
    std::vector<std::byte>& bytes = parameters[state.name];
    bytes.resize(static_cast<std::size_t>(byte_count(tile.tile)));
    executor.read_state(tile, bytes.data());
  }
  return parameters;
}

// Training that is not delayed is given the weights of the one that is, step by step.
TEST(DelayedGradients, AreThoseOfSoManyStepsBefore) {
  for (const int delay : {1, 3}) {
    const TinyTraining late(delayed({"gpt", "serial"}, delay)), prompt({"gpt", "serial"});
    constexpr int kSteps = 6;
    std::vector<StatesByName> weights;
    const TinyCurve curve = late.run_on_threads(
        kSteps, [] { return make_cpu_device(1); },
        [&](Executor& executor) { weights.push_back(parameters_of(late, executor)); });
    std::size_t step = 0;
    const TinyCurve expected = prompt.run_on_threads(
        kSteps, [] { return make_cpu_device(1); },
        [&](Executor& executor) {
          for (const StateTile& tile : executor.state_tiles())
            if (const State& state = prompt.graph().states[tile.state]; state.is_parameter)
              executor.write_state(tile, weights[step].at(state.name).data());
          ++step;
        });
    EXPECT_EQ(curve.losses, expected.losses);
    for (int t = 0; t < kSteps; ++t)
      EXPECT_EQ(curve.norms[t], t < delay ? 0.0 : expected.norms[t - delay]) << delay << ", step " << t;
  }
}

// Sums of what is held back are the first that a step does, where the plan overlaps collectives.
TEST(DelayedGradients, AreAddedUpBesideTheWholeStep) {
  TinyCase c = delayed({"gpt", "data-parallel", 2, 2}, 1);
  c.wire_bound = true;
  TinyTraining training(c);
  const auto early_sums = [&](Overlap overlap) {
    training.set_overlap(overlap);
    const Program program = lower(training.graph(), training.plan());
    const MeshProgram& mesh = program.meshes[MeshIndex(0)];
    int sums = 0;
    for (const Instruction& instruction : mesh.segment_of(mesh.schedule.front()).instructions)
      if (std::holds_alternative<Convert>(instruction.body) && instruction.when == When::first_micro_batch)
        ++sums;
    return sums;
  };
  EXPECT_EQ(early_sums(Overlap::none), 0);
  // All but perhaps the embedding: of two sums of this step, which are added up before it is held back.
  const auto parameters = std::ranges::count(training.graph().states, true, &State::is_parameter);
  EXPECT_GE(early_sums(Overlap::all), parameters - 1);
}

/// Of a model of 8 samples, so that gradients of its weights have rank 8 at most.
TinyCase of_few_samples() { return {"image_mlp", "data-parallel", 2, 1}; }

/// Bytes that a device has in all-reduces of a step.
std::int64_t all_reduced_bytes(const Program& program) {
  std::int64_t bytes = 0;
  for (const SegmentRun& run : program.meshes[MeshIndex(0)].schedule)
    for (const Instruction& instruction : program.meshes[MeshIndex(0)].segment_of(run).instructions)
      if (const auto* convert = std::get_if<Convert>(&instruction.body))
        if (convert->step.kind == ConversionKind::all_reduce)
          bytes += byte_count(program.meshes[MeshIndex(0)].buffers[convert->from].tile);
  return bytes;
}

TEST(PowerSgd, SendsFactorsAlone) {
  for (const std::int64_t rank : {1, 2, 4}) {
    TinyCase c = compressed({"gpt", "data-parallel", 2, 1}, rank);
    c.sync = "each";
    const TinyTraining training(c);
    std::int64_t expected = 0;
    int as_factors = 0;
    for (const State& state : training.graph().states) {
      if (!state.is_parameter) continue;
      const Shape shape = value_of(training.graph(), state.value).type.shape;
      const std::int64_t all = element_count(shape);
      std::int64_t factors = all;  // where that is fewest
      for (std::size_t cut = 1; cut < shape.size(); ++cut) {
        const std::int64_t rows = element_count({shape.begin(), shape.begin() + static_cast<int>(cut)});
        factors = std::min(factors, rank * (rows + all / rows));
      }
      as_factors += 2 * factors <= all ? 1 : 0;
      expected += 4 * (2 * factors <= all ? factors : all);
    }
    EXPECT_GT(as_factors, 4);
    EXPECT_EQ(all_reduced_bytes(training.program()), expected) << rank;
  }
}

// Without what was left out of the steps before (its error is forgotten after each step) training stays
// behind: with it the loss is nearer to that of whole gradients than to that.
TEST(PowerSgd, WouldStayBehindWithoutErrorFeedback) {
  constexpr int kSteps = 100;
  const TinyCase c = serial(of_few_samples());
  const TinyTraining own(c), low_rank(compressed(c, 2));
  const auto on_cpu = [] { return make_cpu_device(1); };
  const auto forget_errors = [&](Executor& executor) {
    for (const StateTile& tile : executor.state_tiles())
      if (low_rank.graph().states[tile.state].name.ends_with(".error")) {
        const std::vector<std::byte> zeros(static_cast<std::size_t>(byte_count(tile.tile)));
        executor.write_state(tile, zeros.data());
      }
  };
  const double whole = own.run_on_threads(kSteps).losses.back(),
               with = low_rank.run_on_threads(kSteps).losses.back(),
               without = low_rank.run_on_threads(kSteps, on_cpu, forget_errors).losses.back();
  EXPECT_LT(with - whole, (without - whole) / 2);
}

TEST(PowerSgd, LeavesGradientsOfItsRankAsTheyAre) {
  const TinyTraining own(of_few_samples()), low_rank(compressed(of_few_samples(), 8));
  const TinyCurve curve = low_rank.run_on_threads(5), expected = own.run_on_threads(5);
  for (std::size_t step = 0; step < curve.losses.size(); ++step) {
    EXPECT_NEAR(curve.losses[step], expected.losses[step], 1e-4 * std::abs(expected.losses[step])) << step;
    EXPECT_NEAR(curve.norms[step], expected.norms[step], 1e-4 * expected.norms[step]) << step;
  }
}

}  // namespace
}  // namespace alpa
