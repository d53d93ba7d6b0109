#pragma once
#include "libalpa/program/program.h"

namespace alpa {

/// Lists what is fetched from the host's memory ahead of use: what is first wanted at one place of a segment
/// when what is wanted at the place before it has been fetched, and the first of all at the segment's begin.
/// So two at a time are in the device's memory (a double buffer, as GeePS, EuroSys'16, has it), and the lane
/// goes on while what came before is used.
void fetch_ahead(MeshProgram&);

}  // namespace alpa
