// Gradients of embeddings that go as rows of ids that differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <set>

#include "libalpa/base/philox.h"
#include "libalpa/plan/facts/synchronisation.h"
#include "tests/comm/heard_communicator.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<std::string> ways(const TinyTraining& training) {
  const GraphUses uses(training.graph());
  const Placement placement(training.plan(), uses);
  std::vector<std::string> texts;
  for (const Node& node : training.graph().nodes) {
    if (!node.op->sums_micro_batches) continue;
    const MeshIndex mesh = placement.mesh_of_node(value_of(training.graph(), node.results[0]).producer);
    texts.push_back(synchronisation_text(placement, mesh,
                                         Conversions(training.plan().cluster, training.plan().meshes[mesh]),
                                         node.results[0]));
  }
  return texts;
}

class SparseTraining : public testing::TestWithParam<TinyCase> {};

TEST_P(SparseTraining, HasTheLossesOfOneDevice) {
  const TinyTraining training(GetParam());
  EXPECT_THAT(ways(training), Contains(HasSubstr("of gathered rows of ids that differ")));
  expect_curve_of_one_device(training, GetParam().model);
}

TEST_P(SparseTraining, HasTheSameBitsInAnyOrderOfLanes) {
  TinyTraining training(GetParam());
  expect_same_bits_in_any_order(training);
}

TinyCase sparse(const std::string& model, const std::string& method, int devices, int micro_batches) {
  TinyCase c{model, method, devices, micro_batches};
  c.sparse = c.wire_bound = true;
  c.constraints = "[[gradient]]\nname = \"embedding.*\"\nway = \"factors\"\n";  // whatever is fewer bytes
  return c;
}

INSTANTIATE_TEST_SUITE_P(Tiny, SparseTraining,
                         testing::Values(sparse("llama", "parallax", 2, 1), sparse("llama", "parallax", 4, 2),
                                         sparse("llama", "poseidon", 2, 2), sparse("lm1b", "parallax", 2, 1),
                                         sparse("lm1b", "parallax", 4, 1), sparse("ncf", "parallax", 4, 1),
                                         sparse("tree_pair", "parallax", 2, 2),
                                         sparse("tree_pair", "parallax", 4, 1),
                                         sparse("llama", "rows x rows", 4, 1),
                                         sparse("llama", "rows x tensor", 4, 2)),
                         [](const auto& each) { return each.param.name(); });

// Rows are added up and sent in f32, as the table's gradient is.
TEST(SparseTraining, HasTheLossesOfOneDeviceInBf16) {
  TinyCase c = sparse("llama", "parallax", 2, 2), alone{"llama", "serial"};
  c.precision = alone.precision = Precision::bf16;
  const TinyTraining training(c), serial(alone);
  const double error = rounding_error(training.graph(), DType::bf16);
  const TinyCurve curve = training.run_on_threads(5), reference = serial.run_on_threads(5);
  for (std::size_t step = 0; step < curve.losses.size(); ++step)
    EXPECT_NEAR(curve.losses[step], reference.losses[step], error * std::abs(reference.losses[step]));
}

TinyCase with_late_updates(TinyCase c) {
  c.updates = UpdateOrder::next_forward;
  return c;
}

TinyCase under_schedule(TinyCase c, const char* schedule) {
  c.schedule = schedule;
  return c;
}

INSTANTIATE_TEST_SUITE_P(Orders, SparseTraining,
                         testing::Values(with_late_updates(sparse("llama", "parallax", 2, 2)),
                                         under_schedule(sparse("llama", "rows x tensor, rows x tensor", 8, 2),
                                                        "zero-bubble")),
                         [](const auto& each) { return each.param.name(); });

/// The stretches of rows that groups of a rank exchange.
class HeardRows final : public HeardCommunicator {
 public:
  HeardRows(std::unique_ptr<Communicator> inner, std::vector<std::int64_t>& bytes)
      : HeardCommunicator(std::move(inner)), bytes_(bytes) {}

  void start(Stream& s, const CollectiveCall& call) override {
    if (call.kind == CollectiveCall::Kind::broadcast_from_owners)
      for (const OwnedPiece& piece : call.pieces)
        bytes_[static_cast<std::size_t>(piece.owner)] += piece.bytes;
    HeardCommunicator::start(s, call);
  }
  std::unique_ptr<Communicator> split(int color) override { return wrapped(HeardCommunicator::split(color)); }
  std::unique_ptr<Communicator> duplicate() override { return wrapped(HeardCommunicator::duplicate()); }

 private:
  std::unique_ptr<Communicator> wrapped(std::unique_ptr<Communicator> inner) {
    return inner ? std::make_unique<HeardRows>(std::move(inner), bytes_) : nullptr;
  }

  std::vector<std::int64_t>& bytes_;
};

TEST(SparseTraining, SendsARowForEachIdThatADeviceHas) {
  constexpr int kDevices = 4, kSteps = 3;
  constexpr std::int64_t kTokens = 8 * 16;  // of a step, as TinyTraining draws them
  const TinyTraining training(sparse("llama", "parallax", kDevices, 1));
  const State& table = training.graph().states[StateIndex(0)];
  ASSERT_EQ(table.name, "embedding.table");
  const std::int64_t row_bytes = 4 * value_of(training.graph(), table.value).type.shape.back();
  std::vector<std::int64_t> expected(kDevices);
  for (int step = 0; step < kSteps; ++step)
    for (int device = 0; device < kDevices; ++device) {
      std::set<std::uint32_t> ids;
      for (std::int64_t i = device * kTokens / kDevices; i < (device + 1) * kTokens / kDevices; ++i)
        ids.insert(philox(5, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(i)).word[0] % 64);
      expected[static_cast<std::size_t>(device)] += static_cast<std::int64_t>(ids.size()) * row_bytes;
    }
  run_on_threads(kDevices, [&](int, Communicator& world) {
    std::vector<std::int64_t> heard(kDevices);
    HeardRows listening(world.duplicate(), heard);
    const auto device = make_cpu_device(1);
    training.run(kSteps, *device, listening);
    EXPECT_EQ(heard, expected);
  });
}

}  // namespace
}  // namespace alpa
