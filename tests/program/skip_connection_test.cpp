#include <gmock/gmock.h>

#include "libalpa/base/error.h"
#include "libalpa/program/verify.h"
#include "tests/support/small_plans.h"

// A value that passes stages by: in 1F1B its ends are several micro-batches apart, forward and back.
namespace alpa {
namespace {

using namespace testing_models;

Graph with_skip_connection(std::int64_t samples) {
  GraphBuilder g(op_catalog());
  g.graph().samples = samples;
  const auto linear = [&](int x, const std::string& name) {
    const int weight = g.state(name, {DType::f32, {8, 8}}, {Initializer::Kind::normal, 0.1}, true);
    return g.add("einsum", {x, weight}, {{"equation", "b d, d f -> b f"}});
  };
  g.begin_layer("first");
  const int first = linear(g.input(InputKind::data, {DType::f32, {samples, 8}}, "x"), "first.weight");
  g.begin_layer("second");
  const int second = g.add("gelu", {linear(first, "second.weight")});
  g.begin_layer("third");
  const int third = g.add("gelu", {linear(second, "third.weight")});
  g.begin_layer("fourth");
  const int sum = g.add("add", {linear(third, "fourth.weight"), first});
  g.graph().loss = g.add("reduce_sum", {g.add("mul", {sum, sum})});
  return training_graph(g.finish(), op_catalog(), {});
}

Lowered four_stages(const std::string& schedule) {
  PlannerOptions options;
  std::string pin = "micro_batches = 8\nschedule = \"" + schedule + "\"\n";
  for (int stage = 0; stage < 4; ++stage) pin += "[[stage]]\nlayers = 1\nmesh = [1]\naxes = []\n";
  options.pin = parse_pin(pin, "pin");
  Log log("test", LogLevel::off);
  Lowered lowered;
  lowered.plan = make_plan({"skip", "", 8, with_skip_connection}, CostModel(small_cluster(4)), options, log);
  lowered.graph = with_skip_connection(1);
  lowered.program = lower(lowered.graph, lowered.plan);
  return lowered;
}

TEST(SkipConnection, ReachesAStageThatIsNotTheNextOne) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const Lowered lowered = four_stages(schedule);
    EXPECT_NO_THROW(verify(lowered.program, lowered.graph)) << schedule;
  }
}

TEST(SkipConnection, DeadlocksIn1F1BWithoutMemoryForEachMessage) {
  Lowered lowered = four_stages("1f1b");
  int shortened = 0;
  for (StageProgram& stage : lowered.program.stages)
    for (std::vector<Instruction>& segment : stage.segments)
      for (Instruction& instruction : segment)
        if (auto* send = std::get_if<Send>(&instruction)) {
          shortened += send->turns == 8;
          send->turns = 1;
        }
  EXPECT_EQ(shortened, 8);  // from stage to stage, from the first to the last, and back
  EXPECT_THAT([&] { verify(lowered.program, lowered.graph); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("waits for ever")));
}

}  // namespace
}  // namespace alpa
