#include "libalpa/base/error.h"
#include "libalpa/comm/mpi_session.h"

namespace alpa {

std::unique_ptr<Communicator> make_nccl_communicator(Device&, Communicator&) {
  throw Error(ErrorKind::allocation, "this build has no NCCL",
              "build with `cmake --preset cuda` where the CUDA toolkit and NCCL are installed");
}

}  // namespace alpa
