#pragma once
#include <mpi.h>

#include <memory>

#include "libalpa/comm/communicator.h"
#include "libalpa/comm/mpi_transport.h"

namespace alpa {

/// The ranks of `adopted` (freed with the communicator), for buffers in host memory: of a CPU device, or
/// staged. Data is in place when a call returns. The watch is that of all its waits, may be null, and is
/// handed on to groups split from it.
std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm adopted, std::shared_ptr<const PeerWatch> watch);

}  // namespace alpa
