#include "libalpa/trainer/run_memory.h"

#include <gmock/gmock.h>

#include "libalpa/program/lower/lower.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

/// Tokens of which reading holds so much.
class HeldBatches final : public BatchReader {
 public:
  explicit HeldBatches(std::int64_t bytes) : BatchReader(SampleOrder::of_rows(100, {})), bytes_(bytes) {}
  void fill(Split, std::int64_t, const StepSamples&, std::span<const std::span<std::byte>>) override {}
  std::int64_t target_count(Split, std::int64_t, std::int64_t samples) const override { return samples; }
  std::int64_t held_bytes() const override { return bytes_; }
  std::string description() const override { return "nothing"; }
  std::int64_t length() const override { return 100; }

 private:
  std::int64_t bytes_;
};

// Two stages, each of two ranks; a batch of 8 samples of 16 tokens. The first stage has half of the samples
// on each rank, and the second all of them, of which it takes the targets.
TEST(RankMemory, IsThatOfTheRankThatTakesMost) {
  const TinyTraining tiny({"gpt", "mixed", 4, 2});
  const Program evaluation = lower(tiny.graph(), tiny.plan(), Purpose::evaluate);
  const Program* const programs[] = {&tiny.program(), &evaluation};
  const HeldBatches reader(1000), other(10);
  constexpr std::int64_t targets = 8 * 16 * 4;
  EXPECT_EQ(rank_memory(tiny.graph(), programs, reader, reader).input, 2 * targets + 1000);
  EXPECT_EQ(rank_memory(tiny.graph(), programs, reader, other).input, 2 * targets + 1000 + 10);
  std::int64_t arena = 0;
  for (const MeshProgram& mesh : tiny.program().meshes) arena = std::max(arena, mesh.memory.total);
  EXPECT_EQ(rank_memory(tiny.graph(), programs, reader, reader).arena, arena);
}

}  // namespace
}  // namespace alpa
