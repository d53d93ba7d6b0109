#include "libalpa/trainer/run_needs.h"

#include <gmock/gmock.h>

#include "libalpa/checkpoint/executor_states.h"
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

TEST(DiskNeed, NamesWhatIsToBeHeldAndWhatIsFree) {
  const TemporaryFolder folder;
  const TinyTraining training({"gpt", "data-parallel", 2, 2});
  const Graph& graph = training.graph();
  const Program& program = training.program();
  const DiskNeed need = disk_need(graph, program, folder.path() / "not" / "yet", 3);
  std::int64_t values = 0;
  for (const State& state : graph.states) values += byte_count(unpadded_type(graph, state));
  EXPECT_GT(need.checkpoint_bytes, values) << "the file has headers";
  EXPECT_GT(need.free_bytes.value(), 0);
  EXPECT_TRUE(need.fits());
  EXPECT_FALSE(disk_need(graph, program, need.run_dir, std::int64_t{1} << 50).fits());
  EXPECT_EQ(
      (DiskNeed{"run", 3, 1 << 20, 5.0 * (1 << 30)}.text()),
      "'run' is to hold 3 checkpoints of 1.00 MiB more at once, 3.00 MiB in all; 5.00 GiB is free there");
}

TEST(DiskNeed, FitsWhereNobodyKnowsWhatIsFree) {
  const DiskNeed need{"run", 3, 1 << 20, std::nullopt};
  EXPECT_TRUE(need.fits());
  EXPECT_THAT(need.text(), HasSubstr("3.00 MiB in all; the file system does not say how much is free there"));
}

TEST(ProcessMemory, HasTheSamplesAndWhatACheckpointTakes) {
  const TinyTraining training({"gpt", "data-parallel", 2, 2});
  const ProcessMemory memory = process_memory(training.program(), training.graph(), 100, 10);
  EXPECT_EQ(memory.arena, 100);
  EXPECT_EQ(memory.input, 10);
  EXPECT_EQ(memory.buffers, TensorWriter::buffer_bytes);
  EXPECT_EQ(memory.snapshot, std::ranges::max(checkpoint_shares(training.graph(), training.program())));
}

TEST(CheckpointShares, OfFourDataParallelRanksAreEven) {
  const TinyTraining training({"gpt", "data-parallel", 4, 2});
  const std::vector<std::int64_t> shares = checkpoint_shares(training.graph(), training.program());
  ASSERT_EQ(shares.size(), 4u);
  std::int64_t states = 0;
  for (const State& state : training.graph().states)
    states += byte_count(unpadded_type(training.graph(), state));
  for (const std::int64_t share : shares) {
    EXPECT_GE(share, 0.9 * states / 4);
    EXPECT_LE(share, 1.1 * states / 4);
  }
}

TEST(PossibleSaving, IsAsynchronousWhereThereIsRoomForTheSnapshot) {
  const ProcessMemory memory{1000, 100, 10, 200};
  constexpr auto async = CheckpointSaving::asynchronous, sync = CheckpointSaving::synchronous;
  EXPECT_EQ(possible_saving(async, memory, 1310), async);
  EXPECT_EQ(possible_saving(async, memory, 1309), sync);
  EXPECT_EQ(possible_saving(sync, memory, 1310), sync);
  EXPECT_EQ(
      checkpoints_text(async, async, memory),
      "checkpoints: a rank writes up to 200 B (10 B of buffers), from a copy in its memory while training "
      "goes on");
  EXPECT_EQ(
      checkpoints_text(async, sync, memory),
      "checkpoints: a rank writes up to 200 B (10 B of buffers), while training waits: there is no room "
      "for a copy in its memory");
  EXPECT_EQ(checkpoints_text(sync, sync, memory),
            "checkpoints: a rank writes up to 200 B (10 B of buffers), while training waits");
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
  ProcessMemory memory{3 * gib, gib / 2, gib / 4, gib};
  EXPECT_EQ(memory_shortfall(memory, 5 * gib), "");
  EXPECT_EQ(
      memory_shortfall(memory, 4 * gib),
      "a rank takes 4.75 GiB of its node's memory (arena 3.00 GiB, samples 512.00 MiB, "
      "buffers for a checkpoint 256.00 MiB, the copy that it is written from 1.00 GiB), 4.00 GiB is there "
      "for each");
  memory.snapshot = 0;
  EXPECT_EQ(memory_shortfall(memory, 4 * gib), "");
}

}  // namespace
}  // namespace alpa
