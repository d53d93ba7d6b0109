#include "libalpa/program/lower/memory.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>

#include "libalpa/base/error.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/order/dependences.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/index_literals.h"
#include "tests/support/lifetimes.h"
#include "tests/support/small_plans.h"

namespace alpa {
namespace {

using namespace testing_models;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A stage of scratch buffers only, each zeroed once and copied from once, at random places of two segments.
MeshProgram random_stage(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  MeshProgram stage;
  for (const SegmentKind kind : {SegmentKind::forward, SegmentKind::backward}) {
    stage.segments.push_back({0_s, kind, {}});
    auto& instructions = stage.segments.back().instructions;
    std::vector<BufferIndex> open;
    for (int i = 0; i < 60; ++i) {
      if (open.empty() || below(2) == 0) {
        Buffer buffer;
        buffer.bytes = kAlignment * (1 + below(8));
        open.push_back(stage.buffers.push_back(buffer));
        instructions.push_back({Zero{open.back()}});
      } else {
        const int at = below(static_cast<int>(open.size()));
        instructions.push_back({Send{0, open[at], {}}});
        open.erase(open.begin() + at);
      }
    }
  }
  return stage;
}

/// Bytes of the buffers alive at one instruction, counted by walking the segment.
std::int64_t alive_bytes(const MeshProgram& stage, const Indexed<BufferIndex, Lifetime>& lives, int at) {
  std::int64_t bytes = 0;
  for (const BufferIndex b : lives.indices())
    if (lives[b].first >= 0 && lives[b].first <= at && at <= lives[b].last) bytes += stage.buffers[b].bytes;
  return bytes;
}

TEST(Layout, BuffersAliveTogetherNeverShareAByteAndLittleIsWasted) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    MeshProgram stage = random_stage(seed);
    lay_out(stage, Graph{}, std::int64_t{1} << 62);
    std::int64_t peak = 0;
    for (const Segment& segment : stage.segments) {
      const auto lives = lifetimes(stage, segment.instructions);
      for (int at = 0; at < static_cast<int>(segment.instructions.size()); ++at) {
        peak = std::max(peak, alive_bytes(stage, lives, at));
        std::vector<int> owner(static_cast<std::size_t>(stage.memory.total / kAlignment), -1);
        for (const BufferIndex b : lives.indices()) {
          if (lives[b].first < 0 || lives[b].first > at || lives[b].last < at) continue;
          for (std::int64_t byte = 0; byte < stage.buffers[b].bytes; byte += kAlignment) {
            int& cell = owner[(stage.buffers[b].offset + byte) / kAlignment];
            ASSERT_EQ(cell, -1) << "seed " << seed << ", instruction " << at;
            cell = b;
          }
        }
      }
    }
    EXPECT_GE(stage.memory.total, peak);
    EXPECT_LE(stage.memory.total, peak * 5 / 4)
        << "largest first is within a quarter of the peak on such inputs";
  }
}

// Lanes that run ahead of each other need memory apart; where there is none, they wait.
TEST(Layout, WhereMemoryIsShortInstructionsWaitForThoseWhoseMemoryTheyTakeOver) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    MeshProgram apart = random_stage(seed);
    std::mt19937 random(seed);
    apart.lanes.resize(3);
    for (Segment& segment : apart.segments)
      for (Instruction& instruction : segment.instructions) instruction.lane = static_cast<int>(random() % 3);
    MeshProgram waiting = apart, alone = random_stage(seed);
    lay_out(apart, Graph{}, std::int64_t{1} << 62);
    lay_out(waiting, Graph{}, 0);
    lay_out(alone, Graph{}, 0);
    EXPECT_EQ(waiting.memory.total, alone.memory.total) << "as on one lane";
    EXPECT_LT(waiting.memory.total, apart.memory.total);
    for (int s = 0; s < 2; ++s) {
      const RunOrder order(waiting, dependences(waiting), s);
      const std::vector<Instruction>& instructions = waiting.segments[s].instructions;
      std::map<BufferIndex, std::vector<int>> uses;
      for (int i = 0; i < static_cast<int>(instructions.size()); ++i)
        for (const BufferIndex b : buffers_touched(instructions[i])) uses[b].push_back(i);
      for (const auto& [one, of_one] : uses)
        for (const auto& [other, of_other] : uses) {
          const Buffer &a = waiting.buffers[one], &b = waiting.buffers[other];
          if (one == other || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) continue;
          if (of_one.front() > of_other.front()) continue;
          for (const int last : of_one)
            for (const int first : of_other) EXPECT_TRUE(order.before(last, first)) << "seed " << seed;
        }
    }
  }
}

TEST(Layout, CountsWhereTheBytesOfTheArenaGo) {
  const Lowered lowered = two_stages_of_two();
  for (const MeshProgram& stage : lowered.program.meshes) {
    const MemoryUse& use = stage.memory;
    EXPECT_EQ(use.parameters + use.optimizer + use.gradients + use.activations + use.workspace, use.total);
    std::int64_t states = 0;
    for (const BufferIndex buffer : stage.state_buffer)
      if (buffer >= 0) states += stage.buffers[buffer].bytes;
    EXPECT_EQ(use.parameters + use.optimizer, states);
  }
}

