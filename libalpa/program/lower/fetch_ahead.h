#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// Lists what is fetched from the host's memory ahead of use, so that the lane goes on while what came before
/// is used: as early as twice the most that any place of a segment takes has room for what is fetched and not
/// used yet (a double buffer, as GeePS, EuroSys'16, has it).
void fetch_ahead(MeshProgram&);

}  // namespace alpa
