#pragma once
#include "libalpa/comm/mpi_session.h"

namespace alpa {

/// MPI as mpi_main.cpp started it, for the tests of a program built by alpa_mpi_test.
MpiSession& mpi_session();

}  // namespace alpa
