// mpi_exit finish|abort|vanish STATUS: all ranks finish with STATUS; or rank 1 aborts with it; or rank 1's
// session is gone without either. In the last two the other ranks wait for rank 1.
#include <cstdlib>
#include <string>

#include "libalpa/comm/mpi_session.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string way = argv[1];
  const int status = std::atoi(argv[2]);
  alpa::MpiSession session(0);
  if (way != "finish") {
    if (session.rank() == 1 && way == "abort") session.abort(status);
    if (session.rank() == 1) return 0;
    const auto device = alpa::make_cpu_device(1);
    session.make_communicator(*device)->barrier();
  }
  session.finish(status);
  return status;
}
