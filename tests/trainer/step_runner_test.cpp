#include "libalpa/trainer/step_runner.h"

#include <gmock/gmock.h>

#include <future>

#include "libalpa/base/error.h"
#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/dataset/open_tokens.h"
#include "libalpa/dataset/token_source.h"
#include "libalpa/program/lower/lower.h"
#include "libalpa/trainer/token_batches.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

/// Gives the same batch, whichever is asked for.
class OneBatch final : public BatchReader {
 public:
  explicit OneBatch(TokenBatches& batches) : BatchReader(batches.order()), batches_(batches) {}
  void fill(Split, std::int64_t, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override {
    batches_.fill(Split::held_out, 0, samples, into);
  }
  std::int64_t target_count(Split, std::int64_t, std::int64_t samples) const override {
    return batches_.target_count(Split::held_out, 0, samples);
  }
  std::string description() const override { return batches_.description(); }
  std::int64_t length() const override { return batches_.length(); }

 private:
  TokenBatches& batches_;
};

TEST(StepRunner, ReturnsOfSeveralEqualBatchesWhatItReturnsOfOne) {
  const TinyTraining tiny({"moe", "serial"});
  const Program evaluation = lower(tiny.graph(), tiny.plan(), Purpose::evaluate);
  const auto source = open_tokens("synthetic:64:20000");
  TokenBatches batches(*source, SampleOrder(source->size(), tiny.options()), tiny.options(), 64);
  OneBatch reader(batches);
  run_on_threads(1, [&](int, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(tiny.graph(), {&tiny.program(), &evaluation}, *device, world, 1);
    initialize_states(executor, tiny.graph(), 1);
    StepRunner runner(tiny.graph(), executor, reader, reader, tiny.options());
    const Evaluation one = runner.evaluate(0, 1).value(), three = runner.evaluate(0, 3).value();
    EXPECT_DOUBLE_EQ(three.loss, one.loss);
    ASSERT_EQ(one.of_model.size(), 1u);
    EXPECT_STREQ(one.of_model[0].name.c_str(), "dropped_choices");
    EXPECT_GT(one.of_model[0].value, 0) << "the batch has something to count";
    EXPECT_EQ(three.of_model[0].value, one.of_model[0].value);
    // An untrained step counts the same: what an evaluation returns stands beside it.
    EXPECT_EQ(runner.train(0, 0)->of_model[0].value, one.of_model[0].value);
  });
}

TEST(StepRunner, NamesTheStepWhoseSamplesCannotBeRead) {
  const TinyTraining tiny({"gpt", "serial"});
  const auto source = open_tokens("synthetic:64:20000");
  TokenBatches batches(*source, SampleOrder(source->size(), tiny.options()), tiny.options(), 2);
  run_on_threads(1, [&](int, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(tiny.graph(), {&tiny.program()}, *device, world, 1);
    StepRunner runner(tiny.graph(), executor, batches, batches, tiny.options());
    EXPECT_THAT([&] { runner.train(6, 0); },
                testing::ThrowsMessage<Error>(
                    testing::AllOf(testing::HasSubstr("but the ids that the model takes are 0 to 1"),
                                   testing::HasSubstr("while reading the samples of step 7"))));
  });
}

/// Those of the second step are read when it is said that they may be.
class BlockedBatches final : public BatchReader {
 public:
  explicit BlockedBatches(TokenBatches& batches) : BatchReader(batches.order()), batches_(batches) {}
  void fill(Split split, std::int64_t first_sample, const StepSamples& samples,
            std::span<const std::span<std::byte>> into) override {
    if (first_sample > 0) {
      begun.set_value();
      may_go_on.get_future().wait();
    }
    batches_.fill(split, first_sample, samples, into);
  }
  std::int64_t target_count(Split split, std::int64_t first, std::int64_t samples) const override {
    return batches_.target_count(split, first, samples);
  }
  std::string description() const override { return batches_.description(); }
  std::int64_t length() const override { return batches_.length(); }

  std::promise<void> begun, may_go_on;

 private:
  TokenBatches& batches_;
};

TEST(StepRunner, RunsAStepWhileTheSamplesOfTheNextAreBeingRead) {
  const TinyTraining tiny({"gpt", "serial"});
  const auto source = open_tokens("synthetic:64:20000");
  TokenBatches batches(*source, SampleOrder(source->size(), tiny.options()), tiny.options(), 64);
  BlockedBatches reader(batches);
  run_on_threads(1, [&](int, Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(tiny.graph(), {&tiny.program()}, *device, world, 1);
    initialize_states(executor, tiny.graph(), 1);
    StepRunner runner(tiny.graph(), executor, reader, reader, tiny.options());
    const std::int64_t second = tiny.options().batch;
    EXPECT_GT(runner.train(0, 0, second)->loss, 0) << "a whole step, though nothing more can be read";
    reader.begun.get_future().wait();
    reader.may_go_on.set_value();
    EXPECT_GT(runner.train(1, second)->loss, 0);
  });
}

// Eleven windows to train on are less than two batches, so epochs begin within a batch, each in another
// order.
TEST(StepRunner, TrainsTheSameWhetherSamplesAreReadAheadOrNot) {
  const TinyTraining tiny({"gpt", "mixed", 4, 2});
  const Program evaluation = lower(tiny.graph(), tiny.plan(), Purpose::evaluate);
  const auto losses = [&](bool reads_ahead) {
    std::vector<double> of_first_rank;
    run_on_threads(4, [&](int rank, Communicator& world) {
      const auto source = open_tokens("synthetic:64:320");
      TokenBatches batches(*source, SampleOrder(source->size(), tiny.options()), tiny.options(), 64);
      const std::unique_ptr<Device> device = make_cpu_device(1);
      Executor executor(tiny.graph(), {&tiny.program(), &evaluation}, *device, world, 1);
      initialize_states(executor, tiny.graph(), 1);
      StepRunner runner(tiny.graph(), executor, batches, batches, tiny.options());
      for (std::int64_t step = 0; step < 6; ++step) {
        const std::int64_t first = step * tiny.options().batch, next = first + tiny.options().batch;
        const StepMetrics m = *runner.train(step, first, reads_ahead ? std::optional(next) : std::nullopt);
        const Evaluation held_out = runner.evaluate(step + 1, 2).value();
        if (rank == 0) of_first_rank.insert(of_first_rank.end(), {m.loss, held_out.loss});
      }
    });
    return of_first_rank;
  };
  EXPECT_EQ(losses(true), losses(false));
}

}  // namespace
}  // namespace alpa
