// parallel_exit WAY: a command whose ranks leave in the way named.
#include <cstdio>
#include <filesystem>

#include "apps/app.h"
#include "libalpa/base/error.h"
#include "libalpa/device/device.h"

int main(int argc, char** argv) {
  using namespace alpa;
  std::filesystem::path way_name;
  App app("alpa-exit", "leaves in the way named");
  app.argument("WAY", way_name, "alike, differing, one, one-of-waiting, early, exception");
  return app.run_parallel(argc, argv, [&](const ParallelRun& here) {
    const std::string way = way_name.string();
    const int rank = here.session.rank();
    const auto device = make_cpu_device(1);
    const auto all = here.session.make_communicator(*device);
    if (way == "alike") throw Error(ErrorKind::input, "the plan is for 16 devices", "use 16");
    if (way == "differing") throw Error(ErrorKind::input, "rank " + std::to_string(rank) + " sees no file");
    if (way == "exception" && rank == 1) throw std::runtime_error("out of luck");
    if (way == "one" && rank == 1) throw Error(ErrorKind::non_finite, "the loss is nan");
    if (way == "one-of-waiting" && rank == 1) throw Error(ErrorKind::allocation, "no memory is left");
    if (way == "one-of-waiting" || way == "exception") all->barrier();
    return way == "early" ? 75 : 0;
  });
}
