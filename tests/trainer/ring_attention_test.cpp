// Attention whose keys and values go round: ranks with a part of the sequence each do what one rank does with
// all of it, and send what the formula says.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>

#include "libalpa/checkpoint/executor_states.h"
#include "libalpa/runtime/executor.h"
#include "tests/support/small_plans.h"
#include "tests/support/tensor_values.h"
#include "tests/trainer/own_samples.h"

namespace alpa {
namespace {

using testing_models::Lowered;

constexpr std::int64_t kRingBatch = 8, kSequence = 8, kVocabulary = 32, kModel = 16, kBlocks = 2;
constexpr std::string_view kMoment = ".moment1";

/// Counts the bytes of messages from rank to rank; collectives pass by uncounted.
class CountingCommunicator final : public Communicator {
 public:
  CountingCommunicator(Communicator& inner, std::atomic<std::int64_t>& bytes)
      : inner_(inner), bytes_(bytes) {}
  CountingCommunicator(std::unique_ptr<Communicator> inner, std::atomic<std::int64_t>& bytes)
      : owned_(std::move(inner)), inner_(*owned_), bytes_(bytes) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void start(Stream& s, const CollectiveCall& call) override { inner_.start(s, call); }
  Progress advance(Stream& s) override { return inner_.advance(s); }
  std::int64_t send(Stream& s, const void* data, std::int64_t bytes, int to) override {
    bytes_ += bytes;
    return inner_.send(s, data, bytes, to);
  }
  bool has_left(Stream& s, std::int64_t message) override { return inner_.has_left(s, message); }
  std::int64_t start_receive(Stream& s, void* data, std::int64_t bytes, int from) override {
    return inner_.start_receive(s, data, bytes, from);
  }
  bool has_arrived(Stream& s, std::int64_t message) override { return inner_.has_arrived(s, message); }
  void rest(std::string_view during) override { inner_.rest(during); }
  void look(std::string_view during) override { inner_.look(during); }
  void wait_sends(Stream& s) override { inner_.wait_sends(s); }
  void barrier() override { inner_.barrier(); }
  std::unique_ptr<Communicator> split(int color) override {
    auto part = inner_.split(color);
    return part ? std::make_unique<CountingCommunicator>(std::move(part), bytes_) : nullptr;
  }

 private:
  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  std::atomic<std::int64_t>& bytes_;
};

struct Outcome {
  double loss = 0;
  std::map<std::string, Values> gradients;  ///< a tenth of each: Adam's first moment after the step
  std::int64_t bytes_sent = 0;              ///< by all ranks
};

/// One step of the tiny GPT on a mesh of one axis with that role.
Outcome one_step(int ranks, const std::string& role) {
  const Lowered plan = testing_models::pinned("[[stage]]\nlayers = 4\nmesh = [" + std::to_string(ranks) +
                                              "]\nstate_sharding = \"none\"\n" +
                                              (ranks > 1 ? "axes = [\"" + role + "\"]\n" : ""));
  std::vector<std::int32_t> tokens, targets;
  for (std::int32_t i = 0; i < kRingBatch * kSequence; ++i) {
    tokens.push_back(i * 7 % static_cast<std::int32_t>(kVocabulary));
    targets.push_back((i * 5 + 1) % static_cast<std::int32_t>(kVocabulary));
  }
  Outcome outcome;
  std::mutex gathering;
  for (const State& state : plan.graph.states)
    if (state.name.ends_with(kMoment))
      outcome.gradients[state.name].resize(
          static_cast<std::size_t>(element_count(value_of(plan.graph, state.value).type.shape)));
  std::atomic<std::int64_t> bytes = 0;
  run_on_threads(ranks, [&](int rank, Communicator& threads) {
    CountingCommunicator world(threads, bytes);
    const std::unique_ptr<Device> device = make_cpu_device(1);
    Executor executor(plan.graph, {&plan.program}, *device, world, 1);
    initialize_states(executor, plan.graph, 1);
    const std::span<const std::byte> samples[] = {std::as_bytes(std::span(tokens)),
                                                  std::as_bytes(std::span(targets))};
    StepInputs inputs;
    const OwnSamples own(executor.samples(), samples);
    inputs.samples = own.spans();
    inputs.loss_scale = 1.0f / static_cast<float>(tokens.size());
    inputs.update_scalars.learning_rate = 1e-3f;
    const StepResult result = *executor.run(inputs);
    if (rank == 0) outcome.loss = result.loss_sum / static_cast<double>(tokens.size());
    for (const StateTile& tile : executor.state_tiles()) {
      const State& state = plan.graph.states[tile.state];
      if (!state.name.ends_with(kMoment)) continue;
      std::vector<std::byte> data(static_cast<std::size_t>(byte_count(tile.tile)));
      executor.read_state(tile, data.data());
      const Values values = unpacked(data, tile.tile.dtype);
      const std::lock_guard lock(gathering);  // copies are equal, but not written at once
      for_box(value_of(plan.graph, state.value).type.shape, tile.origin, tile.tile.shape,
              [&](std::size_t to, std::size_t from) { outcome.gradients.at(state.name)[to] = values[from]; });
    }
  });
  outcome.bytes_sent = bytes;
  return outcome;
}

double norm_of(const Values& values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares);
}

// Sums of f32 in another order. The bias of keys moves all scores of a query alike, so its gradient is 0 but
// for roundings of the terms that cancel; these are of the size of other gradients.
TEST(RingAttention, OnFourRanksTrainsAsOneRank) {
  const Outcome one = one_step(1, ""), ring = one_step(4, "ring");
  EXPECT_NEAR(ring.loss, one.loss, 1e-6 * one.loss);
  ASSERT_EQ(one.gradients.size(), 2 * 16 + 4u);
  double largest = 0;
  for (const auto& [name, gradient] : one.gradients) largest = std::max(largest, norm_of(gradient));
  for (const auto& [name, gradient] : one.gradients) {
    Values difference = ring.gradients.at(name);
    for (std::size_t i = 0; i < gradient.size(); ++i) difference[i] -= gradient[i];
    EXPECT_LE(norm_of(difference), 1e-5 * norm_of(gradient) + 1e-7 * largest) << name;
  }
}

// Each of n ranks sends its part of the keys and of the values, or what has come in their stead, n - 1 times
// forward and as often backward, and as often what their gradients have come to: as in an all-gather each way
// and a reduce-scatter, 6 (n - 1) / n of the keys per rank and block.
TEST(RingAttention, SendsAsManyBytesAsTheFormulaSays) {
  const std::int64_t keys = kRingBatch * kSequence * kModel * 4;
  for (const int ranks : {2, 4})
    EXPECT_EQ(one_step(ranks, "ring").bytes_sent, ranks * kBlocks * 6 * (ranks - 1) * keys / ranks) << ranks;
  EXPECT_EQ(one_step(4, "sequence").bytes_sent, 0);
}

}  // namespace
}  // namespace alpa
