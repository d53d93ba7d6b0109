#include "libalpa/trainer/run_needs.h"

#include <gmock/gmock.h>

#include "tests/h5/temporary_folder.h"
#include "tests/support/index_literals.h"
#include "tests/support/small_models.h"
#include "tests/trainer/tiny_training.h"

namespace alpa {
namespace {

using testing::HasSubstr;

TEST(SavesLeft, AreThoseAtTheIntervalAndAtTheEnd) {
  EXPECT_EQ(saves_left(0, 100, 10), 10);
  EXPECT_EQ(saves_left(0, 105, 10), 11);
  EXPECT_EQ(saves_left(35, 105, 10), 8);  // 40, 50, ..., 100, 105
  EXPECT_EQ(saves_left(40, 100, 10), 6);
  EXPECT_EQ(saves_left(0, 100, 0), 1);
  EXPECT_EQ(saves_left(100, 100, 10), 0);
}

TEST(MostNewCheckpoints, CountTheOneThatIsBeingWritten) {
  EXPECT_EQ(most_new_checkpoints(100, 0, 2), 3);
  EXPECT_EQ(most_new_checkpoints(100, 1, 2), 2);
  EXPECT_EQ(most_new_checkpoints(100, 5, 2), 1);
  EXPECT_EQ(most_new_checkpoints(2, 0, 2), 2);
  EXPECT_EQ(most_new_checkpoints(0, 0, 2), 0);
  EXPECT_EQ(most_new_checkpoints(100, 3, 0), 100);  // all are kept
}

TEST(DiskShortfall, NamesWhatIsToBeHeldAndWhatIsFree) {
  const TemporaryFolder folder;
  const Graph graph = testing_models::tiny_gpt(2, 1);
  EXPECT_EQ(disk_shortfall(graph, folder.path() / "not" / "yet", 3), "");
  EXPECT_THAT(disk_shortfall(graph, folder.path() / "not" / "yet", std::int64_t{1} << 50),
              testing::AllOf(HasSubstr("not/yet' is to hold 1125899906842624 checkpoints of "),
                             HasSubstr(" is free there")));
}

TEST(ProcessMemory, HasTheStatesOnceMore) {
  const TinyTraining training({"gpt", "data-parallel", 2, 2});
  const MemoryUse& use = training.program().meshes[0_m].memory;
  const ProcessMemory memory = process_memory(training.program(), 100, 10);
  EXPECT_EQ(memory.arena, 100);
  EXPECT_EQ(memory.states, use.parameters + use.optimizer);
  EXPECT_EQ(memory.input, 10);
}

TEST(ExchangedBytes, AreWhatIsTouchedByAllButComputations) {
  const TinyTraining training({"gpt", "mixed", 4, 2});
  std::int64_t most = 0;
  for (const MeshProgram& mesh : training.program().meshes) {
    std::vector<bool> touched(static_cast<std::size_t>(mesh.memory.total));
    const auto touch = [&](const std::vector<BufferIndex>& buffers) {
      for (const BufferIndex b : buffers) {
        const Buffer& buffer = mesh.buffers[b];
        std::fill_n(touched.begin() + buffer.offset, buffer.slots * buffer.bytes, true);
      }
    };
    for (const Segment& segment : mesh.segments)
      for (const Instruction& instruction : segment.instructions) {
        if (std::holds_alternative<Compute>(instruction.body) ||
            std::holds_alternative<Zero>(instruction.body))
          continue;
        touch(buffers_read(instruction));
        touch(buffers_written(instruction));
      }
    most = std::max<std::int64_t>(most, std::count(touched.begin(), touched.end(), true));
    EXPECT_LT(most, mesh.memory.total);
  }
  EXPECT_EQ(exchanged_bytes(training.program()), most);
}

TEST(MemoryShortfall, IsWhatTheProcessTakesBesideTheArenaToo) {
  const std::int64_t gib = std::int64_t{1} << 30;
  const ProcessMemory memory{3 * gib, 2 * gib, gib / 2};
  EXPECT_EQ(memory_shortfall(memory, 6 * gib), "");
  EXPECT_EQ(memory_shortfall(memory, 5 * gib),
            "a rank takes 5.50 GiB of its node's memory (arena 3.00 GiB, its states once more while a "
            "checkpoint is written or read 2.00 GiB, samples 512.00 MiB), 5.00 GiB is there for each");
}

}  // namespace
}  // namespace alpa
