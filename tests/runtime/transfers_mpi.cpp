#include <gtest/gtest.h>
#include <mpi.h>

#include <map>
#include <set>

#include "libalpa/comm/mpi_communicator.h"
#include "libalpa/program/lower/lower.h"
#include "tests/comm/heard_communicator.h"
#include "tests/mpi_main.h"
#include "tests/runtime/schedules_and_transfers.h"

namespace alpa {
namespace {

MPI_Comm all_ranks() {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return copy;
}

using BytesTo = std::map<int, std::int64_t>;  ///< by rank

/// Counts messages, on all channels.
class CountedMessages final : public HeardCommunicator {
 public:
  CountedMessages(std::unique_ptr<Communicator> inner, BytesTo& sent)
      : HeardCommunicator(std::move(inner)), sent_(sent) {}

  std::int64_t send(Stream& s, const void* data, std::int64_t bytes, int to) override {
    sent_[to] += bytes;
    return HeardCommunicator::send(s, data, bytes, to);
  }
  std::unique_ptr<Communicator> duplicate() override {
    return std::make_unique<CountedMessages>(HeardCommunicator::duplicate(), sent_);
  }

 private:
  BytesTo& sent_;
};

/// Calls `visit` for each run of a Receive in a step.
template <class Visit>
void for_each_receive(const Program& program, Visit visit) {
  for (const MeshProgram& mesh : program.meshes)
    for (const SegmentRun& run : mesh.schedule)
      for (const Instruction& instruction : mesh.segment_of(run).instructions)
        if (const auto* receive = std::get_if<Receive>(&instruction.body);
            receive && acts(instruction.when, run.micro_batch, program.micro_batches))
          visit(program.transfers[receive->transfer]);
}

/// What the nodes of a mesh take in, by its place in the plan alone: its tile for each device, or each
/// different tile of a node once.
std::int64_t taken_in(const StageTransfer& transfer, int devices_per_node, bool for_each_device) {
  const MeshShape& mesh = transfer.to_mesh.shape;
  const DeviceIndex first = transfer.to_mesh.first_device;
  std::set<std::pair<int, Shape>> tiles;  // with the node
  for (DeviceIndex device = first; device < first + device_count(mesh); ++device)
    tiles.insert({device / devices_per_node, tile_origin(transfer.whole.shape, transfer.to, mesh,
                                                         coordinate_of(transfer.to_mesh, device))});
  return byte_count(tile_type(transfer.whole, transfer.to, mesh)) *
         (for_each_device ? device_count(mesh) : std::ssize(tiles));
}

std::int64_t sum_over_ranks(std::int64_t value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

class ScheduleAndTransferOnMpi : public testing::TestWithParam<TinyCase> {};

TEST_P(ScheduleAndTransferOnMpi, TrainsAsSerialAndSendsWhatItsRouteSays) {
  constexpr int steps = 5;
  static const TinyCurve serial = TinyTraining({.model = "gpt", .method = "serial"}).run_on_threads(steps);
  TinyTraining training(GetParam());
  const Program evaluation = lower(training.graph(), training.plan(), Purpose::evaluate);
  const int per_node = evaluation.devices_per_node;
  const TransferStrategy strategy = find_transfer_strategy(GetParam().transfers);
  for (const Overlap overlap : {Overlap::none, Overlap::all}) {
    training.set_overlap(overlap);
    BytesTo sent;
    CountedMessages world(make_mpi_communicator(all_ranks(), nullptr), sent);
    const auto device = make_cpu_device(1);
    expect_as_serial(training.run(steps, *device, world), serial);

    BytesTo routed;
    std::int64_t needed_over_nodes = 0;
    const auto add = [&](const Program& program, int times) {
      for_each_receive(program, [&](const StageTransfer& transfer) {
        needed_over_nodes += times * taken_in(transfer, per_node, strategy == TransferStrategy::send_receive);
        for (const TransferMessage& message : transfer.route.messages)
          if (message.from == world.rank())
            routed[message.to] += times * message.elements() * dtype_bytes(transfer.whole.dtype);
      });
    };
    add(training.program(), steps);
    add(evaluation, 1);
    EXPECT_EQ(sent, routed);
    std::int64_t over_nodes = 0;
    for (const auto& [to, bytes] : sent)
      if (to / per_node != world.rank() / per_node) over_nodes += bytes;
    over_nodes = sum_over_ranks(over_nodes);
    if (strategy != TransferStrategy::global_all_gather) {  // whose parts come to a node from two sides
      EXPECT_EQ(over_nodes, needed_over_nodes);
    }
  }
}

// There a receive holds its caller up, as one of NCCL does what its stream is given after it.
TEST(TransfersOnMpi, OfDevicesThatPassOnToEachOtherDoNotWaitInACircleThroughStagingMemory) {
  static const TinyCurve serial = TinyTraining({.model = "gpt", .method = "serial"}).run_on_threads(5);
  for (const TinyCase& each : schedules_and_transfers()) {
    if (each.schedule != "1f1b") continue;
    const auto device = make_checked_cpu_device(1);
    const auto world = mpi_session().make_communicator(*device);
    ASSERT_FALSE(world->receives_beside_others());
    SCOPED_TRACE(each.transfers);
    expect_as_serial(TinyTraining(each).run(5, *device, *world), serial);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ScheduleAndTransferOnMpi, testing::ValuesIn(schedules_and_transfers()),
                         [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace alpa
