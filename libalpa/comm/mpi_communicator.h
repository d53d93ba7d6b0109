#pragma once
#include <mpi.h>

#include <memory>

#include "libalpa/comm/communicator.h"

namespace alpa {

/// The ranks of `adopted` (freed with the communicator), for buffers in host memory: of a CPU device, or
/// staged. Data is in place when a call returns.
std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm adopted);

}  // namespace alpa
