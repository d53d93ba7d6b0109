#include <gmock/gmock.h>

#include <algorithm>

#include "libalpa/base/error.h"
#include "libalpa/program/order/simulate.h"
#include "libalpa/program/order/verify.h"
#include "tests/support/small_plans.h"

// A value that passes stages by: in 1F1B its ends are several micro-batches apart, forward and back.
namespace alpa {
namespace {

using namespace testing_models;

TEST(SkipConnection, ReachesAStageThatIsNotTheNextOne) {
  for (const std::string& schedule : schedule_names(1)) {
    const Lowered lowered = four_stages(schedule);
    EXPECT_NO_THROW(verify(lowered.program)) << schedule;
  }
}

TEST(SkipConnection, DeadlocksIn1F1BWithoutMemoryForEachMessage) {
  Lowered lowered = four_stages("1f1b");
  int shortened = 0;
  for (MeshProgram& mesh : lowered.program.meshes)
    for (Buffer& buffer : mesh.buffers)
      if (buffer.name == "sent pieces") {
        shortened += buffer.slots > 1;
        buffer.slots = 1;
      }
  EXPECT_EQ(shortened, 2);  // from the first to the last stage, and back
  EXPECT_THAT([&] { verify(lowered.program); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("waits for ever")));
}

/// The last of eight layers takes what each of the others makes, as a balancing loss does.
Graph gathered_at_the_end(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  ValueIndex x = g.input(InputKind::data, {DType::f32, {samples, 8}}, "x");
  std::vector<ValueIndex> made;
  for (int layer = 0; layer < 8; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    g.begin_layer(name);
    const int parts = layer < 7 ? 6 : 1;  // what the last one adds up takes it as long
    for (int part = 0; part < parts; ++part)
      x = g.add("gelu", {linear(g, x, name + "." + std::to_string(part))});
    made.push_back(x);
  }
  for (std::size_t layer = 0; layer + 1 < made.size(); ++layer) x = g.add("add", {x, made[layer]});
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {x, x})});
  return training_graph(g.finish(), op_catalog(), {});
}

std::vector<Buffer*> slots_of_passing_messages(Program& program) {
  std::vector<Buffer*> sent;
  for (MeshProgram& mesh : program.meshes)
    for (Buffer& buffer : mesh.buffers)
      if (buffer.name == "sent pieces" && buffer.slots > 1) sent.push_back(&buffer);
  return sent;
}

bool locks_up(const Program& program) {
  try {
    verify(program);
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// As few as do not lock up.
void take_slots(Program& program) {
  std::vector<Buffer*> sent = slots_of_passing_messages(program);
  std::ranges::reverse(sent);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (Buffer* buffer : sent) {
      if (buffer->slots == 1) continue;
      --buffer->slots;
      if (locks_up(program))
        ++buffer->slots;
      else
        has_changed = true;
    }
  }
}

// With a message for each micro-batch no stage waits for a slot. One for each stage on the way costs nothing
// beside that; as few as there may be do.
TEST(SkipConnection, DoesNotHoldUpThePipeline) {
  constexpr int micro_batches = 24;
  PlannerOptions options;
  std::string pin = "micro_batches = 24\nschedule = \"1f1b\"\n";
  for (int stage = 0; stage < 8; ++stage) pin += "[[stage]]\nlayers = 1\nmesh = [1]\naxes = []\n";
  options.pin = parse_pin(pin, "pin");
  Cluster cluster = small_cluster(8);
  cluster.within_node.latency_s = 0;
  const CostModel costs(cluster);
  const Plan plan = plan_quietly({"gathered", "", micro_batches, gathered_at_the_end}, cluster, options);
  const Program program = lower(gathered_at_the_end(1), plan);
  Program unlimited = program, least = program;
  for (Buffer* buffer : slots_of_passing_messages(unlimited)) buffer->slots = micro_batches;
  take_slots(least);
  const double step_s = simulate(program, costs).step_s;
  EXPECT_NEAR(step_s, simulate(unlimited, costs).step_s, 1e-9 * step_s);
  EXPECT_GT(simulate(least, costs).step_s, 1.05 * step_s);
}

}  // namespace
}  // namespace alpa
