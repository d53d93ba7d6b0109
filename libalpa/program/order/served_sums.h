#pragma once
#include "libalpa/program/program.h"

namespace alpa {

// Parts of verify(), for a program that has servers.

/// That servers do what the mesh that they serve waits for, in its order; throws as verify() does.
void check_served_sums(const Program&);

/// What they do, as a program by itself.
Program program_of_servers(const Program&);

}  // namespace alpa
