#include "libalpa/trainer/evaluated_batches.h"

#include <gtest/gtest.h>

#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/program/state_tiles.h"
#include "libalpa/trainer/token_batches.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

/// The loss of two batches by the last of these programs, on the initial states.
double loss_of(const TinyTraining& tiny, const std::vector<const Program*>& programs) {
  const auto source = open_tokens("synthetic:64:20000");
  double loss = 0;
  run_on_threads(device_count(*programs[0]), [&](int rank, Communicator& world) {
    TokenBatches reader(*source, SampleOrder(source->size(), tiny.options()), tiny.options(), 64);
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(tiny.graph(), programs, *device, world, 1);
    initialize_states(executor, tiny.graph(), 1);
    ReadAhead samples(*device, executor.samples(), reader);
    EvaluatedBatches batches(tiny.graph(), executor, programs.size() - 1, samples, reader, tiny.options());
    batches.add(0);
    batches.add(0);
    if (rank == 0) loss = batches.mean().loss;
  });
  return loss;
}

TEST(EvaluatedBatches, AreTheSameWithoutATrainingProgramBesideThem) {
  TinyCase mixed{"gpt", "mixed", 4, 2}, served{"gpt", "data-parallel", 2};
  served.servers = 1;
  served.staleness = 1;
  for (const TinyCase& each : {TinyCase{"gpt", "serial"}, mixed, served}) {
    const TinyTraining tiny(each);
    const Program evaluation = lower(tiny.graph(), tiny.plan(), Purpose::evaluate);
    const double beside = loss_of(tiny, {&tiny.program(), &evaluation});
    EXPECT_GT(beside, 0) << each.name();
    EXPECT_EQ(loss_of(tiny, {&evaluation}), beside) << each.name();
  }
}

}  // namespace
}  // namespace alpa