/// Of parameters, states of the optimizer and sums of gradients, for each element of a 64 x 64 weight in
/// bf16.
double bytes_per_parameter(OptimizerKind optimizer, GradientSum gradient_sum) {
  TrainingOptions training;
  training.optimizer = optimizer;
  training.gradient_sum = gradient_sum;
  const auto graph = [&](std::int64_t samples) {
    GraphBuilder g(op_catalog());
    g.graph().samples = samples;
    g.begin_layer("only");
    const ValueIndex x = g.input(InputKind::data, {DType::bf16, {samples, 64}}, "x");
    const ValueIndex w = g.state("w", {DType::bf16, {64, 64}}, {Initializer::Kind::normal, 0.1}, true);
    const ValueIndex y = g.add("einsum", {x, w}, {{"equation", "b d, d f -> b f"}});
    g.graph().loss = g.add("reduce_sum", {g.add("mul", {y, y})});
    return training_graph(g.finish(), op_catalog(), training);
  };
  PlannerOptions options;
  options.method = "serial";
  options.micro_batches = 2;
  const Plan plan = plan_quietly({"one weight", "", 8, graph}, small_cluster(1), options);
  const MemoryUse use = lower(graph(4), plan).meshes[0_m].memory;
  const std::int64_t of_loss = buffer_bytes(TensorType{DType::f32, {}});  // a sum as gradients are
  return static_cast<double>(use.parameters + use.optimizer + use.gradients - of_loss) / (64 * 64);
}

TEST(Layout, HasTheBytesOfAParameterThatOptimizerAndSumsAskFor) {
  // 2 for the weights, 4 for the master weights, and:
  EXPECT_EQ(bytes_per_parameter(OptimizerKind::adamw, GradientSum::f32), 18);         // 4 + 4 + 4
  EXPECT_EQ(bytes_per_parameter(OptimizerKind::adamw, GradientSum::parameters), 16);  // 4 + 4 + 2
  EXPECT_EQ(bytes_per_parameter(OptimizerKind::sgd, GradientSum::parameters), 12);    // 4 + 2
  const double factors = 2.0 * 64 * 4 / (64 * 64);                                    // rows and columns
  EXPECT_EQ(bytes_per_parameter(OptimizerKind::adafactor, GradientSum::f32), 10 + factors);
  EXPECT_EQ(bytes_per_parameter(OptimizerKind::adafactor, GradientSum::parameters), 8 + factors);
}

std::set<std::int64_t> slots_of_micro_batches(const MeshProgram& mesh) {
  std::set<std::int64_t> slots;
  for (const Buffer& buffer : mesh.buffers)
    if (buffer.residence == Residence::micro_batch) slots.insert(buffer.slots);
  return slots;
}

TEST(Layout, ActivationsGrowWithTheMicroBatchesInFlight) {
  const Lowered one_f_one_b = two_stages_of_two(8, "1f1b"), gpipe = two_stages_of_two(8, "gpipe");
  for (int stage = 0; stage < 2; ++stage) {
    const auto& few = one_f_one_b.program.meshes[MeshIndex(stage)];
    const auto& all = gpipe.program.meshes[MeshIndex(stage)];
    EXPECT_THAT(slots_of_micro_batches(few), ElementsAre(2 - stage));
    EXPECT_THAT(slots_of_micro_batches(all), ElementsAre(8));
    EXPECT_EQ(all.memory.activations, few.memory.activations / (2 - stage) * 8);
  }
}

// The memory that a kernel wants beside operands and results is the device's kind of kernel's.
TEST(Layout, HasTheMemoryThatKernelsOfTheDeviceWant) {
  const Lowered lowered = two_stages_of_two();
  const auto operators = [&](DeviceKind device) {
    std::set<std::string> names;
    for (const MeshProgram& stage : lower(lowered.graph, lowered.plan, Purpose::train, device).meshes)
      for (const Segment& segment : stage.segments)
        for (const Instruction& instruction : segment.instructions)
          if (const auto* compute = std::get_if<Compute>(&instruction.body);
              compute && compute->workspace >= 0)
            names.insert(std::string(compute->op->name));
    return names;
  };
  EXPECT_THAT(operators(DeviceKind::cpu), testing::ElementsAre("attention", "attention_grad"));
  EXPECT_EQ(operators(DeviceKind::checked_cpu), operators(DeviceKind::cpu));
  EXPECT_THAT(operators(DeviceKind::cuda),
              testing::ElementsAre("attention_grad", "einsum", "layer_norm_grad", "reduce_leading",
                                   "reduce_sum", "sum_squares"));
}

TEST(Memory, BeyondWhatAnAddressCountsIsRefused) {
  MeshProgram stage;
  Buffer buffer;
  buffer.bytes = std::int64_t{1} << 40;
  buffer.residence = Residence::micro_batch;
  buffer.slots = 1 << 24;
  stage.buffers = {buffer, buffer};
  EXPECT_THAT(
      [&] { lay_out(stage, {}, std::int64_t{1} << 62); },
      ThrowsMessage<Error>(HasSubstr("16777216 buffers of 1099511627776 bytes are more than an address")));
}

}  // namespace
}  // namespace alpa
