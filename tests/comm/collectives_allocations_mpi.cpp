#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "libalpa/comm/communicator.h"
#include "libalpa/device/device.h"
#include "tests/mpi_main.h"
#include "tests/trainer/heap_watch.h"

namespace alpa {
namespace {

TEST(Collectives, TakeNoMemoryOnceCallsOfASizeHaveBeenMade) {
  const auto device = make_cpu_device(1);
  const auto stream = device->make_stream();
  const auto group = mpi_session().make_communicator(*device);
  group->set_nodes(consecutive_nodes(4, 2));
  std::vector<float> from(1 << 20), to(1 << 20);
  const auto piece = [&](std::size_t first, std::int64_t count, int owner) {
    return OwnedPiece{&from[first], count * 4, owner};
  };
  const std::vector<OwnedPiece> few{piece(0, 500'000, 3), piece(500'000, 30, 0), piece(600'000, 400'000, 1)},
      short_ones{piece(0, 30, 3), piece(40, 30, 3), piece(80, 3, 2), piece(90, 1, 0), piece(100, 5, 1)};
  const auto make_calls = [&] {
    for (const std::vector<OwnedPiece>* pieces : {&few, &short_ones}) {
      group->reduce_to_owners(*stream, *pieces, DType::f32, Reduction::sum);
      group->broadcast_from_owners(*stream, *pieces);
    }
    for (const std::int64_t count : {100, 1 << 18}) {
      group->reduce_scatter(*stream, from.data(), to.data(), count, DType::f32, Reduction::sum);
      group->all_gather(*stream, from.data(), to.data(), count * 4);
      group->all_reduce(*stream, from.data(), count, DType::f32, Reduction::sum);
      group->all_to_all(*stream, from.data(), to.data(), count * 4);
      group->broadcast(*stream, from.data(), count * 4, 1);
    }
  };
  make_calls();
  heap_watch::start();
  make_calls();
  heap_watch::stop();
  // How many messages are under way at once, for which MPI and its transport have room, depends on time.
  for (const heap_watch::Source& source : heap_watch::sources())
    if (source.file == "test_step_allocations_mpi" && source.stack.find("MpiTransport") == std::string::npos)
      ADD_FAILURE() << source.allocations << " allocations in\n" << source.stack;
}

}  // namespace
}  // namespace alpa
